//! A toxic in requests and answers:
//! `{"attributes":{},"name","type","stream","toxicity"}`.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use strum::{Display, EnumString, IntoStaticStr};

/// A wait longer than a year is a mistake.
const LONGEST_MS: u64 = 365 * 24 * 60 * 60 * 1_000;
/// A terabyte per second.
const FASTEST_KB_PER_S: u64 = 1_000_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WireToxic", into = "WireToxic")]
pub struct Toxic {
    /// Unique over both streams of a proxy.
    pub name: String,
    pub stream: Stream,
    /// The share of connections that it affects, from 0 to 1.
    pub toxicity: f64,
    pub kind: ToxicKind,
}

impl Toxic {
    /// Makes a toxic for every connection, with the name that the server would choose.
    pub fn new(stream: Stream, kind: ToxicKind) -> Toxic {
        Toxic {
            name: default_name(kind.type_name(), stream.name()),
            stream,
            toxicity: 1.0,
            kind,
        }
    }
}

/// A direction: upstream is from the client to the server, downstream the way back.
#[derive(Display, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    Upstream,
    Downstream,
}

impl Stream {
    pub const ALL: [Stream; 2] = [Stream::Upstream, Stream::Downstream];

    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToxicKind {
    /// Every byte arrives later by this much, in order.
    Latency { latency_ms: u64, jitter_ms: u64 },
    /// A rate of 0 holds everything back.
    Bandwidth { rate_kb_per_s: u64 },
    /// The end of the stream arrives later by this much.
    SlowClose { delay_ms: u64 },
    /// Data is dropped, and the connection is closed after this long without any; 0 never
    /// closes.
    Timeout { timeout_ms: u64 },
    /// Both sides are reset after this long.
    ResetPeer { timeout_ms: u64 },
    /// Data leaves in small pieces.
    Slicer {
        average_size: u64,
        size_variation: u64,
        delay_us: u64,
    },
    /// The connection is closed after this many bytes.
    LimitData { bytes: u64 },
    /// Everything passes.
    Noop,
}

/// A change of a toxic; anything left out stays as it is. The kind must be the one that
/// the toxic has: name, type and stream never change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ToxicChange {
    pub kind: Option<ToxicKind>,
    pub toxicity: Option<f64>,
}

impl Serialize for ToxicChange {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        let mut body = Map::new();
        if let Some(kind) = self.kind {
            body.insert("attributes".into(), kind.attributes().into());
        }
        if let Some(toxicity) = self.toxicity {
            body.insert("toxicity".into(), toxicity.into());
        }
        body.serialize(output)
    }
}

/// A reason why something is not a toxic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToxicProblem {
    #[error("stream was invalid, can be either upstream or downstream")]
    Stream,
    #[error("invalid toxic type")]
    Type,
    #[error("attribute {name} is {value}; it must be {wanted}")]
    Attribute {
        name: &'static str,
        value: String,
        wanted: String,
    },
    #[error("toxicity is {0}; it must be from 0 to 1")]
    Toxicity(String),
}

