//! Toxics by Toxiproxy's own names and in its units, for those who know Toxiproxy.

use super::link_effect::FASTEST_RATE;
use super::*;
use crate::yaml::Value;
use std::collections::BTreeSet;
use strum::VariantArray;

pub const TOXIC: Form = Form {
    keys: || ToxicType::VARIANTS.iter().copied().map(keys).collect(),
    read,
    ..Form::PLAIN
};

/// Returns the keys of a toxic. Its attributes are numbers in Toxiproxy's own units.
fn keys(kind: ToxicType) -> Vec<Key> {
    let attribute = |(name, given): &(&'static str, Given)| {
        let number = match *name {
            "rate" => json!({ "type": "integer", "minimum": 0, "maximum": FASTEST_RATE }),
            "latency" | "average_size" | "delay" => json!({ "type": "integer", "minimum": 1 }),
            _ => json!({ "type": "integer", "minimum": 0 }),
        };
        Key {
            is_required: *given == Given::Always,
            ..Key::optional(name, number)
        }
    };
    let share = json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 });
    let common = [
        Key::required("type", json!({ "const": kind.to_string() })),
        Key::optional("toxicity", share),
        Key::optional("stream", json!({ "enum": words(&Streams::ALL) })),
    ];
    let own = kind.attributes().iter().map(attribute);
    common.into_iter().chain(own).collect()
}

/// The most bytes that a probe sends at once.
const MOST_PROBED_BYTES: u64 = 16 * 1024;
const TOO_LARGE: &str = "more than 16384 bytes could not be seen to bite";

/// The toxics that can be seen to bite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display, VariantArray)]
#[strum(serialize_all = "snake_case")]
enum ToxicType {
    Latency,
    Bandwidth,
    Timeout,
    ResetPeer,
    Slicer,
    LimitData,
}

/// Toxiproxy has these too, but they delay only the end of a connection, or nothing at all.
const CANNOT_BE_SEEN: [&str; 2] = ["slow_close", "noop"];

impl ToxicType {
    /// Returns its attributes; the optional ones are 0 unless given.
    fn attributes(self) -> &'static [(&'static str, Given)] {
        use Given::{Always, Maybe};
        match self {
            ToxicType::Latency => &[("latency", Always), ("jitter", Maybe)],
            ToxicType::Bandwidth => &[("rate", Always)],
            ToxicType::Timeout | ToxicType::ResetPeer => &[("timeout", Maybe)],
            ToxicType::Slicer => &[
                ("average_size", Always),
                ("size_variation", Maybe),
                ("delay", Always),
            ],
            ToxicType::LimitData => &[("bytes", Always)],
        }
    }

    fn given(self, name: &str) -> Option<Given> {
        let mut own = self.attributes().iter();
        own.find(|(known, _)| *known == name)
            .map(|(_, given)| *given)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Given {
    Always,
    Maybe,
}

fn read(fields: &mut Fields<'_>, report: &mut Report) -> Option<Effect> {
    let kind = fields.required("type", report);
    let toxicity = match fields.optional("toxicity") {
        None => Some(1.0),
        Some(node) => share(node, report).map(|at| at.value),
    };
    let streams = match fields.optional("stream") {
        None => Some(Streams::Data),
        Some(node) => choice(node, "stream", &Streams::ALL, report).map(|at| at.value),
    };
    let kind = read_type(kind?, report)?;
    let toxic = Attributes::read(kind, fields, report)?.toxic(kind, report)?;
    Some(Effect::Links(LinkEffect::Toxic {
        toxic,
        streams: streams?,
        toxicity: toxicity?,
    }))
}

/// Reads a share above 0 and at most 1.
fn share(node: &Node, report: &mut Report) -> Option<At<f64>> {
    parsed(node, "a share", report, |text| {
        let share = text.parse().ok();
        let share = share.filter(|share| *share > 0.0 && *share <= 1.0);
        share.ok_or_else(|| format!("`{text}` is not a share above 0 and at most 1"))
    })
}

fn read_type(node: &Node, report: &mut Report) -> Option<ToxicType> {
    if let Value::Scalar(text) = &node.value
        && CANNOT_BE_SEEN.contains(&text.as_str())
    {
        let message = format!("nothing of `{text}` can be seen to bite, so it proves nothing");
        report.add(node.place, message);
        return None;
    }
    Some(choice(node, "type of toxic", ToxicType::VARIANTS, report)?.value)
}

/// The attributes that were given, each with its node for complaints.
struct Attributes<'a> {
    given: Vec<(&'static str, &'a Node, u64)>,
}

