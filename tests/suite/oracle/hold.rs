//! What a worker does with a lock that it holds: read, work, write, release.

use super::defect::Defect;
use super::lock_server::{LockRequest, Wanted};
use super::resource::ResourceRequest;
use super::settings::{MS, US};
use super::worker::{Phase, Timer};
use super::world::{Action, World};
use fencepost::model::ReleaseOutcome;
use fencepost::model::{EventKind, FencingToken, Gate, Step};

pub struct Hold {
    pub owner: String,
    pub token: Option<u64>,
    /// When the last confirmed request was sent, and the TTL.
    pub valid_until: u64,
    pub writes_left: u64,
    pub seq: u64,
    pub based_on: Option<(u64, u64)>,
    pub lost: bool,
    nested: bool,
    /// The renewal that is under way, by when it was sent.
    renewing: Option<u64>,
    /// The same for all of the hold's timers.
    number: u64,
}

impl Hold {
    pub fn new(
        owner: &str,
        token: Option<u64>,
        valid_until: u64,
        writes: u64,
        number: u64,
    ) -> Hold {
        Hold {
            owner: owner.to_owned(),
            token,
            valid_until,
            writes_left: writes,
            seq: 0,
            based_on: None,
            lost: false,
            nested: false,
            renewing: None,
            number,
        }
    }
}

impl World {
    pub fn held(&mut self, worker: usize) -> &mut Hold {
        let hold = self.workers[worker].hold.as_mut();
        hold.expect("only a holder gets here")
    }

    pub fn begin_hold(&mut self, worker: usize) {
        let (ttl_ns, number) = (self.settings.ttl_ns, self.held(worker).number);
        if self.settings.renews {
            self.after(ttl_ns / 3, Action::Timer(worker, Timer::Renew, number));
        }
        self.watch_clock(worker);
        if self.settings.nested {
            self.held(worker).nested = true;
            let (round, key, token) = self.names(worker);
            let holds = 2;
            self.say(
                worker,
                EventKind::Reentered {
                    round,
                    key,
                    token,
                    holds,
                },
            );
        }
        if self.settings.reads {
            self.enter(worker, Phase::Reading);
            if self.settings.failing && self.one_in(12) {
                self.set(worker, 500 * MS, Timer::Doom(Step::Read));
                return;
            }
            let key = self.workers[worker].key;
            let delay = self.delay();
            let read = ResourceRequest::Read { worker, key };
            self.after(delay, Action::ToResource(read));
        } else {
            self.enter(worker, Phase::Working);
            self.set(worker, 20 * US, Timer::Work);
        }
    }

    pub fn names(&mut self, worker: usize) -> (u32, String, Option<FencingToken>) {
        let token = self.held(worker).token.map(FencingToken);
        (self.workers[worker].round, self.key(worker), token)
    }

    pub fn work(&mut self, worker: usize) {
        let mut work = match self.random.u32(..4) {
            0 => self.random.u64(..=self.settings.work_ns),
            _ => self.random.u64(..=self.settings.work_ns / 8),
        };
        if self.settings.stalls && self.one_in(3) {
            // Every thread stands still, and nothing records it.
            self.workers[worker].stopped = true;
            let stall = self.random.u64(..=self.settings.ttl_ns * 2);
            let step = super::trouble::TroubleStep::WakesUp(worker);
            self.after(stall, Action::Trouble(step));
            work = work.min(stall / 2);
        }
        self.set(worker, work, Timer::WorkEnds);
    }

    fn watch_clock(&mut self, worker: usize) {
        if self.settings.looks {
            let notice = self.random.u64(..3 * MS);
            let (number, end) = (self.held(worker).number, self.held(worker).valid_until);
            self.at(end + notice, Action::Timer(worker, Timer::Validity, number));
        }
    }

    /// The end of the validity, unless a renewal has moved it.
    pub fn look_at_clock(&mut self, worker: usize, number: u64) {
        let is_current = |hold: &Hold| hold.number == number && !hold.lost;
        let Some(hold) = self.workers[worker].hold.as_ref() else {
            return;
        };
        let works = self.workers[worker].phase == Phase::Working;
        if is_current(hold) && self.now >= hold.valid_until && works {
            self.notice(worker);
        }
    }

    /// Its own clock says that the lock is gone.
    pub fn notice(&mut self, worker: usize) {
        if self.settings.defect == Some(Defect::ClaimsPastValidity) {
            return;
        }
        self.lose(worker, "its time ran out by the holder's own clock");
    }

