use crate::faults::Key;
use crate::model::Affected;
use crate::scenario::action::Action;
use serde_json::{Map, Value, json};

/// Returns every form of a step; exactly one fits.
pub fn alternatives() -> Vec<Value> {
    let shapes = |action: Action| {
        let shapes = action.shapes().into_iter();
        shapes.map(move |keys| step(action, keys))
    };
    Action::all().flat_map(shapes).collect()
}

fn step(action: Action, keys: Vec<Key>) -> Value {
    let mut properties = Map::new();
    let mut required = vec![action.name()];
    properties.insert(action.name().to_owned(), target(action));
    for key in keys {
        if key.is_required {
            required.push(key.name);
        }
        properties.insert(key.name.to_owned(), key.schema);
    }
    json!({
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": properties,
    })
}

fn target(action: Action) -> Value {
    let name = json!({ "$ref": "#/$defs/name" });
    let kind = match action {
        Action::Wait => {
            return json!({ "anyOf": [
                { "$ref": "#/$defs/span" },
                { "$ref": "#/$defs/trigger" }
            ] });
        }
        Action::Together => {
            return json!({ "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/step" } });
        }
        Action::Heal => return name,
        Action::Fault(kind) if kind.continues().is_some() => return name,
        Action::Fault(kind) => kind,
    };
    match kind.facts().affects {
        Affected::Groups => json!({
            "type": "array",
            "minItems": 2,
            "items": { "type": "array", "minItems": 1, "items": name }
        }),
        Affected::Node => json!({ "$ref": "#/$defs/node" }),
        Affected::Links => json!({ "anyOf": [
            { "$ref": "#/$defs/link" },
            { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/link" } }
        ] }),
    }
}
