//! A worker and its way to a lock: asking, waiting, being told.

use super::defect::Defect;
use super::hold::Hold;
use super::lock_server::{LockAnswer, LockRequest, STEP, Wanted};
use super::settings::{MS, US};
use super::truth::Claim;
use super::world::{Action, KEYS, World};
use fencepost::model::{Ability, EventKind, FencingToken, Gate, Step};

pub struct Worker {
    pub name: &'static str,
    pub service: usize,
    pub round: u32,
    pub rounds_left: u32,
    pub phase: Phase,
    /// Counts the phases, so that what was meant for an earlier one is told apart.
    pub epoch: u64,
    pub key: usize,
    pub hold: Option<Hold>,
    asking_as: String,
    /// Stands still; what comes due is deferred.
    pub stopped: bool,
    pub deferred: Vec<Action>,
    pub dead: bool,
    /// Nothing passes between it and its lock server.
    pub cut: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Starting,
    Resting,
    Asking,
    /// Its request came to nothing, and it is about to find out.
    Doomed,
    Reading,
    Working,
    AtGate,
    Writing,
    Releasing,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    Ready,
    Round,
    Poll,
    GiveUp,
    Doom(Step),
    Work,
    WorkEnds,
    Renew,
    Validity,
    GateOpens(Gate),
    Send,
    Release,
    NoRelease,
}

impl Worker {
    pub fn new(name: &'static str, service: usize, rounds: u32) -> Worker {
        Worker {
            name,
            service,
            round: 0,
            rounds_left: rounds,
            phase: Phase::Starting,
            epoch: 0,
            key: 0,
            hold: None,
            asking_as: String::new(),
            stopped: false,
            deferred: Vec::new(),
            dead: false,
            cut: false,
        }
    }

    pub fn owner(&self) -> &str {
        self.hold.as_ref().map_or("", |hold| &hold.owner)
    }

    pub fn is_over(&self) -> bool {
        self.dead || self.phase == Phase::Done
    }
}

impl World {
    pub fn enter(&mut self, worker: usize, phase: Phase) {
        self.workers[worker].phase = phase;
        self.workers[worker].epoch += 1;
    }

    /// For this phase only.
    pub fn set(&mut self, worker: usize, delay_ns: u64, timer: Timer) {
        let epoch = self.workers[worker].epoch;
        self.after(delay_ns, Action::Timer(worker, timer, epoch));
    }

    pub fn timer(&mut self, worker: usize, timer: Timer, epoch: u64) {
        match timer {
            // These belong to a hold, and not to a phase of it.
            Timer::Renew => return self.renew(worker, epoch),
            Timer::Validity => return self.look_at_clock(worker, epoch),
            _ if epoch != self.workers[worker].epoch => return,
            _ => {}
        }
        match timer {
            Timer::Ready => self.get_ready(worker),
            Timer::Round => self.begin_round(worker),
            Timer::Poll => {
                self.ask(worker);
                self.poll_later(worker);
            }
            Timer::GiveUp => {
                self.ask_for(worker, Wanted::Nothing, false);
                self.fail(worker, Step::Acquire);
            }
            Timer::Doom(step) => self.fail(worker, step),
            Timer::Work => self.work(worker),
            Timer::WorkEnds => self.end_work(worker),
            Timer::GateOpens(gate) => self.pass_gate(worker, gate),
            Timer::Send => self.send_write(worker),
            Timer::Release => self.release(worker),
            Timer::NoRelease => self.no_answer_to_release(worker),
            Timer::Renew | Timer::Validity => unreachable!("handled above"),
        }
    }

    fn get_ready(&mut self, worker: usize) {
        let lacks = if self.settings.tokens {
            Vec::new()
        } else {
            vec![Ability::Token]
        };
        self.say(worker, EventKind::ready(lacks));
        if self.settings.ours {
            let (round, gate) = (0, Gate::Start);
            self.say(worker, EventKind::AtGate { round, gate });
        }
        self.rest(worker);
    }

    pub fn rest(&mut self, worker: usize) {
        self.workers[worker].hold = None;
        self.enter(worker, Phase::Resting);
        let rest = self.random.u64(..=self.settings.rest_ns);
        self.set(worker, 50 * US + rest, Timer::Round);
    }

    fn begin_round(&mut self, worker: usize) {
        if self.workers[worker].rounds_left == 0 {
            let rounds = self.workers[worker].round;
            self.say(worker, EventKind::Done { rounds });
            self.enter(worker, Phase::Done);
            return;
        }
        self.workers[worker].rounds_left -= 1;
        self.workers[worker].round += 1;
        self.workers[worker].key = self.random.usize(..self.settings.keys);
        let (round, key) = (self.workers[worker].round, self.key(worker));
        self.say(worker, EventKind::Acquiring { round, key });
        self.workers[worker].asking_as = self.new_owner(worker);
        if self.settings.failing && self.ghosts < 2 && self.one_in(6) {
            self.ask_in_vain(worker);
            return;
        }
        self.enter(worker, Phase::Asking);
        self.ask(worker);
        self.poll_later(worker);
        if let Some(patience_ns) = self.settings.patience_ns {
            self.set(worker, patience_ns, Timer::GiveUp);
        }
    }