    fn lose(&mut self, worker: usize, reason: &str) {
        self.held(worker).lost = true;
        let (round, key, token) = self.names(worker);
        self.say(
            worker,
            EventKind::Lost {
                round,
                key,
                token,
                reason: reason.to_owned(),
            },
        );
        if self.settings.ignores_lost {
            return;
        }
        if self.settings.skips_release {
            self.rest(worker);
        } else {
            self.go_and_release(worker);
        }
    }

    pub fn renew(&mut self, worker: usize, number: u64) {
        let looks = self.settings.looks;
        let now = self.now;
        let releasing = self.workers[worker].phase == Phase::Releasing;
        let key = self.workers[worker].key;
        let Some(hold) = self.workers[worker].hold.as_mut() else {
            return;
        };
        let over = looks && now >= hold.valid_until;
        if hold.number != number || hold.lost || releasing || over {
            return;
        }
        hold.renewing = Some(now);
        let request = LockRequest {
            worker,
            key,
            owner: hold.owner.clone(),
            sent_ns: now,
            what: Wanted::Renewal,
            mute: self.settings.failing && self.random.u32(..10) == 0,
        };
        self.send_request(worker, request);
        let again = self.settings.ttl_ns / 3;
        self.after(again, Action::Timer(worker, Timer::Renew, number));
    }

    pub fn hear_of_renewal(&mut self, worker: usize, owner: &str, sent_ns: u64, kept: bool) {
        let (ttl_ns, now, looks) = (self.settings.ttl_ns, self.now, self.settings.looks);
        let releasing = self.workers[worker].phase == Phase::Releasing;
        let believed = self.believed(sent_ns + ttl_ns);
        let Some(hold) = self.workers[worker].hold.as_mut() else {
            return;
        };
        let over = looks && now >= hold.valid_until;
        let awaited = hold.renewing == Some(sent_ns) && hold.owner == owner;
        if !awaited || hold.lost || over || releasing {
            return;
        }
        hold.renewing = None;
        if kept {
            hold.valid_until = believed;
            let valid_until = believed;
            let reports = self.settings.reports_validity;
            let (round, key, token) = self.names(worker);
            self.say(
                worker,
                EventKind::Renewed {
                    round,
                    key,
                    token,
                    valid_until_ns: reports.then_some(valid_until),
                },
            );
            self.watch_clock(worker);
        } else if self.workers[worker].phase == Phase::Working {
            self.lose(worker, "the lock server says so");
        }
    }

    pub fn go_and_release(&mut self, worker: usize) {
        if self.settings.gates && self.one_in(3) {
            self.wait_at(worker, Gate::BeforeRelease);
        } else {
            self.enter(worker, Phase::AtGate);
            self.set(worker, 30 * US, Timer::Release);
        }
    }

    pub fn release(&mut self, worker: usize) {
        self.say_releasing(worker);
    }

    pub fn say_releasing(&mut self, worker: usize) {
        let (round, key, token) = self.names(worker);
        if std::mem::take(&mut self.held(worker).nested) {
            let key = key.clone();
            let holds = 1;
            self.say(
                worker,
                EventKind::Left {
                    round,
                    key,
                    token,
                    holds,
                },
            );
        }
        self.enter(worker, Phase::Releasing);
        self.say(worker, EventKind::Releasing { round, key, token });
        let doomed = self.settings.failing && self.one_in(8);
        let request = LockRequest {
            worker,
            key: self.workers[worker].key,
            owner: self.held(worker).owner.clone(),
            sent_ns: self.now,
            what: Wanted::Release,
            mute: doomed,
        };
        if !doomed || self.random.bool() {
            self.send_request(worker, request);
        }
        let wait = self.random.u64(500 * MS..2_000 * MS);
        self.set(worker, wait, Timer::NoRelease);
    }

    pub fn no_answer_to_release(&mut self, worker: usize) {
        if self.random.bool() {
            self.fail(worker, Step::Release);
        } else {
            self.say_released(worker, ReleaseOutcome::Unknown);
        }
    }

    pub fn hear_of_release(&mut self, worker: usize, owner: &str, outcome: ReleaseOutcome) {
        let releasing = self.workers[worker].phase == Phase::Releasing;
        if releasing && self.workers[worker].owner() == owner {
            self.say_released(worker, outcome);
        }
    }

    fn say_released(&mut self, worker: usize, outcome: ReleaseOutcome) {
        let (round, key, token) = self.names(worker);
        self.say(
            worker,
            EventKind::Released {
                round,
                key,
                token,
                outcome,
            },
        );
        self.rest(worker);
    }
}
