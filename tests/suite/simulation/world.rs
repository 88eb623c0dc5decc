use fencepost::model::*;
use std::collections::BTreeMap;

/// Workers, a lock with a time to live, and a resource, all driven by one seed.
///
/// Whoever is not chosen to take its next step is as good as paused, so a hold
/// runs out in the middle of its work as often as the settings allow.
pub struct World {
    random: fastrand::Rng,
    fence: bool,
    repeats_tokens: bool,
    reads: Reads,
    ttl_ns: u64,
    now_ns: u64,
    locks: BTreeMap<&'static str, Lock>,
    cells: BTreeMap<&'static str, Cell>,
    record: CaseRecord,
}

/// What a write is made from.
#[derive(Clone, Copy, PartialEq)]
pub enum Reads {
    Nothing,
    /// The value that the holder read before, once for each hold.
    Modify,
}

#[derive(Default)]
struct Lock {
    counter: u64,
    holder: Option<(String, u64)>,
}

/// One key of the resource.
#[derive(Default)]
struct Cell {
    max_pair: Option<(FencingToken, u64)>,
    last_position: u64,
}

struct Worker {
    name: String,
    round: u32,
    rounds_left: u32,
    phase: Phase,
}

#[derive(Clone)]
enum Phase {
    Idle,
    Waiting(&'static str),
    Holding(Hold),
    Sent(Hold),
    Releasing(Hold),
    Done,
}

#[derive(Clone)]
struct Hold {
    key: &'static str,
    token: FencingToken,
    owner: String,
    based_on: Option<u64>,
    writes_left: u64,
    token_seq: u64,
}

impl World {
    pub fn new(seed: u64) -> World {
        World {
            random: fastrand::Rng::with_seed(seed),
            fence: false,
            repeats_tokens: false,
            reads: Reads::Nothing,
            ttl_ns: u64::MAX / 2,
            now_ns: 0,
            locks: BTreeMap::new(),
            cells: BTreeMap::new(),
            record: CaseRecord::default(),
        }
    }

    pub fn fence(mut self, on: bool) -> World {
        self.fence = on;
        self
    }

    pub fn expiring(mut self, yes: bool) -> World {
        if yes {
            self.ttl_ns = self.random.u64(30..300);
        }
        self
    }

    /// A broken lock that now and then hands out the last token again.
    pub fn repeats_tokens(mut self, yes: bool) -> World {
        self.repeats_tokens = yes;
        self
    }

    pub fn reads(mut self, reads: Reads) -> World {
        self.reads = reads;
        self
    }

    pub fn run(mut self) -> CaseRecord {
        let count = self.random.usize(2..=5);
        let mut workers: Vec<Worker> = (0..count)
            .map(|number| Worker {
                name: format!("w{number}"),
                round: 0,
                rounds_left: self.random.u32(3..=6),
                phase: Phase::Idle,
            })
            .collect();
        self.record.workers = workers.iter().map(|worker| worker.name.clone()).collect();
        while workers
            .iter()
            .any(|worker| !matches!(worker.phase, Phase::Done))
        {
            let chosen = self.random.usize(..count);
            self.now_ns += self.random.u64(1..=20);
            self.step(&mut workers[chosen]);
        }
        self.record
    }

    fn step(&mut self, worker: &mut Worker) {
        worker.phase = match worker.phase.clone() {
            Phase::Idle => self.begin_round(worker),
            Phase::Waiting(key) => self.try_to_acquire(worker, key),
            Phase::Holding(hold) => self.go_on(worker, hold),
            Phase::Sent(hold) => self.decide(worker, hold),
            Phase::Releasing(hold) => self.release(worker, hold),
            Phase::Done => Phase::Done,
        };
    }

    fn begin_round(&mut self, worker: &mut Worker) -> Phase {
        let Some(left) = worker.rounds_left.checked_sub(1) else {
            let rounds = worker.round;
            self.say(worker, EventKind::Done { rounds });
            return Phase::Done;
        };
        worker.rounds_left = left;
        worker.round += 1;
        let key = ["north", "south"][self.random.usize(..2)];
        let round = worker.round;
        self.say(
            worker,
            EventKind::Acquiring {
                round,
                key: key.into(),
            },
        );
        Phase::Waiting(key)
    }