    /// The request or its answer gets lost, and with it what the server may have granted.
    fn ask_in_vain(&mut self, worker: usize) {
        self.enter(worker, Phase::Doomed);
        if self.random.bool() {
            self.ghosts += 1;
            self.ask_for(worker, Wanted::Grant, true);
            if self.random.bool() {
                self.ask_for(worker, Wanted::Nothing, true);
            }
        }
        let wait = self.random.u64(10 * MS..1_000 * MS);
        self.set(worker, wait, Timer::Doom(Step::Acquire));
    }

    /// A step without an answer: whether it took effect is unknown.
    pub fn fail(&mut self, worker: usize, during: Step) {
        let round = self.workers[worker].round;
        self.say(
            worker,
            EventKind::Failed {
                round,
                during,
                error: "no answer within the deadline".to_owned(),
            },
        );
        match during {
            Step::Acquire | Step::Release => self.rest(worker),
            Step::Read | Step::Write => self.go_and_release(worker),
        }
    }

    fn ask(&mut self, worker: usize) {
        self.ask_for(worker, Wanted::Grant, false);
    }

    fn ask_for(&mut self, worker: usize, what: Wanted, mute: bool) {
        let request = LockRequest {
            worker,
            key: self.workers[worker].key,
            owner: self.workers[worker].asking_as.clone(),
            sent_ns: self.now,
            what,
            mute,
        };
        self.send_request(worker, request);
    }

    /// Whoever is not told of a free lock finds out by itself, only later.
    fn poll_later(&mut self, worker: usize) {
        let wait = self
            .random
            .u64(self.settings.ttl_ns / 2..self.settings.ttl_ns);
        self.set(worker, wait, Timer::Poll);
    }

    pub fn hear(&mut self, worker: usize, answer: LockAnswer) {
        let asks = self.workers[worker].phase == Phase::Asking;
        let asking_as = &self.workers[worker].asking_as;
        match answer {
            LockAnswer::Granted {
                owner,
                token,
                sent_ns,
            } if asks && owner == *asking_as => {
                let valid_until = sent_ns + self.settings.ttl_ns;
                if self.now < valid_until {
                    let valid_until = self.believed(valid_until);
                    self.acquire(worker, owner, token, valid_until);
                } else {
                    // It may be over already: only a younger answer can tell.
                    self.ask(worker);
                }
            }
            LockAnswer::HandedOver {
                owner,
                token,
                granted_ns,
            } if asks && owner == *asking_as => {
                let valid_until = granted_ns + self.settings.ttl_ns;
                if self.now > valid_until && self.strikes(Defect::ToldTooLate) {
                    let defect = Defect::ToldTooLate;
                    self.truth.plant(defect, self.now, &owner, "", 0);
                    self.acquire(worker, owner, token, valid_until);
                } else {
                    self.ask(worker);
                }
            }
            LockAnswer::Held if asks => self.enter_anyway(worker),
            LockAnswer::Wake if asks => self.ask(worker),
            LockAnswer::Over { owner } if asks && owner == *asking_as => {
                self.workers[worker].asking_as = self.new_owner(worker);
                self.ask(worker);
            }
            LockAnswer::Renewed {
                owner,
                sent_ns,
                kept,
            } => self.hear_of_renewal(worker, &owner, sent_ns, kept),
            LockAnswer::Released { owner, outcome } => {
                self.hear_of_release(worker, &owner, outcome)
            }
            _ => {}
        }
    }

    /// Until when a worker believes that it holds what it was just told of.
    pub fn believed(&self, valid_until: u64) -> u64 {
        if self.settings.counts_late {
            self.now + self.settings.ttl_ns
        } else {
            valid_until
        }
    }

    /// A broken library takes "wait" for "go on".
    fn enter_anyway(&mut self, worker: usize) {
        let service = self.workers[worker].service;
        if service > 0 || !self.strikes(Defect::EntersWithoutGrant) {
            return;
        }
        self.ask_for(worker, Wanted::Nothing, true);
        let key = self.workers[worker].key;
        let server = &self.servers[service];
        let counter = if self.settings.shared_counter {
            server.counter
        } else {
            server.keys[key].counter
        };
        let token = counter + [STEP, STEP / 2][self.random.usize(..2)];
        let owner = self.new_owner(worker);
        let defect = Defect::EntersWithoutGrant;
        self.truth.plant(defect, self.now, &owner, "", 0);
        let valid_until = self.now + self.settings.ttl_ns;
        self.acquire(worker, owner, token, valid_until);
    }

    fn acquire(&mut self, worker: usize, owner: String, token: u64, valid_until: u64) {
        self.truth.claims.push(Claim {
            owner: owner.clone(),
            at_ns: self.now,
        });
        let reports = self.settings.reports_validity;
        let (round, key) = (self.workers[worker].round, self.key(worker));
        let token = self.settings.tokens.then_some(token);
        self.workers[worker].hold = Some(Hold::new(
            &owner,
            token,
            valid_until,
            self.settings.writes,
            self.now,
        ));
        self.say(
            worker,
            EventKind::Acquired {
                round,
                key,
                token: token.map(FencingToken),
                owner,
                valid_until_ns: reports.then_some(valid_until),
            },
        );
        self.begin_hold(worker);
    }

    pub fn key(&self, worker: usize) -> String {
        KEYS[self.workers[worker].key].to_owned()
    }
}
