//! The decision whether a write is allowed, without I/O.

#[cfg(test)]
mod tests;

use super::commit::Ledger;
use super::limits::MAX_HELD_BYTES;
#[cfg(debug_assertions)]
use super::mutant::{self, Mutant, Scene};
use crate::model::{BodyHash, Fence, FencingToken, LogRow, RowOutcome, RowValue};
use bytes::Bytes;
use std::collections::HashMap;

/// The sum of all accepted writes so far. It is stored only in the log: replaying the rows
/// gives the same state again.
pub(super) struct State {
    fence: Fence,
    keys: HashMap<String, Entry>,
    /// The size of all entries together.
    held_bytes: usize,
    most_bytes: usize,
    /// The position of the last row.
    position: u64,
    #[cfg(debug_assertions)]
    mutant: Option<Mutant>,
    /// The key that [`Mutant::LoseKey`] has lost.
    #[cfg(debug_assertions)]
    lost: Option<String>,
}

#[derive(Clone, Debug)]
pub struct WriteRequest {
    pub key: String,
    pub token: Option<FencingToken>,
    pub token_seq: u64,
    pub owner: Option<String>,
    /// The position that the read before this write returned.
    pub based_on: Option<u64>,
    pub body: Bytes,
}

/// A token and the holder's own counter for it, compared in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub token: FencingToken,
    pub seq: u64,
}

/// The row to log, and the answer to give once it is durable.
#[derive(Debug)]
pub(super) struct Decision {
    pub row: LogRow,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The write was applied, by this request or by the one that it repeats.
    Accepted {
        position: u64,
        max_fence: Option<FencingToken>,
    },
    Rejected {
        seen: Pair,
        got: Pair,
    },
}

/// The reason why a write is neither decided nor logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecided {
    /// With the fence on, a write must have a token.
    TokenMissing,
    /// The value would exceed what may be held in memory.
    Full,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub value: RowValue,
    pub max_fence: Option<FencingToken>,
    pub position: u64,
}

/// The decision of the fence about one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    Apply,
    /// It repeats the latest write, which is at this position.
    Repeat {
        position: u64,
    },
    Refuse {
        seen: Pair,
        got: Pair,
    },
}

/// The size of an entry without its texts, including the overhead of the map and the allocator.
const ENTRY_BYTES: usize = 256;

struct Entry {
    value: Bytes,
    position: u64,
    /// The write with the highest pair. With the fence on this is always the current value;
    /// with the fence off a lower token may have overwritten it.
    highest: Option<Highest>,
}

/// The write of a key that later ones are compared with.
#[derive(Clone, Debug)]
pub(super) struct Highest {
    pub pair: Pair,
    pub owner: Option<String>,
    pub body: Bytes,
    pub position: u64,
}

impl Ruling {
    /// Returns what the fence says to a write. Every kind of resource decides by this.
    pub fn of(write: &WriteRequest, highest: Option<&Highest>) -> Result<Ruling, Undecided> {
        let got = Pair {
            token: write.token.ok_or(Undecided::TokenMissing)?,
            seq: write.token_seq,
        };
        let Some(highest) = highest else {
            return Ok(Ruling::Apply);
        };
        // The lock granted the token to one owner, so nobody else can go on counting with it.
        let is_own = write.owner == highest.owner;
        let seen = highest.pair;
        Ok(if got.token > seen.token || (is_own && got > seen) {
            Ruling::Apply
        } else if is_own && got == seen && write.body == highest.body {
            let position = highest.position;
            Ruling::Repeat { position }
        } else {
            Ruling::Refuse { seen, got }
        })
    }
}

impl State {
    pub fn new(fence: Fence) -> State {
        State {
            fence,
            keys: HashMap::new(),
            held_bytes: 0,
            most_bytes: MAX_HELD_BYTES,
            position: 0,
            #[cfg(debug_assertions)]
            mutant: None,
            #[cfg(debug_assertions)]
            lost: None,
        }
    }

    pub fn fence(&self) -> Fence {
        self.fence
    }

    #[cfg(debug_assertions)]
    pub fn misbehave(&mut self, mutant: Option<Mutant>) {
        self.mutant = mutant;
    }

    pub fn decide(&mut self, write: WriteRequest, at_ns: u64) -> Result<Decision, Undecided> {
        let entry = self.keys.get(&write.key);
        let highest = entry.and_then(|entry| entry.highest.as_ref());
        let seen = highest.map(|highest| highest.pair.token);
        let ruling = self.rule(&write, highest)?;
        #[cfg(debug_assertions)]
        let ruling = {
            let scene = Scene {
                write: &write,
                highest: highest.map(|highest| (highest.pair, highest.position)),
                position: self.position,
            };
            mutant::bend(self.mutant, ruling, &scene)
        };
        if ruling == Ruling::Apply && !self.has_room(&write, entry) {
            return Err(Undecided::Full);
        }

        self.position += 1;
        let position = self.position;
        let mut row = LogRow {
            seq: position,
            at_ns,
            key: write.key,
            outcome: RowOutcome::Accepted,
            token: write.token,
            token_seq: write.token_seq,
            seen,
            owner: write.owner,
            based_on: write.based_on,
            body: Some(BodyHash::of(&write.body)),
            value: None,
        };
        let answer = match ruling {
            Ruling::Apply => {
                row.value = Some(RowValue::from_bytes(&write.body));
                self.apply(&row, write.body);
                #[cfg(debug_assertions)]
                let position = mutant::name(self.mutant, position);
                Answer::Accepted {
                    position,
                    max_fence: seen.max(row.token),
                }
            }
            Ruling::Repeat { position } => {
                row.outcome = RowOutcome::Duplicate;
                Answer::Accepted {
                    position,
                    max_fence: seen,
                }
            }
            Ruling::Refuse { seen, got } => {
                row.outcome = RowOutcome::Rejected;
                #[cfg(debug_assertions)]
                if self.mutant == Some(Mutant::ApplyRefused)
                    && let Some(entry) = self.keys.get_mut(&row.key)
                {
                    entry.value = write.body;
                }
                Answer::Rejected { seen, got }
            }
        };
        Ok(Decision { row, answer })
    }