impl<'a> Attributes<'a> {
    fn read(
        kind: ToxicType,
        fields: &mut Fields<'a>,
        report: &mut Report,
    ) -> Option<Attributes<'a>> {
        let before = report.complaints();
        let mut given = Vec::new();
        // A set, because two types have a timeout.
        let all: BTreeSet<&'static str> = ToxicType::VARIANTS
            .iter()
            .flat_map(|kind| kind.attributes().iter().map(|(name, _)| *name))
            .collect();
        for name in all {
            let own = kind.given(name);
            let Some(node) = fields.optional(name) else {
                if own == Some(Given::Always) {
                    fields.required(name, report);
                }
                continue;
            };
            if own.is_none() {
                let names: Vec<&str> = kind.attributes().iter().map(|(name, _)| *name).collect();
                let names = names.join(", ");
                let message = format!("a toxic of type `{kind}` has no `{name}`; it has {names}");
                report.add(node.place, message);
                continue;
            }
            let most = match name {
                "rate" => FASTEST_RATE as i64,
                _ => i64::from(u32::MAX),
            };
            if let Some(value) = number(node, name, 0..=most, report) {
                given.push((name, node, value.value as u64));
            }
        }
        (report.complaints() == before).then_some(Attributes { given })
    }

    /// Returns the value of an attribute; 0 if it is not given, as in Toxiproxy.
    fn value(&self, name: &str) -> u64 {
        let mut given = self.given.iter();
        given.find(|(n, ..)| *n == name).map_or(0, |(.., v)| *v)
    }

    fn toxic(&self, kind: ToxicType, report: &mut Report) -> Option<ToxicEffect> {
        let before = report.complaints();
        let mut refuse = |wrong: bool, name: &str, why: &str| {
            let node = self.given.iter().find(|(known, ..)| *known == name);
            if let (true, Some((_, node, _))) = (wrong, node) {
                report.add(node.place, why);
            }
        };
        let is_zero = |name: &str| self.value(name) == 0;
        let unseen = "of 0 nothing could be seen; give it a length";
        let toxic = match kind {
            ToxicType::Latency => {
                refuse(is_zero("latency"), "latency", unseen);
                let too_wide = self.value("jitter") >= self.value("latency");
                let why = "a jitter is shorter than the latency";
                refuse(too_wide && !is_zero("latency"), "jitter", why);
                ToxicEffect::Latency {
                    latency_ms: self.value("latency"),
                    jitter_ms: self.value("jitter"),
                }
            }
            ToxicType::Bandwidth => ToxicEffect::Bandwidth {
                rate_kb_per_s: self.value("rate"),
            },
            ToxicType::Timeout => ToxicEffect::Timeout {
                timeout_ms: self.value("timeout"),
            },
            ToxicType::ResetPeer => ToxicEffect::ResetPeer {
                timeout_ms: self.value("timeout"),
            },
            ToxicType::Slicer => {
                let why = "slices of 0 bytes would never end; give them a size";
                refuse(is_zero("average_size"), "average_size", why);
                let too_wide = self.value("size_variation") >= self.value("average_size");
                let why = "sizes vary by less than their average";
                refuse(too_wide && !is_zero("average_size"), "size_variation", why);
                let why = "slices without a delay between them cannot be seen; give them one";
                refuse(is_zero("delay"), "delay", why);
                let too_large = self.value("average_size") > MOST_PROBED_BYTES;
                refuse(too_large, "average_size", TOO_LARGE);
                ToxicEffect::Slicer {
                    average_size: self.value("average_size"),
                    size_variation: self.value("size_variation"),
                    delay_us: self.value("delay"),
                }
            }
            ToxicType::LimitData => {
                let too_large = self.value("bytes") > MOST_PROBED_BYTES;
                refuse(too_large, "bytes", TOO_LARGE);
                ToxicEffect::LimitData {
                    bytes: self.value("bytes"),
                }
            }
        };
        (report.complaints() == before).then_some(toxic)
    }
}
