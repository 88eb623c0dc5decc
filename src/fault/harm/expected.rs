//! What a probe has to meet with while a fault is on.

use super::super::probe::{Answer, Outcome, Question};
use super::probes::words;
use crate::model::{LinkEffect, ToxicEffect};
use crate::toxiproxy::Stream;

/// A link without a fault answers in a small part of this, or of this many
/// times what it usually takes.
const SILENCE_MS: u64 = 500;
const SILENCE_TIMES: u64 = 4;
/// More at once than one line of Redis's may have would be refused.
const MOST_BYTES: usize = 32 * 1024;

/// What a probe over a link has to show.
pub enum Expected {
    Exactly(Outcome),
    /// Anything but an answer.
    NoAnswer {
        up_bytes: usize,
        down_bytes: usize,
    },
    /// At least this much later than usual.
    Slower {
        by_us: u64,
        up_bytes: usize,
        down_bytes: usize,
    },
    /// One of the above, on some connections only.
    Sometimes(Box<Expected>),
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
        match toxicity < 1.0 {
            true => Expected::Sometimes(Box::new(expected)),
            false => expected,
        }
    }

    pub fn no_answer() -> Expected {
        Expected::NoAnswer {
            up_bytes: 0,
            down_bytes: 0,
        }
    }

    /// For a link that usually takes this long.
    pub fn question(&self, usual_us: u64) -> Question {
        let silence_ms = SILENCE_MS.max(usual_us / 1_000 * SILENCE_TIMES);
        match self {
            Expected::Exactly(_) => Question::within(silence_ms),
            Expected::NoAnswer {
                up_bytes,
                down_bytes,
            } => Question {
                up_bytes: *up_bytes,
                down_bytes: *down_bytes,
                ..Question::within(silence_ms)
            },
            Expected::Slower {
                by_us,
                up_bytes,
                down_bytes,
            } => Question {
                up_bytes: *up_bytes,
                down_bytes: *down_bytes,
                // What is slow may well be slower than it has to be.
                ..Question::within(by_us / 1_000 * 4 + 5_000)
            },
            Expected::Sometimes(expected) => expected.question(usual_us),
        }
    }

    /// The error says what was seen instead.
    pub fn is_met(&self, answer: &Answer, usual_us: u64) -> Result<(), String> {
        let met = match self {
            Expected::Exactly(outcome) => answer.outcome == *outcome,
            Expected::NoAnswer { .. } => answer.outcome != Outcome::Answered,
            Expected::Slower { by_us, .. } => {
                if usual_us >= by_us / 2 {
                    return Err(format!(
                        "took {} ms before the fault, too long to see {} ms more",
                        usual_us / 1_000,
                        by_us / 1_000
                    ));
                }
                answer.outcome == Outcome::Answered && answer.took_us >= *by_us
            }
            Expected::Sometimes(expected) => return expected.is_met(answer, usual_us),
        };
        match met {
            true => Ok(()),
            false => Err(format!("was not as the fault means: {}", words(answer))),
        }
    }

    /// Whether a link that answers like this has nothing of the fault any more.
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
    let slower = |by_us: u64, bytes: usize| Expected::Slower {
        by_us,
        up_bytes: if upstream { bytes } else { 0 },
        down_bytes: if upstream { 0 } else { bytes },
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
        // A server that gets no question cannot close; one that does, may.
        ToxicEffect::Timeout { timeout_ms: 0 } if upstream => Expected::Exactly(Outcome::Silent),
        ToxicEffect::Bandwidth { rate_kb_per_s } => {
            // As much as passes in about half a second.
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
            // As many as take about a second.
            let slices = (1_000_000 / delay_us.max(1)).clamp(4, 100);
            let bytes = (average_size.max(1) * slices).min(MOST_BYTES as u64);
            slower(bytes / average_size.max(1) * delay_us / 2, bytes as usize)
        }
        ToxicEffect::LimitData { bytes } => {
            let bytes = (bytes as usize + 1).min(MOST_BYTES);
            Expected::NoAnswer {
                up_bytes: if upstream { bytes } else { 0 },
                down_bytes: if upstream { 0 } else { bytes },
            }
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