impl ToxicKind {
    pub fn type_name(&self) -> &'static str {
        self.into()
    }

    pub fn attributes(&self) -> Map<String, Value> {
        let pairs: &[(&str, u64)] = match *self {
            ToxicKind::Latency {
                latency_ms,
                jitter_ms,
            } => &[("latency", latency_ms), ("jitter", jitter_ms)],
            ToxicKind::Bandwidth { rate_kb_per_s } => &[("rate", rate_kb_per_s)],
            ToxicKind::SlowClose { delay_ms } => &[("delay", delay_ms)],
            ToxicKind::Timeout { timeout_ms } | ToxicKind::ResetPeer { timeout_ms } => {
                &[("timeout", timeout_ms)]
            }
            ToxicKind::Slicer {
                average_size,
                size_variation,
                delay_us,
            } => &[
                ("average_size", average_size),
                ("size_variation", size_variation),
                ("delay", delay_us),
            ],
            ToxicKind::LimitData { bytes } => &[("bytes", bytes)],
            ToxicKind::Noop => &[],
        };
        let pairs = pairs
            .iter()
            .map(|&(name, value)| (name.into(), value.into()));
        pairs.collect()
    }

    /// Reads the attributes. Unknown ones are ignored, missing ones are zero.
    pub(super) fn from_attributes(
        type_name: &str,
        attributes: &Map<String, Value>,
    ) -> Result<ToxicKind, ToxicProblem> {
        let at_most = |name, most| attribute(attributes, name, 0, most);
        Ok(match type_name {
            "latency" => ToxicKind::Latency {
                latency_ms: at_most("latency", LONGEST_MS)?,
                jitter_ms: at_most("jitter", LONGEST_MS)?,
            },
            "bandwidth" => ToxicKind::Bandwidth {
                rate_kb_per_s: at_most("rate", FASTEST_KB_PER_S)?,
            },
            "slow_close" => ToxicKind::SlowClose {
                delay_ms: at_most("delay", LONGEST_MS)?,
            },
            "timeout" => ToxicKind::Timeout {
                timeout_ms: at_most("timeout", LONGEST_MS)?,
            },
            "reset_peer" => ToxicKind::ResetPeer {
                timeout_ms: at_most("timeout", LONGEST_MS)?,
            },
            "slicer" => {
                // Empty pieces would never come to an end.
                let average_size = attribute(attributes, "average_size", 1, u32::MAX.into())?;
                ToxicKind::Slicer {
                    average_size,
                    size_variation: at_most("size_variation", average_size)?,
                    delay_us: at_most("delay", LONGEST_MS * 1_000)?,
                }
            }
            "limit_data" => ToxicKind::LimitData {
                bytes: at_most("bytes", i64::MAX as u64)?,
            },
            "noop" => ToxicKind::Noop,
            _ => return Err(ToxicProblem::Type),
        })
    }
}

pub(super) fn checked_toxicity(toxicity: f64) -> Result<f64, ToxicProblem> {
    match (0.0..=1.0).contains(&toxicity) {
        true => Ok(toxicity),
        false => Err(ToxicProblem::Toxicity(toxicity.to_string())),
    }
}

fn attribute(
    attributes: &Map<String, Value>,
    name: &'static str,
    least: u64,
    most: u64,
) -> Result<u64, ToxicProblem> {
    let value = match attributes.get(name) {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_u64(),
    };
    value
        .filter(|value| (least..=most).contains(value))
        .ok_or_else(|| ToxicProblem::Attribute {
            name,
            value: attributes.get(name).unwrap_or(&Value::Null).to_string(),
            wanted: format!("a whole number from {least} to {most}"),
        })
}

fn default_name(type_name: &str, stream: &str) -> String {
    format!("{type_name}_{stream}")
}

/// The fields as in JSON, in the original's order.
#[derive(Serialize, Deserialize)]
pub(super) struct WireToxic {
    attributes: Option<Map<String, Value>>,
    name: Option<String>,
    #[serde(rename = "type")]
    type_name: Option<String>,
    stream: Option<String>,
    #[serde(serialize_with = "whole_where_it_is")]
    toxicity: Option<f64>,
}

impl TryFrom<WireToxic> for Toxic {
    type Error = ToxicProblem;

    fn try_from(wire: WireToxic) -> Result<Toxic, ToxicProblem> {
        let sent = wire.stream.as_deref().unwrap_or("downstream");
        let stream = sent.to_ascii_lowercase().parse();
        let stream = stream.map_err(|_| ToxicProblem::Stream)?;
        let type_name = wire.type_name.unwrap_or_default();
        let attributes = wire.attributes.unwrap_or_default();
        let kind = ToxicKind::from_attributes(&type_name, &attributes)?;
        let name = wire.name.filter(|name| !name.is_empty());
        Ok(Toxic {
            // The original names it after the stream as it was sent, in any case.
            name: name.unwrap_or_else(|| default_name(&type_name, sent)),
            stream,
            toxicity: checked_toxicity(wire.toxicity.unwrap_or(1.0))?,
            kind,
        })
    }
}

impl From<Toxic> for WireToxic {
    fn from(toxic: Toxic) -> WireToxic {
        WireToxic {
            attributes: Some(toxic.kind.attributes()),
            name: Some(toxic.name),
            type_name: Some(toxic.kind.type_name().to_owned()),
            stream: Some(toxic.stream.name().to_owned()),
            toxicity: Some(toxic.toxicity),
        }
    }
}

/// Writes `1` and not `1.0`, as the original does and as scripts expect.
fn whole_where_it_is<S: Serializer>(value: &Option<f64>, output: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(whole) if *whole == 0.0 || *whole == 1.0 => output.serialize_u8(*whole as u8),
        value => value.serialize(output),
    }
}
