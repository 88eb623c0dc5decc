use super::words;
use crate::model::{ClockName, FaultKind, Streams};
use crate::scenario::action::Action;
use crate::scenario::draft::{By, MOST_PPM, ToxicType};
use crate::scenario::values::FASTEST_RATE;
use serde_json::{Map, Value, json};

/// Every form of a step; exactly one fits.
pub fn alternatives() -> Vec<Value> {
    let mut all = Vec::new();
    for action in Action::all() {
        match action {
            Action::Fault(FaultKind::Toxic) => all.extend(ToxicType::ALL.map(toxic)),
            action => {
                let modifiers = action.modifiers().iter();
                let modifiers = modifiers.map(|name| (*name, modifier(action, name)));
                all.push(step(action, modifiers, required(action)));
            }
        }
    }
    all
}

fn step(
    action: Action,
    modifiers: impl Iterator<Item = (&'static str, Value)>,
    required: &[&str],
) -> Value {
    let mut properties = Map::new();
    properties.insert(action.name().to_owned(), target(action));
    properties.extend(modifiers.map(|(name, form)| (name.to_owned(), form)));
    let required: Vec<&str> = [action.name()].iter().chain(required).copied().collect();
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn target(action: Action) -> Value {
    match action {
        Action::Wait => json!({ "anyOf": [
            { "$ref": "#/$defs/span" },
            { "$ref": "#/$defs/trigger" }
        ] }),
        Action::Heal | Action::Fault(FaultKind::Resume | FaultKind::Thaw) => {
            json!({ "$ref": "#/$defs/name" })
        }
        Action::Together => {
            json!({ "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/step" } })
        }
        Action::Fault(FaultKind::Partition) => json!({
            "type": "array",
            "minItems": 2,
            "items": { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/name" } }
        }),
        // Those with a name for the event of their node befall a node.
        Action::Fault(kind) if kind.node_event().is_some() => json!({ "$ref": "#/$defs/node" }),
        Action::Fault(_) => json!({ "anyOf": [
            { "$ref": "#/$defs/link" },
            { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/link" } }
        ] }),
    }
}

fn required(action: Action) -> &'static [&'static str] {
    match action {
        Action::Fault(FaultKind::Latency) => &["delay"],
        Action::Fault(FaultKind::Bandwidth) => &["rate"],
        Action::Fault(FaultKind::Loss) => &["percent"],
        Action::Fault(FaultKind::Skew) => &["by"],
        Action::Fault(FaultKind::Drift) => &["ppm"],
        _ => &[],
    }
}

fn modifier(action: Action, name: &str) -> Value {
    let duration = json!({ "$ref": "#/$defs/duration" });
    match name {
        "for" => json!({ "$ref": "#/$defs/span" }),
        "longer_than" => json!({ "anyOf": [{ "const": "ttl" }, duration] }),
        "by" if action == Action::Fault(FaultKind::Skew) => json!({
            "type": "string",
            "pattern": r"^[+-]?\d+(ms|s|m)$",
            "description": "15s, -15s"
        }),
        "by" => json!({ "enum": words(&By::ALL) }),
        "rate" => {
            json!({ "type": "string", "pattern": r"^[1-9]\d*KB/s$", "description": "20KB/s" })
        }
        "percent" => json!({ "type": "integer", "minimum": 1, "maximum": 99 }),
        "ppm" => json!({ "type": "integer", "minimum": -MOST_PPM, "maximum": MOST_PPM }),
        "clock" => json!({ "enum": words(&ClockName::ALL) }),
        _ => duration,
    }
}

/// Attributes are numbers in Toxiproxy's own units.
fn toxic(kind: ToxicType) -> Value {
    let action = Action::Fault(FaultKind::Toxic);
    let number = |name: &str| match name {
        "rate" => json!({ "type": "integer", "minimum": 0, "maximum": FASTEST_RATE }),
        "latency" | "average_size" | "delay" => json!({ "type": "integer", "minimum": 1 }),
        _ => json!({ "type": "integer", "minimum": 0 }),
    };
    let common = [
        ("for", modifier(action, "for")),
        ("type", json!({ "const": kind.name() })),
        (
            "toxicity",
            json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        ),
        ("stream", json!({ "enum": words(&Streams::ALL) })),
    ];
    let own = kind.attributes().iter().map(|name| (*name, number(name)));
    let required: Vec<&str> = ["type"].iter().chain(kind.required()).copied().collect();
    step(action, common.into_iter().chain(own), &required)
}
