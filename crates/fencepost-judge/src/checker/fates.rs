use super::*;

pub(super) struct Fates<'a> {
    /// Keys with a write that may have been applied after the log was read.
    pub late_keys: HashSet<&'a str>,
    pub doubts: Vec<Doubt>,
    pub violations: Vec<Violation>,
}

/// Finds writes that a worker reports and the log does not have.
///
/// A 409 must have left a rejected row that says the same. A write without an answer may
/// have been applied or not; if the log shows which, nothing is in doubt. (Acknowledged
/// writes are looked up by their position, elsewhere.)
pub(super) fn of<'a>(sound: &Sound<'a>, episodes: &Episodes) -> Fates<'a> {
    let mut tallies = Tallies::default();
    for &event in &sound.history {
        tallies.follow(&event.worker, event.at_ns, &event.kind);
    }
    tallies.leave_to_the_killed(episodes);
    let is_open = |tally: &Tally| !tally.refusals.is_empty() || tally.unanswered > 0;
    if tallies.all.iter().any(is_open) {
        tallies.look_up(sound);
    }
    let settled = sound.record.settled;
    let late = tallies.all.iter().filter(|it| it.is_unknown(settled));
    let mut fates = Fates {
        late_keys: late.map(|tally| tally.key).collect(),
        doubts: tallies.nameless,
        violations: Vec::new(),
    };
    for tally in &tallies.all {
        fates.doubts.extend(tally.doubts(sound.record.settled));
        // If rows are missing, one of them may be the row of that answer.
        if sound.log_is_whole {
            fates.violations.extend(tally.violation());
        }
    }
    fates
}

/// The writes of one hold, as its worker reports them and as the log has them.
#[derive(Default)]
struct Tally<'a> {
    worker: &'a str,
    key: &'a str,
    owner: &'a str,
    token: Option<FencingToken>,
    acknowledged: u64,
    /// The tokens named in each refusal (the one seen and the one sent), and its time.
    refusals: Vec<(FencingToken, FencingToken, u64)>,
    unanswered: u64,
    rows: u64,
    rejected_rows: Vec<Row>,
}

impl Tally<'_> {
    /// Returns whether the fate of a write is unknown. Once no write is under way any
    /// more, a write that is not in the log was not applied.
    fn is_unknown(&self, settled: bool) -> bool {
        let answered = self.acknowledged + self.refusals.len() as u64;
        !settled && self.unanswered > 0 && self.rows < answered + self.unanswered
    }

    fn doubts(&self, settled: bool) -> impl Iterator<Item = Doubt> {
        let (worker, key, token) = (self.worker, self.key, token_words(self.token));
        let refused = (self.refusals.len() > self.rejected_rows.len()).then(|| {
            format!(
                "{worker} was told that its write on {key} with {token} is refused, \
                 but the log has no such row"
            )
        });
        let unanswered = self.is_unknown(settled).then(|| {
            format!(
                "{worker} got no answer to its write on {key} with {token}, \
                 and the log does not show what became of it"
            )
        });
        let doubts = refused.into_iter().chain(unanswered);
        doubts.map(|text| Doubt::new(DoubtReason::WriteUnknown, text))
    }

    /// Finds a refusal whose answer contradicts the log.
    fn violation(&self) -> Option<Violation> {
        // A refusal without an answer has left a row, too.
        if self.refusals.len() > self.rejected_rows.len() || self.unanswered > 0 {
            return None;
        }
        let rows = self.rejected_rows.iter().map(|row| (row.seen, row.token));
        let rows: HashSet<_> = rows.collect();
        // A value that a row lacks cannot contradict anybody.
        let logged = |&&(seen, got, _): &&(FencingToken, FencingToken, u64)| {
            let (seen, got) = (Some(seen), Some(got));
            let same = [(seen, got), (seen, None), (None, got), (None, None)];
            same.iter().any(|words| rows.contains(words))
        };
        let untrue = self.refusals.iter().find(|told| !logged(told))?;
        let row = self.rejected_rows.first()?;
        let &(seen, got, at_ns) = untrue;
        let detail = format!(
            "{} (owner {}) was told that {seen} had been seen and {got} was sent, and the log \
             says otherwise at row {}",
            self.worker, self.owner, row.seq
        );
        let kind = ViolationKind::UntrueRefusal;
        Some(Violation {
            workers: vec![self.worker.to_owned()],
            ..Violation::new(kind, self.key, row.seq, at_ns, detail)
        })
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
    nameless: Vec<Doubt>,
}

impl<'a> Tallies<'a> {
    fn follow(&mut self, worker: &'a str, at_ns: u64, kind: &'a EventKind) {
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
                key,
                owner,
                seen,
                got,
                ..
            } => {
                let hold = self.of(worker, key, Some(*got), owner);
                self.all[hold].refusals.push((*seen, *got, at_ns));
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
                None => {
                    let text = format!(
                        "{worker} says that a write failed ({error}), and never said that it was writing"
                    );
                    let reason = DoubtReason::WriteUnknown;
                    self.nameless.push(Doubt::new(reason, text));
                }
            },
            _ => {}
        }
    }

    /// Counts a write of a killed worker as unanswered: the worker got no answer, and
    /// cannot say so.
    fn leave_to_the_killed(&mut self, episodes: &Episodes) {
        for (worker, &hold) in &self.sent {
            if episodes.killed_ns(worker).is_some() {
                self.all[hold].unanswered += 1;
            }
        }
    }

    fn of(
        &mut self,
        worker: &'a str,
        key: &'a str,
        token: Option<FencingToken>,
        owner: &'a str,
    ) -> usize {
        let new = self.all.len();
        let hold = *self.by_owner.entry((key, owner)).or_insert(new);
        if hold == new {
            if let Some(token) = token {
                self.by_token.insert((key, token), new);
            }
            self.all.push(Tally {
                worker,
                key,
                owner,
                token,
                ..Tally::default()
            });
        }
        hold
    }

    /// Assigns the rows to holds, by owner, or by token if a row has no owner.
    fn look_up(&mut self, sound: &Sound) {
        let log = &sound.record.log;
        for row in sound.log.iter() {
            let key = log.key_of(row);
            let hold = match (log.owner_of(row), row.token) {
                (Some(owner), _) => self.by_owner.get(&(key, owner)),
                (None, Some(token)) => self.by_token.get(&(key, token)),
                (None, None) => None,
            };
            if let Some(&hold) = hold {
                self.all[hold].rows += 1;
                if row.outcome == RowOutcome::Rejected {
                    self.all[hold].rejected_rows.push(*row);
                }
            }
        }
    }
}
