//! Links as a scenario names them, and what becomes of what they carry.

use crate::model::{FaultKind, LinkEffect, LinkPattern, Streams, ToxicEffect};
use crate::scenario::values::{choice, duration, rate};
use crate::yaml::{At, Fields, Node, Report, Value};
use std::fmt;

/// How a partition or an isolation cuts.
#[derive(Clone, Copy, Default)]
pub enum By {
    #[default]
    Blackhole,
    Refuse,
    Stall,
}

impl By {
    pub const ALL: [By; 3] = [By::Blackhole, By::Refuse, By::Stall];

    fn kind(self) -> FaultKind {
        match self {
            By::Blackhole => FaultKind::Blackhole,
            By::Refuse => FaultKind::Refuse,
            By::Stall => FaultKind::Stall,
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind().fmt(f)
    }
}

/// Everything between the sides is cut, in both directions.
pub fn read_by(fields: &mut Fields, report: &mut Report) -> Option<LinkEffect> {
    let by = match fields.optional("by") {
        None => By::default(),
        Some(node) => choice(node, "way to cut", &By::ALL, report)?.value,
    };
    Some(match by {
        By::Blackhole => toxic(LOSES_ALL, Streams::Both),
        By::Refuse => LinkEffect::Refuse,
        By::Stall => toxic(HOLDS_BACK_ALL, Streams::Both),
    })
}

/// What a fault of links does to them; None where something in it could not be
/// read, and for kinds that have no effect of their own.
pub fn read_effect(
    kind: FaultKind,
    fields: &mut Fields,
    report: &mut Report,
) -> Option<LinkEffect> {
    Some(match kind {
        FaultKind::Refuse => LinkEffect::Refuse,
        FaultKind::Blackhole => toxic(LOSES_ALL, Streams::Both),
        FaultKind::Reset => toxic(ToxicEffect::ResetPeer { timeout_ms: 0 }, Streams::Both),
        FaultKind::OneWay => toxic(LOSES_ALL, Streams::Data),
        FaultKind::Stall => toxic(HOLDS_BACK_ALL, Streams::Data),
        FaultKind::Latency => toxic(read_latency(fields, report)?, Streams::Data),
        FaultKind::Bandwidth => {
            let node = fields.required("rate", report)?;
            let rate_kb_per_s = rate(node, report)?.value;
            toxic(ToxicEffect::Bandwidth { rate_kb_per_s }, Streams::Data)
        }
        _ => return None,
    })
}

const LOSES_ALL: ToxicEffect = ToxicEffect::Timeout { timeout_ms: 0 };
const HOLDS_BACK_ALL: ToxicEffect = ToxicEffect::Bandwidth { rate_kb_per_s: 0 };

fn toxic(toxic: ToxicEffect, streams: Streams) -> LinkEffect {
    LinkEffect::Toxic {
        toxic,
        streams,
        toxicity: 1.0,
    }
}

fn read_latency(fields: &mut Fields, report: &mut Report) -> Option<ToxicEffect> {
    let delay = fields.required("delay", report);
    let jitter = fields.optional("jitter");
    let delay = delay.and_then(|node| duration(node, report));
    let jitter = match jitter {
        None => None,
        Some(node) => Some(duration(node, report)?),
    };
    let delay = delay?;
    if delay.value.is_zero() {
        report.add(delay.place, "a delay is longer than 0ms");
        return None;
    }
    if let Some(jitter) = &jitter
        && jitter.value >= delay.value
    {
        // The delay is drawn from both sides, and one of 0ms could not be seen.
        report.add(jitter.place, "a jitter is shorter than the delay");
        return None;
    }
    Some(ToxicEffect::Latency {
        latency_ms: delay.value.as_millis() as u64,
        jitter_ms: jitter.map_or(0, |at| at.value.as_millis() as u64),
    })
}

/// `a -> redis-1`, or a list of those.
pub fn read_links(node: &Node, report: &mut Report) -> Option<Vec<At<LinkPattern>>> {
    let nodes = match &node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(node),
    };
    if nodes.is_empty() {
        report.add(node.place, "name at least one link, such as `a -> redis`");
    }
    let mut patterns: Vec<At<LinkPattern>> = Vec::new();
    for node in nodes {
        let Some(text) = node.text("a link, such as `a -> redis`", report) else {
            continue;
        };
        let Some(pattern) = LinkPattern::parse(&text.value) else {
            let message = format!(
                "`{}` is not a link; write who connects to whom, such as `a -> redis` or `a -> any`",
                text.value
            );
            report.add(text.place, message);
            continue;
        };
        if patterns.iter().any(|known| known.value == pattern) {
            report.add(text.place, format!("`{pattern}` stands here twice"));
        }
        patterns.push(text.map(|_| pattern));
    }
    (!patterns.is_empty()).then_some(patterns)
}

/// The sides of a partition: `[[a, redis-1], [b, redis-2]]`.
pub fn read_groups(node: &Node, report: &mut Report) -> Option<Vec<Vec<At<String>>>> {
    let sides = node.list("groups, such as [[a], [redis]]", report)?;
    if sides.len() < 2 {
        report.add(node.place, "a partition has at least two groups");
    }
    let mut groups: Vec<Vec<At<String>>> = Vec::new();
    for side in sides {
        let Some(names) = side.list("nodes", report) else {
            continue;
        };
        if names.is_empty() {
            report.add(side.place, "a group has at least one node");
        }
        let names = names.iter();
        groups.push(names.filter_map(|n| n.text("a node", report)).collect());
    }
    Some(groups)
}