    fn try_to_acquire(&mut self, worker: &Worker, key: &'static str) -> Phase {
        let lock = self.locks.entry(key).or_default();
        if lock
            .holder
            .as_ref()
            .is_some_and(|&(_, until_ns)| until_ns > self.now_ns)
        {
            return Phase::Waiting(key);
        }
        let repeats = self.repeats_tokens && lock.counter > 0 && self.random.u32(..4) == 0;
        lock.counter += u64::from(!repeats);
        let owner = format!("{}-{}", worker.name, worker.round);
        lock.holder = Some((owner.clone(), self.now_ns + self.ttl_ns));
        let token = FencingToken(lock.counter);
        let (round, event_owner) = (worker.round, owner.clone());
        self.say(
            worker,
            EventKind::Acquired {
                round,
                key: key.into(),
                token,
                owner: event_owner,
            },
        );
        Phase::Holding(Hold {
            key,
            token,
            owner,
            based_on: None,
            writes_left: self.random.u64(1..=3),
            token_seq: 0,
        })
    }

    fn go_on(&mut self, worker: &Worker, mut hold: Hold) -> Phase {
        let (round, key, token) = (worker.round, hold.key.to_owned(), hold.token);
        if hold.writes_left == 0 {
            self.say(worker, EventKind::Releasing { round, key, token });
            return Phase::Releasing(hold);
        }
        if self.reads == Reads::Modify && hold.based_on.is_none() {
            hold.based_on = Some(self.cells.entry(hold.key).or_default().last_position);
            return Phase::Holding(hold);
        }
        let owner = hold.owner.clone();
        self.say(
            worker,
            EventKind::Writing {
                round,
                key,
                token,
                owner,
            },
        );
        Phase::Sent(hold)
    }

    fn decide(&mut self, worker: &Worker, mut hold: Hold) -> Phase {
        let (round, key, token) = (worker.round, hold.key.to_owned(), hold.token);
        let owner = hold.owner.clone();
        let outcome = self.write(&hold);
        let position = self.cells[hold.key].last_position;
        if outcome == RowOutcome::Rejected {
            let seen = self.cells[hold.key]
                .max_pair
                .expect("refused for a reason")
                .0;
            self.say(
                worker,
                EventKind::WriteRejected {
                    round,
                    key,
                    owner,
                    seen,
                    got: token,
                },
            );
            hold.writes_left = 0;
            return Phase::Holding(hold);
        }
        // The first answer gets lost on the way now and then, and the worker asks again.
        if self.fence && self.random.u32(..8) == 0 {
            assert_eq!(self.write(&hold), RowOutcome::Duplicate);
        }
        self.say(
            worker,
            EventKind::WriteAccepted {
                round,
                key,
                token,
                owner,
                position,
            },
        );
        hold.writes_left -= 1;
        hold.token_seq += 1;
        hold.based_on = hold.based_on.map(|_| position);
        Phase::Holding(hold)
    }

    /// The resource: the pair (token, seq) must grow, if the fence is on.
    fn write(&mut self, hold: &Hold) -> RowOutcome {
        let cell = self.cells.entry(hold.key).or_default();
        let pair = (hold.token, hold.token_seq);
        let outcome = match cell.max_pair {
            Some(max) if self.fence && pair == max => RowOutcome::Duplicate,
            Some(max) if self.fence && pair < max => RowOutcome::Rejected,
            _ => RowOutcome::Accepted,
        };
        let seq = self.record.log.len() as u64 + 1;
        self.record.log.push(LogRow {
            seq,
            at_ns: self.now_ns,
            key: hold.key.into(),
            outcome,
            token: Some(hold.token),
            token_seq: hold.token_seq,
            seen: cell.max_pair.map(|(token, _)| token),
            owner: Some(hold.owner.clone()),
            based_on: hold.based_on,
            value: None,
        });
        if outcome == RowOutcome::Accepted {
            cell.max_pair = cell.max_pair.max(Some(pair));
            cell.last_position = seq;
        }
        outcome
    }

    fn release(&mut self, worker: &Worker, hold: Hold) -> Phase {
        let lock = self.locks.entry(hold.key).or_default();
        let outcome = match &lock.holder {
            Some((owner, _)) if *owner == hold.owner => ReleaseOutcome::Released,
            Some(_) => ReleaseOutcome::Superseded,
            None => ReleaseOutcome::Expired,
        };
        if outcome == ReleaseOutcome::Released {
            lock.holder = None;
        }
        let (round, key, token) = (worker.round, hold.key.to_owned(), hold.token);
        self.say(
            worker,
            EventKind::Released {
                round,
                key,
                token,
                outcome,
            },
        );
        Phase::Idle
    }

    fn say(&mut self, worker: &Worker, kind: EventKind) {
        self.record.history.push(Event {
            at_ns: self.now_ns,
            worker: worker.name.clone(),
            kind,
        });
    }
}
