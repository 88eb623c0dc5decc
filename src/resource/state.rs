//! The decision itself, without I/O: may this write happen?

#[cfg(debug_assertions)]
use super::mutant::{self, Mutant, Scene};
use crate::model::{BodyHash, Fence, FencingToken, LogRow, RowOutcome, RowValue};
use bytes::Bytes;
use std::collections::HashMap;

/// What every accepted write so far adds up to. The log is its only memory:
/// replaying the rows gives the same state again.
pub(super) struct State {
    fence: Fence,
    keys: HashMap<String, Entry>,
    /// The position of the last row.
    position: u64,
    #[cfg(debug_assertions)]
    mutant: Option<Mutant>,
    /// The key that [`Mutant::LoseKey`] has lost.
    #[cfg(debug_assertions)]
    lost: Option<String>,
}

pub(super) struct WriteRequest {
    pub key: String,
    pub token: Option<FencingToken>,
    pub token_seq: u64,
    pub owner: Option<String>,
    pub based_on: Option<u64>,
    pub body: Bytes,
}

/// A token and the holder's own count under it, compared in that order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub token: FencingToken,
    pub seq: u64,
}

/// What to log, and what to answer once that is durable.
#[derive(Debug)]
pub(super) struct Decision {
    pub row: LogRow,
    pub answer: Answer,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Applied, by this request or by the one that it repeats.
    Accepted {
        position: u64,
        max_fence: Option<FencingToken>,
    },
    Rejected {
        seen: Pair,
        got: Pair,
    },
}

/// With the fence on, a write without a token is no write at all: it is not
/// decided on and not logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenMissing;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub value: RowValue,
    pub max_fence: Option<FencingToken>,
    pub position: u64,
}

/// What the fence says to one write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ruling {
    Apply,
    /// The latest write again, which stands at this position.
    Repeat {
        position: u64,
    },
    Refuse {
        seen: Pair,
        got: Pair,
    },
}

struct Entry {
    value: Bytes,
    position: u64,
    /// With the fence on this is always the write that stands; with the fence
    /// off a lower token may have overwritten it.
    highest: Option<Highest>,
}

struct Highest {
    pair: Pair,
    owner: Option<String>,
    body: Bytes,
    position: u64,
}

