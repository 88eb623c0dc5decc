use super::fault_doubts;
use crate::model::{CaseRecord, Event, EventKind, FencingToken, ReleaseOutcome, Step};
use std::collections::HashMap;

/// A time in which a worker held a key, or may have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hold<'a> {
    pub worker: &'a str,
    pub key: &'a str,
    pub round: u32,
    /// What the grant said; absent where an acquire failed without an answer.
    pub grant: Option<Grant<'a>>,
    /// When its worker began to ask for the key; earlier attempts that failed count.
    pub wanted_ns: u64,
    pub from_ns: u64,
    /// Until here the worker certainly believed in its hold: it had not begun to
    /// release and had not learned of a loss.
    pub to_ns: u64,
    /// Until here it may have gone on; later than `to_ns` only where an
    /// operation stayed without an answer.
    pub possibly_to_ns: u64,
    /// False where the history just stops in the middle of the hold.
    pub ended: bool,
    /// When it was over: released (answered), lost, left behind, or ended with its
    /// worker, by the signal that was sent: its death may be seen much later.
    pub over_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grant<'a> {
    pub token: FencingToken,
    pub owner: &'a str,
}

/// Reads the holds of all workers, sorted by their beginning.
///
/// Waiting is not holding: a hold begins with the answer `acquired`. And a
/// release that is answered `expired` or `superseded` is an end like any other,
/// whatever the lock server thought of it. So is the death of a worker that was
/// killed on purpose.
pub(super) fn from_record(record: &CaseRecord) -> Vec<Hold<'_>> {
    let history = &record.history;
    let mut workers: HashMap<&str, Worker> = HashMap::new();
    let mut holds = Vec::new();
    for event in history {
        let worker = workers.entry(event.worker.as_str()).or_default();
        worker.follow(event, &mut holds);
    }
    let history_end_ns = history.iter().map(|event| event.at_ns).max().unwrap_or(0);
    for (name, worker) in &workers {
        let killed_ns = fault_doubts::killed_at_ns(&record.faults, name);
        let kill_sent_ns = fault_doubts::kill_sent_at_ns(&record.faults, name);
        for &open in worker.open.iter().chain(&worker.abandoned) {
            let hold = &mut holds[open];
            hold.ended = killed_ns.is_some();
            hold.over_ns = kill_sent_ns;
            hold.possibly_to_ns = killed_ns.unwrap_or(history_end_ns);
        }
        if let Some(unanswered) = worker.releasing {
            holds[unanswered].over_ns = kill_sent_ns;
        }
    }
    holds.sort_by_key(|hold| hold.from_ns);
    holds
}

/// How far one worker has come. Holds are named by their index.
#[derive(Default)]
struct Worker<'a> {
    acquiring: Option<(u32, &'a str, u64)>,
    /// Since when it has asked for each key that it was not granted yet.
    wanting: HashMap<&'a str, u64>,
    open: Vec<usize>,
    /// Begun by an earlier process of the same name that never ended them.
    abandoned: Vec<usize>,
    /// The release that was sent and not answered yet.
    releasing: Option<usize>,
}

impl<'a> Worker<'a> {
    fn follow(&mut self, event: &'a Event, holds: &mut Vec<Hold<'a>>) {
        let at_ns = event.at_ns;
        if let Some(round) = round(&event.kind) {
            self.leave_rounds_before(round, at_ns, holds);
        }
        if event.kind == EventKind::Ready {
            let abandoned = std::mem::take(self);
            self.abandoned = [abandoned.abandoned, abandoned.open].concat();
        }
        // An answer comes after the fact: by the time of `released`, the key may
        // long be somebody else's, so that event does not prolong a hold.
        if !matches!(event.kind, EventKind::Released { .. }) {
            for &open in &self.open {
                holds[open].to_ns = at_ns.max(holds[open].from_ns);
            }
        }
        match &event.kind {
            EventKind::Acquiring { round, key } => {
                self.acquiring = Some((*round, key, at_ns));
                self.wanting.entry(key).or_insert(at_ns);
            }
            EventKind::Acquired {
                round,
                key,
                token,
                owner,
            } => {
                self.acquiring = None;
                self.open.push(holds.len());
                let grant = Grant {
                    token: *token,
                    owner,
                };
                holds.push(Hold {
                    worker: &event.worker,
                    key,
                    round: *round,
                    grant: Some(grant),
                    wanted_ns: self.wanting.remove(key.as_str()).unwrap_or(at_ns),
                    from_ns: at_ns,
                    to_ns: at_ns,
                    possibly_to_ns: at_ns,
                    ended: false,
                    over_ns: None,
                });
            }
            EventKind::Failed {
                during: Step::Acquire,
                ..
            } => {
                if let Some((round, key, sent_ns)) = self.acquiring.take() {
                    holds.push(Hold {
                        worker: &event.worker,
                        key,
                        round,
                        grant: None,
                        wanted_ns: sent_ns,
                        from_ns: sent_ns,
                        to_ns: sent_ns,
                        possibly_to_ns: at_ns,
                        ended: true,
                        over_ns: Some(at_ns),
                    });
                }
            }
            EventKind::Lost { key, .. } => {
                if let Some(hold) = self.end(key, holds) {
                    holds[hold].over_ns = Some(at_ns);
                }
            }
            EventKind::Releasing { key, .. } => self.releasing = self.end(key, holds),
            EventKind::Released { key, outcome, .. } => {
                let sent = self.releasing.take().filter(|&hold| holds[hold].key == key);
                if let Some(hold) = sent.or_else(|| self.end(key, holds)) {
                    holds[hold].over_ns = Some(at_ns);
                    if *outcome == ReleaseOutcome::Unknown {
                        holds[hold].possibly_to_ns = at_ns;
                    }
                }
            }
            EventKind::Done { .. } => {
                for open in self.open.drain(..) {
                    holds[open].ended = true;
                    holds[open].over_ns = Some(at_ns);
                }
            }
            _ => {}
        }
    }

    /// A worker that has gone on to its next round no longer claims the hold of
    /// the last one, even if it never said so (a failed write may skip the release).
    fn leave_rounds_before(&mut self, round: u32, at_ns: u64, holds: &mut [Hold<'a>]) {
        self.open.retain(|&open| {
            let stays = holds[open].round >= round;
            if !stays {
                holds[open].ended = true;
                holds[open].over_ns = Some(at_ns);
            }
            stays
        });
    }

    fn end(&mut self, key: &str, holds: &mut [Hold<'a>]) -> Option<usize> {
        let place = self.open.iter().position(|&open| holds[open].key == key)?;
        let hold = self.open.remove(place);
        holds[hold].ended = true;
        Some(hold)
    }
}

fn round(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::Acquiring { round, .. }
        | EventKind::Acquired { round, .. }
        | EventKind::Reentered { round, .. }
        | EventKind::AtGate { round, .. }
        | EventKind::Writing { round, .. }
        | EventKind::WriteAccepted { round, .. }
        | EventKind::WriteRejected { round, .. }
        | EventKind::Renewed { round, .. }
        | EventKind::Lost { round, .. }
        | EventKind::Left { round, .. }
        | EventKind::Releasing { round, .. }
        | EventKind::Released { round, .. }
        | EventKind::Failed { round, .. } => Some(*round),
        EventKind::Ready | EventKind::Done { .. } | EventKind::Clock { .. } => None,
    }
}
