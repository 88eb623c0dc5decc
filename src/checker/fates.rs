use super::fault_doubts;
use crate::model::{CaseRecord, EventKind, FaultRow, FencingToken, LogRow, RowOutcome, Step};
use std::collections::HashMap;

/// Writes that a worker tells of and the log does not.
///
/// A 409 must have left a rejected row. A write without an answer may have been
/// applied or not; where the log shows which, nothing is in doubt. (Writes that
/// were acknowledged are looked up by their position, elsewhere.)
pub(super) fn doubts(record: &CaseRecord) -> Vec<String> {
    let mut tallies = Tallies::default();
    for event in &record.history {
        tallies.follow(&event.worker, &event.kind);
    }
    tallies.leave_to_the_killed(&record.faults);
    let nothing_to_look_up = tallies.all.iter().all(|t| t.refused + t.unanswered == 0);
    if !nothing_to_look_up {
        for row in &record.log {
            tallies.look_up(row);
        }
    }
    let mut doubts = tallies.nameless;
    let of_all = tallies.all.iter();
    doubts.extend(of_all.flat_map(|tally| tally.doubts(record.settled)));
    doubts
}

/// The writes of one hold: what its worker tells, and what the log has.
struct Tally<'a> {
    worker: &'a str,
    key: &'a str,
    token: FencingToken,
    acknowledged: u64,
    refused: u64,
    unanswered: u64,
    rows: u64,
    rejected_rows: u64,
}

impl Tally<'_> {
    fn doubts(&self, settled: bool) -> impl Iterator<Item = String> {
        let Tally {
            worker, key, token, ..
        } = self;
        let refused = (self.refused > self.rejected_rows).then(|| {
            format!(
                "{worker} was told that its write on {key} with token {token} is refused, \
                 but the log has no such row"
            )
        });
        let answered = self.acknowledged + self.refused;
        // Once nothing is under way any more, what is not in the log was not applied.
        let unanswered = (!settled
            && self.unanswered > 0
            && self.rows < answered + self.unanswered)
            .then(|| {
                format!(
                    "{worker} got no answer to its write on {key} with token {token}, \
                 and the log does not show what became of it"
                )
            });
        refused.into_iter().chain(unanswered)
    }
}

#[derive(Default)]
struct Tallies<'a> {
    all: Vec<Tally<'a>>,
    by_owner: HashMap<(&'a str, &'a str), usize>,
    by_token: HashMap<(&'a str, FencingToken), usize>,
    /// The hold that each worker is writing for.
    writing: HashMap<&'a str, usize>,
    /// The same, while an answer is still to come.
    sent: HashMap<&'a str, usize>,
    nameless: Vec<String>,
}

impl<'a> Tallies<'a> {
    fn follow(&mut self, worker: &'a str, kind: &'a EventKind) {
        match kind {
            EventKind::Acquiring { .. } => {
                self.writing.remove(worker);
            }
            EventKind::Writing {
                key, token, owner, ..
            } => {
                let hold = self.of(worker, key, *token, owner);
                self.writing.insert(worker, hold);
                self.sent.insert(worker, hold);
            }
            EventKind::WriteAccepted {
                key, token, owner, ..
            } => {
                let hold = self.of(worker, key, *token, owner);
                self.all[hold].acknowledged += 1;
                self.sent.remove(worker);
            }
            EventKind::WriteRejected {
                key, owner, got, ..
            } => {
                let hold = self.of(worker, key, *got, owner);
                self.all[hold].refused += 1;
                self.sent.remove(worker);
            }
            EventKind::Failed {
                during: Step::Write,
                error,
                ..
            } => match self.writing.get(worker) {
                Some(&hold) => {
                    self.all[hold].unanswered += 1;
                    self.sent.remove(worker);
                }
                None => self.nameless.push(format!(
                    "{worker} says that a write failed ({error}), and never said that it was writing"
                )),
            },
            _ => {}
        }
    }

    /// Who was killed got no answer, and cannot say so.
    fn leave_to_the_killed(&mut self, faults: &[FaultRow]) {
        for (worker, &hold) in &self.sent {
            if fault_doubts::killed_at_ns(faults, worker).is_some() {
                self.all[hold].unanswered += 1;
            }
        }
    }

    fn of(&mut self, worker: &'a str, key: &'a str, token: FencingToken, owner: &'a str) -> usize {
        let new = self.all.len();
        let hold = *self.by_owner.entry((key, owner)).or_insert(new);
        if hold == new {
            self.by_token.insert((key, token), new);
            self.all.push(Tally {
                worker,
                key,
                token,
                acknowledged: 0,
                refused: 0,
                unanswered: 0,
                rows: 0,
                rejected_rows: 0,
            });
        }
        hold
    }

    /// The owner decides whose row it is; a row without one is found by its token.
    fn look_up(&mut self, row: &'a LogRow) {
        let key = row.key.as_str();
        let hold = match (&row.owner, row.token) {
            (Some(owner), _) => self.by_owner.get(&(key, owner.as_str())),
            (None, Some(token)) => self.by_token.get(&(key, token)),
            (None, None) => None,
        };
        if let Some(&hold) = hold {
            self.all[hold].rows += 1;
            self.all[hold].rejected_rows += u64::from(row.outcome == RowOutcome::Rejected);
        }
    }
}
