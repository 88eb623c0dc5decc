//! Toxics by Toxiproxy's own names and in its units, for those who know them.

use crate::model::{LinkEffect, Streams, ToxicEffect};
use crate::scenario::values::{FASTEST_RATE, choice, number, share};
use crate::yaml::{Fields, Node, Report, Value};
use std::fmt;

/// The toxics that can be seen to bite.
/// No probe sends more at once.
const MOST_PROBED_BYTES: u64 = 16 * 1024;
const TOO_LARGE: &str = "more than 16384 bytes could not be seen to bite";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToxicType {
    Latency,
    Bandwidth,
    Timeout,
    ResetPeer,
    Slicer,
    LimitData,
}

/// Toxiproxy has these too; they delay only an end, or nothing at all.
const CANNOT_BE_SEEN: [&str; 2] = ["slow_close", "noop"];

impl ToxicType {
    pub const ALL: [ToxicType; 6] = [
        ToxicType::Latency,
        ToxicType::Bandwidth,
        ToxicType::Timeout,
        ToxicType::ResetPeer,
        ToxicType::Slicer,
        ToxicType::LimitData,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ToxicType::Latency => "latency",
            ToxicType::Bandwidth => "bandwidth",
            ToxicType::Timeout => "timeout",
            ToxicType::ResetPeer => "reset_peer",
            ToxicType::Slicer => "slicer",
            ToxicType::LimitData => "limit_data",
        }
    }

    /// Those it cannot do without; the others are 0 unless given.
    pub fn required(self) -> &'static [&'static str] {
        match self {
            ToxicType::Latency => &["latency"],
            ToxicType::Bandwidth => &["rate"],
            ToxicType::Timeout | ToxicType::ResetPeer => &[],
            ToxicType::Slicer => &["average_size", "delay"],
            ToxicType::LimitData => &["bytes"],
        }
    }

    pub fn attributes(self) -> &'static [&'static str] {
        match self {
            ToxicType::Latency => &["latency", "jitter"],
            ToxicType::Bandwidth => &["rate"],
            ToxicType::Timeout | ToxicType::ResetPeer => &["timeout"],
            ToxicType::Slicer => &["average_size", "size_variation", "delay"],
            ToxicType::LimitData => &["bytes"],
        }
    }
}

impl fmt::Display for ToxicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every attribute of any type.
const ATTRIBUTES: [&str; 8] = [
    "latency",
    "jitter",
    "rate",
    "timeout",
    "average_size",
    "size_variation",
    "delay",
    "bytes",
];

pub fn read(fields: &mut Fields, report: &mut Report) -> Option<LinkEffect> {
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
    Some(LinkEffect::Toxic {
        toxic,
        streams: streams?,
        toxicity: toxicity?,
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
    Some(choice(node, "type of toxic", &ToxicType::ALL, report)?.value)
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
        for name in ATTRIBUTES {
            let Some(node) = fields.optional(name) else {
                if kind.required().contains(&name) {
                    fields.required(name, report);
                }
                continue;
            };
            if !kind.attributes().contains(&name) {
                let message = format!(
                    "a toxic of type `{kind}` has no `{name}`; it has {}",
                    kind.attributes().join(", ")
                );
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

    /// What is not given is 0, as in Toxiproxy.
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
