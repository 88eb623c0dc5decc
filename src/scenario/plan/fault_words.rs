//! Faults before they happen: what is done, what the target sees, what proves it.

use crate::model::{
    Fault, FaultKind, LinkEffect, LinkFault, Streams, ToxicEffect, format_duration,
};
use crate::scenario::Span;
use std::fmt::Write;
use std::time::Duration;

/// The faults of which the seed draws one differ only in their node.
pub fn inject(choices: &[Fault], lasting: Option<Span>) -> String {
    let Some(fault) = choices.first() else {
        return String::new();
    };
    let targets: Vec<String> = choices.iter().map(Fault::target).collect();
    let target = match targets.as_slice() {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    let mut text = format!("{}; proven {}", done(fault, &target), proven(fault));
    if let Some(bound) = fault.longer_than() {
        let _ = write!(
            text,
            "; it counts only if it lasts longer than {}",
            format_duration(bound)
        );
    }
    match lasting {
        Some(span) => {
            let _ = write!(text, "; {} after {span}", undone(fault.kind()));
        }
        None if fault.kind().stands() => text.push_str("; it stands until something undoes it"),
        None => {}
    }
    text
}

fn done(fault: &Fault, target: &str) -> String {
    match fault {
        Fault::Pause { .. } => format!("SIGSTOP {target}, which stands still"),
        Fault::Freeze { .. } => {
            format!("freeze {target}: it and its children stand still, and no signal wakes them")
        }
        Fault::Kill { .. } => format!("SIGKILL {target}"),
        Fault::Restart { .. } => format!("SIGKILL {target}, and start it again with its data"),
        Fault::RestartEmpty { .. } => {
            format!("SIGKILL {target}, and start it again without its data")
        }
        Fault::Promote { .. } => {
            format!("make {target} the primary; every link to the old one leads to it")
        }
        Fault::Links(links) => links_done(links, target),
        Fault::Disconnect { .. } => format!("take {target} off the network"),
        Fault::Loss { percent: 100, .. } => {
            format!("drop every packet between {target} and the other nodes")
        }
        Fault::Loss { percent, .. } => format!("lose {percent} % of the packets of {target}"),
        Fault::Skew { clock, by_ms, .. } => {
            let by = format_duration(Duration::from_millis(by_ms.unsigned_abs()));
            let way = if *by_ms < 0 { "back" } else { "on" };
            format!("set the {clock} clock of {target} {way} by {by}")
        }
        Fault::Drift { clock, ppm, .. } => {
            let speed = if *ppm < 0 { "slower" } else { "faster" };
            let ppm = ppm.unsigned_abs();
            format!("let the {clock} clock of {target} run {ppm} ppm {speed}")
        }
    }
}

fn links_done(fault: &LinkFault, target: &str) -> String {
    let sees = seen(&fault.effect);
    match fault.kind {
        FaultKind::Partition => format!("split the network ({target}): {sees}"),
        FaultKind::Isolate => format!("cut {target} off from everybody: {sees}"),
        kind => format!("{kind} {target}: {sees}"),
    }
}

/// What those at the ends of the link see.
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

fn proven(fault: &Fault) -> &'static str {
    match fault {
        Fault::Pause { .. } => "when every thread is in state T",
        Fault::Freeze { .. } => "when the engine says so and no thread can run",
        Fault::Kill { .. } => "when its end is seen",
        Fault::Restart { .. } => "when it is ready again, started anew, and has kept its data",
        Fault::RestartEmpty { .. } => "when it is ready again, started anew, and its data are gone",
        Fault::Promote { .. } => "when it says that it is the primary, and the links lead to it",
        Fault::Links(fault) => probed(&fault.effect),
        Fault::Disconnect { .. } | Fault::Loss { percent: 100, .. } => {
            "when no probe gets through any more"
        }
        Fault::Loss { .. } => "when some of many probes get lost",
        Fault::Skew { .. } | Fault::Drift { .. } => {
            "when its clock is read from inside, and the host's has not moved"
        }
    }
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

/// What happens to it at the end of its `for`.
fn undone(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Pause => "SIGCONT",
        FaultKind::Freeze => "thawed",
        FaultKind::Kill => "started again",
        FaultKind::Disconnect => "put on the network again",
        FaultKind::Skew | FaultKind::Drift => "put right",
        _ => "undone",
    }
}
