//! From the last look at the clock to the resource's answer.

use super::defect::Defect;
use super::resource::{ResourceAnswer, ResourceRequest, Write};
use super::settings::{MS, US};
use super::worker::{Phase, Timer};
use super::world::{Action, World};
use fencepost::model::{BodyHash, EventKind, FencingToken, Gate, Step};

impl World {
    /// The last look at the clock before a write.
    pub fn end_work(&mut self, worker: usize) {
        let (now, looks) = (self.now, self.settings.looks);
        let hold = self.held(worker);
        if looks && !hold.lost && now >= hold.valid_until {
            let owner = hold.owner.clone();
            self.notice(worker);
            if self.workers[worker].phase != Phase::Working {
                return;
            }
            if self.settings.defect == Some(Defect::ClaimsPastValidity) {
                let defect = Defect::ClaimsPastValidity;
                self.truth.plant(defect, now, &owner, "", 0);
            }
        }
        if self.settings.gates && self.one_in(3) {
            self.wait_at(worker, Gate::BeforeWrite);
        } else {
            // From the look to the send it takes a moment.
            let moment = self.random.u64(5 * US..60 * US);
            self.set(worker, moment, Timer::Send);
        }
    }

    pub fn wait_at(&mut self, worker: usize, gate: Gate) {
        self.enter(worker, Phase::AtGate);
        let round = self.workers[worker].round;
        self.say(worker, EventKind::AtGate { round, gate });
        let longest = match self.random.u32(..3) {
            0 => self.settings.ttl_ns * 2,
            _ => self.settings.ttl_ns / 4,
        };
        let wait = self.random.u64(..=longest);
        self.set(worker, wait, Timer::GateOpens(gate));
    }

    pub fn pass_gate(&mut self, worker: usize, gate: Gate) {
        match gate {
            Gate::BeforeWrite => self.send_write(worker),
            _ => self.say_releasing(worker),
        }
    }

    pub fn send_write(&mut self, worker: usize) {
        let (round, key, token) = self.names(worker);
        let name = self.workers[worker].name;
        let ours = self.settings.ours;
        let hold = self.held(worker);
        let count = hold.based_on.map_or(0, |(_, count)| count) + 1;
        let body = match (ours, hold.token) {
            (true, Some(token)) => {
                format!("{{\"by\":\"{name}\",\"count\":{count},\"token\":{token}}}")
            }
            (true, None) => format!("{{\"by\":\"{name}\",\"count\":{count},\"token\":null}}"),
            (false, _) => format!("of {} number {}", hold.owner, hold.seq),
        };
        let write = Write {
            worker,
            key: 0,
            owner: hold.owner.clone(),
            token: hold.token,
            seq: hold.seq,
            body,
            based_on: hold.based_on,
            mute: false,
        };
        let write = Write {
            key: self.workers[worker].key,
            ..write
        };
        self.enter(worker, Phase::Writing);
        let hashes = self.settings.hashes;
        self.say(
            worker,
            EventKind::Writing {
                round,
                key,
                token,
                owner: write.owner.clone(),
                body: hashes.then(|| BodyHash::of(write.body.as_bytes())),
            },
        );
        self.dispatch(worker, write);
    }

    fn dispatch(&mut self, worker: usize, mut write: Write) {
        let mut delay = self.delay();
        if self.settings.slow_writes && self.one_in(4) {
            delay += self.random.u64(..=self.settings.ttl_ns * 2);
        }
        if self.settings.failing && self.one_in(8) {
            write.mute = true;
            if self.random.bool() {
                self.after(delay, Action::ToResource(ResourceRequest::Write(write)));
            }
            let wait = self.random.u64(10 * MS..900 * MS);
            self.set(worker, wait, Timer::Doom(Step::Write));
            return;
        }
        if self.settings.retries && self.one_in(4) {
            let first = Write {
                mute: true,
                ..write.clone()
            };
            self.after(delay, Action::ToResource(ResourceRequest::Write(first)));
            delay += self.random.u64(MS..400 * MS);
        }
        self.after(delay, Action::ToResource(ResourceRequest::Write(write)));
    }

    pub fn learn(&mut self, worker: usize, answer: ResourceAnswer) {
        let phase = self.workers[worker].phase;
        if let ResourceAnswer::Read { position, count } = answer {
            if phase == Phase::Reading {
                self.held(worker).based_on = Some((position, count));
                self.enter(worker, Phase::Working);
                self.work(worker);
            }
            return;
        }
        if phase != Phase::Writing {
            return;
        }
        let (round, key, token) = self.names(worker);
        let owner = self.held(worker).owner.clone();
        let kind = match answer {
            ResourceAnswer::Accepted { position } => {
                let hold = self.held(worker);
                hold.seq += 1;
                hold.writes_left -= 1;
                hold.based_on = hold.based_on.map(|(_, count)| (position, count + 1));
                EventKind::WriteAccepted {
                    round,
                    key,
                    token,
                    owner,
                    position,
                }
            }
            ResourceAnswer::Rejected { seen } => {
                self.held(worker).writes_left = 0;
                EventKind::WriteRejected {
                    round,
                    key,
                    owner,
                    seen: FencingToken(seen),
                    got: token.expect("a refusal compares tokens"),
                }
            }
            ResourceAnswer::Read { .. } => unreachable!("handled above"),
        };
        self.say(worker, kind);
        if self.held(worker).writes_left == 0 {
            self.go_and_release(worker);
        } else {
            self.enter(worker, Phase::Working);
            self.work(worker);
        }
    }
}
