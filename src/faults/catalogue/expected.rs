//! The outcome that a probe must see while a fault is active.

use super::super::probe::Answer;
use super::probes::words;
use super::*;
use toxiproxy_server::Stream;

/// A link without a fault answers in a small part of this time, or of this many times its usual
/// time.
const SILENCE_MS: u64 = 500;
const SILENCE_TIMES: u64 = 4;
/// Redis would refuse more bytes than this in one line.
const MOST_BYTES: usize = 32 * 1024;

pub enum Expected {
    Exactly(Outcome),
    /// Any outcome but an answer.
    NoAnswer(Volume),
    /// An answer, at least this much later than usual.
    Slower {
        by_us: u64,
        volume: Volume,
    },
    /// One of the above, on some connections only.
    Sometimes(Box<Expected>),
}

/// The bytes that a probe sends and asks for, so that a fault of bytes can be seen.
#[derive(Clone, Copy, Default)]
pub struct Volume {
    up: usize,
    down: usize,
}

impl Expected {
    pub fn of(effect: &LinkEffect, streams: &[Stream]) -> Expected {
        let (toxic, toxicity) = match effect {
            LinkEffect::Refuse => return Expected::Exactly(Outcome::Refused),
            LinkEffect::Toxic {
                toxic, toxicity, ..
            } => (toxic, *toxicity),
        };
        let expected = of_toxic(toxic, streams.contains(&Stream::Upstream));
        if toxicity < 1.0 {
            return Expected::Sometimes(Box::new(expected));
        }
        expected
    }

    pub fn no_answer() -> Expected {
        Expected::NoAnswer(Volume::default())
    }

    /// Returns the question for a link that usually takes this long.
    pub fn question(&self, usual_us: u64) -> Question {
        let silence_ms = SILENCE_MS.max(usual_us / 1_000 * SILENCE_TIMES);
        let (volume, within_ms) = match self {
            Expected::Exactly(_) => (Volume::default(), silence_ms),
            Expected::NoAnswer(volume) => (*volume, silence_ms),
            // A slow link may well be slower than it has to be.
            Expected::Slower { by_us, volume } => (*volume, by_us / 1_000 * 4 + 5_000),
            Expected::Sometimes(expected) => return expected.question(usual_us),
        };
        Question {
            up_bytes: volume.up,
            down_bytes: volume.down,
            ..Question::within(within_ms)
        }
    }

    /// Fails with what was seen over the link instead.
    pub fn is_met(&self, link: &Link, answer: &Answer, usual_us: u64) -> Proof {
        let met = match self {
            Expected::Exactly(outcome) => answer.outcome == *outcome,
            Expected::NoAnswer(_) => answer.outcome != Outcome::Answered,
            Expected::Slower { by_us, .. } => {
                if usual_us >= by_us / 2 {
                    return Err(UnprovenReason::SlowBefore {
                        link: link.clone(),
                        took_ms: usual_us / 1_000,
                        more_ms: by_us / 1_000,
                    });
                }
                answer.outcome == Outcome::Answered && answer.took_us >= *by_us
            }
            Expected::Sometimes(expected) => return expected.is_met(link, answer, usual_us),
        };
        if met {
            return Ok(());
        }
        Err(UnprovenReason::ProbeUnlike {
            link: link.clone(),
            seen: words(answer),
        })
    }

    /// Returns whether the answer shows nothing of the fault any more.
    pub fn is_over(&self, answer: &Answer) -> bool {
        let answered = answer.outcome == Outcome::Answered;
        match self {
            Expected::Slower { by_us, .. } => answered && answer.took_us < *by_us,
            Expected::Sometimes(expected) => expected.is_over(answer),
            _ => answered,
        }
    }

    pub fn tries(&self, most: usize) -> usize {
        match self {
            Expected::Sometimes(_) => most,
            // Jitter can make one delay short.
            Expected::Slower { .. } => 5,
            _ => 1,
        }
    }
}

fn of_toxic(toxic: &ToxicEffect, upstream: bool) -> Expected {
    let volume = |bytes: usize| Volume {
        up: if upstream { bytes } else { 0 },
        down: if upstream { 0 } else { bytes },
    };
    let slower = |by_us: u64, bytes: usize| Expected::Slower {
        by_us,
        volume: volume(bytes),
    };
    match *toxic {
        ToxicEffect::Latency {
            latency_ms,
            jitter_ms,
        } => {
            let least_ms = latency_ms.saturating_sub(jitter_ms).max(latency_ms / 2);
            slower(least_ms * 1_000, 0)
        }
        ToxicEffect::Bandwidth { rate_kb_per_s: 0 } => Expected::Exactly(Outcome::Silent),
        // A server that gets no question cannot close the connection; one that does, may.
        ToxicEffect::Timeout { timeout_ms: 0 } if upstream => Expected::Exactly(Outcome::Silent),
        ToxicEffect::Bandwidth { rate_kb_per_s } => {
            // As many bytes as pass in about half a second.
            let bytes = (rate_kb_per_s as usize * 512).clamp(512, MOST_BYTES);
            let takes_us = bytes as u64 * 1_000 / rate_kb_per_s;
            slower(takes_us / 2, bytes)
        }
        ToxicEffect::ResetPeer { timeout_ms: 0 } => Expected::Exactly(Outcome::Reset),
        ToxicEffect::Timeout { .. } | ToxicEffect::ResetPeer { .. } => Expected::no_answer(),
        ToxicEffect::Slicer {
            average_size,
            delay_us,
            ..
        } => {
            // As many slices as take about a second.
            let slices = (1_000_000 / delay_us.max(1)).clamp(4, 100);
            let bytes = (average_size.max(1) * slices).min(MOST_BYTES as u64);
            slower(bytes / average_size.max(1) * delay_us / 2, bytes as usize)
        }
        ToxicEffect::LimitData { bytes } => {
            Expected::NoAnswer(volume((bytes as usize + 1).min(MOST_BYTES)))
        }
    }
}

impl Question {
    pub fn within(within_ms: u64) -> Question {
        Question {
            within_ms,
            ..Question::default()
        }
    }
}