    /// Forgets everything, and reads this log.
    pub fn start_again(&mut self, log: &[LogRow]) {
        *self = State {
            #[cfg(debug_assertions)]
            mutant: self.mutant,
            ..State::new(self.fence)
        };
        log.iter().for_each(|row| self.replay(row.clone()));
    }

    /// Returns the accepted write with the highest token of a key.
    pub fn highest(&self, key: &str) -> Option<&Highest> {
        self.keys.get(key)?.highest.as_ref()
    }

    /// Applies a row of the log as it was decided, whatever the fence is now.
    pub fn replay(&mut self, row: LogRow) {
        self.position = row.seq;
        #[cfg(debug_assertions)]
        let row = mutant::forget(self.mutant, row);
        if row.outcome == RowOutcome::Accepted {
            let value = row.value.as_ref().map_or(&[][..], RowValue::as_bytes);
            self.apply(&row, Bytes::copy_from_slice(value));
        }
    }

    pub fn get(&self, key: &str) -> Option<Stored> {
        #[cfg(debug_assertions)]
        if self.lost.as_deref() == Some(key) {
            return None;
        }
        self.keys.get(key).map(|entry| Stored {
            value: RowValue::from_bytes(&entry.value),
            max_fence: entry.highest.as_ref().map(|highest| highest.pair.token),
            position: entry.position,
        })
    }

    fn rule(&self, write: &WriteRequest, highest: Option<&Highest>) -> Result<Ruling, Undecided> {
        match self.fence {
            Fence::Off => Ok(Ruling::Apply),
            Fence::On => Ruling::of(write, highest),
        }
    }

    fn apply(&mut self, row: &LogRow, body: Bytes) {
        let position = row.seq;
        let before = self.keys.remove(&row.key);
        self.held_bytes -= before.as_ref().map_or(0, |entry| entry.bytes(&row.key));
        let before = before.and_then(|entry| entry.highest);
        let offered = row.token.map(|token| Highest {
            pair: Pair {
                token,
                seq: row.token_seq,
            },
            owner: row.owner.clone(),
            body: body.clone(),
            position,
        });
        let highest = match (before, offered) {
            (Some(before), Some(offered)) if before.pair > offered.pair => Some(before),
            (before, offered) => offered.or(before),
        };
        let entry = Entry {
            value: body,
            position,
            highest,
        };
        self.held_bytes += entry.bytes(&row.key);
        self.keys.insert(row.key.clone(), entry);
    }

    /// Returns whether a write fits. One that needs no more than what it replaces always does.
    fn has_room(&self, write: &WriteRequest, before: Option<&Entry>) -> bool {
        let owner = write.owner.as_ref().map_or(0, String::len);
        // With the fence off, the value of the highest token may have to be kept beside this one.
        let highest = before.and_then(|entry| entry.highest.as_ref());
        let beside = match self.fence {
            Fence::On => 0,
            Fence::Off => highest.map_or(0, |highest| highest.body.len()),
        };
        let after = ENTRY_BYTES + write.key.len() + owner + write.body.len() + beside;
        let before = before.map_or(0, |entry| entry.bytes(&write.key));
        after <= before || self.held_bytes - before + after <= self.most_bytes
    }
}

pub(super) type WriteReply = Result<Answer, Undecided>;

impl Ledger for State {
    type Row = LogRow;
    type Write = WriteRequest;
    type Reply = WriteReply;
    type Question = String;
    type Found = Option<Stored>;

    fn decide(&mut self, write: WriteRequest, at_ns: u64) -> (Option<LogRow>, WriteReply) {
        match State::decide(self, write, at_ns) {
            Ok(Decision { row, answer }) => (Some(row), Ok(answer)),
            Err(undecided) => (None, Err(undecided)),
        }
    }

    fn look(&self, key: String) -> Option<Stored> {
        self.get(&key)
    }

    #[cfg(debug_assertions)]
    fn answers_before_sync(&self) -> bool {
        self.mutant == Some(Mutant::AnswerBeforeSync)
    }

    #[cfg(debug_assertions)]
    fn log_was_read(&mut self) {
        if self.mutant == Some(Mutant::LoseKey) {
            self.lost = self.keys.keys().min().cloned();
        }
    }
}

impl Entry {
    fn bytes(&self, key: &str) -> usize {
        let highest = self.highest.as_ref().map_or(0, |highest| {
            // The current value usually shares these bytes, which are held once.
            let is_shared = highest.position == self.position;
            let body = if is_shared { 0 } else { highest.body.len() };
            highest.owner.as_ref().map_or(0, String::len) + body
        });
        ENTRY_BYTES + key.len() + self.value.len() + highest
    }
}
