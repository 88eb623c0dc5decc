//! The effects of link faults, by the names of the faults. The faults differ in nothing else:
//! `cut` injects and undoes all of them.

use super::*;
use crate::yaml::values::duration;
use strum::VariantArray;

/// A partition or an isolation.
pub const CUT: Form = Form {
    keys: || {
        let by = json!({ "enum": words(By::VARIANTS) });
        vec![vec![Key::optional("by", by)]]
    },
    read: read_by,
    ..Form::PLAIN
};

pub const REFUSE: Form = Form {
    read: |_, _| Some(Effect::Links(LinkEffect::Refuse)),
    ..Form::PLAIN
};

pub const BLACKHOLE: Form = Form {
    read: |_, _| toxic(LOSES_ALL, Streams::Both),
    ..Form::PLAIN
};

pub const ONE_WAY: Form = Form {
    read: |_, _| toxic(LOSES_ALL, Streams::Data),
    ..Form::PLAIN
};

pub const STALL: Form = Form {
    read: |_, _| toxic(HOLDS_BACK_ALL, Streams::Data),
    ..Form::PLAIN
};

pub const RESET: Form = Form {
    read: |_, _| toxic(ToxicEffect::ResetPeer { timeout_ms: 0 }, Streams::Both),
    ..Form::PLAIN
};

pub const LATENCY: Form = Form {
    keys: || {
        let duration = json!({ "$ref": "#/$defs/duration" });
        vec![vec![
            Key::required("delay", duration.clone()),
            Key::optional("jitter", duration),
        ]]
    },
    read: |fields, report| toxic(read_latency(fields, report)?, Streams::Data),
    ..Form::PLAIN
};

pub const BANDWIDTH: Form = Form {
    keys: || {
        let rate =
            json!({ "type": "string", "pattern": r"^[1-9]\d*KB/s$", "description": "20KB/s" });
        vec![vec![Key::required("rate", rate)]]
    },
    read: |fields, report| {
        let node = fields.required("rate", report)?;
        let rate_kb_per_s = rate(node, report)?.value;
        toxic(ToxicEffect::Bandwidth { rate_kb_per_s }, Streams::Data)
    },
    ..Form::PLAIN
};

/// The way in which a partition or an isolation cuts, named after the fault that does the same.
#[derive(Clone, Copy, Default, strum::Display, VariantArray)]
#[strum(serialize_all = "lowercase")]
enum By {
    #[default]
    Blackhole,
    Refuse,
    Stall,
}

const LOSES_ALL: ToxicEffect = ToxicEffect::Timeout { timeout_ms: 0 };
const HOLDS_BACK_ALL: ToxicEffect = ToxicEffect::Bandwidth { rate_kb_per_s: 0 };

fn toxic(toxic: ToxicEffect, streams: Streams) -> Option<Effect> {
    Some(Effect::Links(LinkEffect::Toxic {
        toxic,
        streams,
        toxicity: 1.0,
    }))
}

/// Reads how to cut everything between the sides, in both directions.
fn read_by(fields: &mut Fields<'_>, report: &mut Report) -> Option<Effect> {
    let by = match fields.optional("by") {
        None => By::default(),
        Some(node) => choice(node, "way to cut", By::VARIANTS, report)?.value,
    };
    match by {
        By::Blackhole => toxic(LOSES_ALL, Streams::Both),
        By::Refuse => Some(Effect::Links(LinkEffect::Refuse)),
        By::Stall => toxic(HOLDS_BACK_ALL, Streams::Both),
    }
}

fn read_latency(fields: &mut Fields<'_>, report: &mut Report) -> Option<ToxicEffect> {
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
        // The delay is drawn from both sides of its mean, and a delay of 0ms could not be seen.
        report.add(jitter.place, "a jitter is shorter than the delay");
        return None;
    }
    Some(ToxicEffect::Latency {
        latency_ms: delay.value.as_millis() as u64,
        jitter_ms: jitter.map_or(0, |at| at.value.as_millis() as u64),
    })
}

/// The fastest rate that a probe can still see as slow.
pub const FASTEST_RATE: u64 = 2000;

/// Reads a rate: `20KB/s`.
fn rate(node: &Node, report: &mut Report) -> Option<At<u64>> {
    parsed(node, "a rate", report, |text| {
        let number = text.strip_suffix("KB/s");
        let number = number.filter(|number| number.chars().all(|c| c.is_ascii_digit()));
        match number.and_then(|number| number.parse().ok()) {
            None => Err(format!("`{text}` is not a rate; write such as 20KB/s")),
            Some(0) => Err("at 0KB/s nothing arrives at all: use `stall`".to_owned()),
            Some(rate) if rate > FASTEST_RATE => Err(format!(
                "a rate is 1KB/s to {FASTEST_RATE}KB/s: a faster one could not be seen to bite"
            )),
            Some(rate) => Ok(rate),
        }
    })
}