impl State {
    pub fn new(fence: Fence) -> State {
        State {
            fence,
            keys: HashMap::new(),
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

    #[cfg(debug_assertions)]
    pub fn mutant(&self) -> Option<Mutant> {
        self.mutant
    }

    pub fn decide(&mut self, write: WriteRequest, at_ns: u64) -> Result<Decision, TokenMissing> {
        let highest = self.keys.get(&write.key).and_then(|e| e.highest.as_ref());
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

    /// Takes a row of the log as decided, whatever the fence says today.
    pub fn replay(&mut self, row: LogRow) {
        self.position = row.seq;
        #[cfg(debug_assertions)]
        let row = mutant::forget(self.mutant, row);
        if row.outcome == RowOutcome::Accepted {
            let value = row.value.as_ref().map_or(&[][..], RowValue::as_bytes);
            self.apply(&row, Bytes::copy_from_slice(value));
        }
    }

    /// For [`Mutant::LoseKey`]: somebody has read the whole log.
    #[cfg(debug_assertions)]
    pub fn log_was_read(&mut self) {
        if self.mutant == Some(Mutant::LoseKey) {
            self.lost = self.keys.keys().min().cloned();
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

    fn rule(
        &self,
        write: &WriteRequest,
        highest: Option<&Highest>,
    ) -> Result<Ruling, TokenMissing> {
        if self.fence == Fence::Off {
            return Ok(Ruling::Apply);
        }
        let got = Pair {
            token: write.token.ok_or(TokenMissing)?,
            seq: write.token_seq,
        };
        Ok(match highest {
            None => Ruling::Apply,
            Some(highest) if got > highest.pair => Ruling::Apply,
            Some(highest) if got == highest.pair && highest.is_repeated_by(write) => {
                Ruling::Repeat {
                    position: highest.position,
                }
            }
            Some(highest) => Ruling::Refuse {
                seen: highest.pair,
                got,
            },
        })
    }

    fn apply(&mut self, row: &LogRow, body: Bytes) {
        let position = row.seq;
        let before = self.keys.remove(&row.key).and_then(|e| e.highest);
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
        self.keys.insert(row.key.clone(), entry);
    }
}

impl Highest {
    /// A stranger who sends the same bytes is told the truth: the write that
    /// stands is not theirs.
    fn is_repeated_by(&self, write: &WriteRequest) -> bool {
        write.owner == self.owner && write.body == self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(token: Option<u64>, seq: u64, body: &str) -> WriteRequest {
        WriteRequest {
            key: "k".into(),
            token: token.map(FencingToken),
            token_seq: seq,
            owner: None,
            based_on: None,
            body: Bytes::copy_from_slice(body.as_bytes()),
        }
    }

    fn outcomes(state: &mut State, writes: &[(u64, u64, &str)]) -> Vec<RowOutcome> {
        let decide = |&(token, seq, body): &(u64, u64, &str)| {
            let decision = state.decide(write(Some(token), seq, body), 0).unwrap();
            decision.row.outcome
        };
        writes.iter().map(decide).collect()
    }

    #[test]
    fn pairs_must_grow_token_first() {
        use RowOutcome::{Accepted, Duplicate, Rejected};
        let writes = [
            (2, 0, "a"),
            (2, 1, "b"),
            (2, 1, "b"),
            (2, 1, "other"),
            (2, 0, "a"),
            (1, 9, "c"),
            (3, 0, "d"),
            (2, 5, "e"),
        ];
        let mut state = State::new(Fence::On);
        assert_eq!(
            outcomes(&mut state, &writes),
            [
                Accepted, Accepted, Duplicate, Rejected, Rejected, Rejected, Accepted, Rejected
            ]
        );
    }

    #[test]
    fn a_token_of_zero_is_a_token() {
        let mut state = State::new(Fence::On);
        let first = state.decide(write(Some(0), 0, "a"), 0).unwrap();
        assert_eq!(first.row.seen, None);
        let second = state.decide(write(Some(0), 1, "b"), 0).unwrap();
        assert_eq!(second.row.seen, Some(FencingToken(0)));
        assert_eq!(second.row.outcome, RowOutcome::Accepted);
    }

    #[test]
    fn a_repeat_is_answered_with_the_first_position_and_not_applied() {
        let mut state = State::new(Fence::On);
        let first = state.decide(write(Some(5), 0, "a"), 0).unwrap();
        let again = state.decide(write(Some(5), 0, "a"), 0).unwrap();
        assert_eq!(first.answer, again.answer);
        assert_eq!((again.row.seq, again.row.value), (2, None));
        assert_eq!(state.get("k").unwrap().position, 1);
    }

    #[test]
    fn the_latest_write_by_another_owner_is_refused() {
        let by = |owner: Option<&str>| WriteRequest {
            owner: owner.map(str::to_owned),
            ..write(Some(5), 0, "a")
        };
        let mut first = State::new(Fence::On);
        let accepted = first.decide(by(Some("x")), 0).unwrap();
        let mut replayed = State::new(Fence::On);
        replayed.replay(accepted.row);
        for state in [&mut first, &mut replayed] {
            let pair = Pair {
                token: FencingToken(5),
                seq: 0,
            };
            for stranger in [Some("y"), None] {
                let refused = state.decide(by(stranger), 0).unwrap();
                assert_eq!(refused.row.outcome, RowOutcome::Rejected);
                let (seen, got) = (pair, pair);
                assert_eq!(refused.answer, Answer::Rejected { seen, got });
            }
            let again = state.decide(by(Some("x")), 0).unwrap();
            assert_eq!(again.row.outcome, RowOutcome::Duplicate);
            assert_eq!(again.answer, accepted.answer);
        }
    }

    #[test]
    fn a_missing_token_is_not_a_row() {
        let mut state = State::new(Fence::On);
        assert_eq!(
            state.decide(write(None, 0, "a"), 0).unwrap_err(),
            TokenMissing
        );
        let next = state.decide(write(Some(1), 0, "a"), 0).unwrap();
        assert_eq!(next.row.seq, 1);
    }

    #[test]
    fn the_open_fence_accepts_everything_and_remembers_the_highest() {
        let mut state = State::new(Fence::Off);
        let all = [(7, 0, "a"), (7, 0, "a"), (3, 0, "b")];
        assert_eq!(outcomes(&mut state, &all), [RowOutcome::Accepted; 3]);
        let last = state.decide(write(None, 0, "c"), 0).unwrap();
        assert_eq!(last.row.seen, Some(FencingToken(7)));
        let stored = state.get("k").unwrap();
        assert_eq!(stored.value, RowValue::Text("c".into()));
        assert_eq!(
            (stored.max_fence, stored.position),
            (Some(FencingToken(7)), 4)
        );
    }

    #[test]
    fn replaying_the_rows_gives_the_same_state() {
        let mut first = State::new(Fence::On);
        let mut second = State::new(Fence::On);
        for (token, body) in [(2, "a"), (1, "late"), (2, "a"), (4, "b")] {
            let decision = first.decide(write(Some(token), 0, body), 0).unwrap();
            second.replay(decision.row);
        }
        assert_eq!(first.get("k"), second.get("k"));
        let next = [(4, 0, "b"), (4, 0, "c"), (5, 0, "d")];
        assert_eq!(outcomes(&mut first, &next), outcomes(&mut second, &next));
        assert_eq!(first.position, second.position);
    }

    #[test]
    fn a_closed_fence_over_an_open_ones_log_holds_the_highest_token() {
        let mut open = State::new(Fence::Off);
        let mut closed = State::new(Fence::On);
        for (token, body) in [(7, "a"), (3, "b")] {
            closed.replay(
                open.decide(write(Some(token), 0, body), 0)
                    .expect("the open fence takes all")
                    .row,
            );
        }
        assert_eq!(
            outcomes(&mut closed, &[(4, 0, "c"), (8, 0, "d")]),
            [RowOutcome::Rejected, RowOutcome::Accepted]
        );
    }
}
