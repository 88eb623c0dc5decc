//! Words of a plan for link faults: what the ends of the link see, and what proves it.

use super::*;
use crate::model::{LinkFault, format_duration};
use std::fmt::Write;

pub fn words(fault: &LinkFault, target: &str) -> String {
    let sees = seen(&fault.effect);
    let done = match fault.kind {
        FaultKind::Partition => format!("split the network ({target})"),
        FaultKind::Isolate => format!("cut {target} off from everybody"),
        kind => format!("{kind} {target}"),
    };
    format!("{done}: {sees}; proven {}", probed(&fault.effect))
}

/// Returns what both ends of the link see.
fn seen(effect: &LinkEffect) -> String {
    let LinkEffect::Toxic {
        toxic,
        streams,
        toxicity,
    } = effect
    else {
        return "connections are refused, and open ones closed".to_owned();
    };
    let bytes = match streams {
        Streams::Both => "bytes of both directions",
        Streams::Data => "bytes of this direction",
    };
    let ms = |ms: u64| format_duration(Duration::from_millis(ms));
    let mut text = match *toxic {
        ToxicEffect::Timeout { timeout_ms: 0 } => {
            format!("{bytes} are acknowledged, and none arrives")
        }
        ToxicEffect::Timeout { timeout_ms } => {
            let after = ms(timeout_ms);
            format!("{bytes} get lost, and connections are closed after {after}")
        }
        ToxicEffect::Bandwidth { rate_kb_per_s: 0 } => {
            format!("{bytes} are held back, and arrive when it ends")
        }
        ToxicEffect::Bandwidth { rate_kb_per_s } => {
            format!("{bytes} arrive at {rate_kb_per_s} KB/s")
        }
        ToxicEffect::ResetPeer { timeout_ms: 0 } => "connections are reset".to_owned(),
        ToxicEffect::ResetPeer { timeout_ms } => {
            format!("connections are reset after {}", ms(timeout_ms))
        }
        ToxicEffect::Latency {
            latency_ms,
            jitter_ms,
        } => {
            let mut text = format!("{bytes} arrive {} late", ms(latency_ms));
            if jitter_ms > 0 {
                let _ = write!(text, ", give or take {}", ms(jitter_ms));
            }
            text
        }
        ToxicEffect::Slicer {
            average_size,
            delay_us,
            ..
        } => format!("{bytes} arrive in slices of about {average_size}, {delay_us} µs apart"),
        ToxicEffect::LimitData { bytes: limit } => {
            format!("connections are closed after {limit} bytes")
        }
    };
    if *toxicity < 1.0 {
        let _ = write!(text, " (on a share of {toxicity} of the connections)");
    }
    text
}

fn probed(effect: &LinkEffect) -> &'static str {
    match effect {
        LinkEffect::Refuse => "when a probe through the link is refused, and one beside it is not",
        LinkEffect::Toxic { toxic, .. } => match toxic {
            ToxicEffect::Timeout { .. } | ToxicEffect::Bandwidth { rate_kb_per_s: 0 } => {
                "when a probe through the link gets no answer, and one beside it does"
            }
            ToxicEffect::ResetPeer { .. } => {
                "when a probe through the link is reset, and one beside it is not"
            }
            ToxicEffect::LimitData { .. } => {
                "when a probe through the link is cut short, and one beside it is not"
            }
            ToxicEffect::Latency { .. }
            | ToxicEffect::Bandwidth { .. }
            | ToxicEffect::Slicer { .. } => "when a probe's round trip takes that much longer",
        },
    }
}
