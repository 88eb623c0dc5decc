//! A lock service: one server, a TTL by its own clock, tokens from a counter.

use super::defect::Defect;
use super::settings::Settings;
use super::truth::{Arrival, End, Grant};
use super::world::{Action, World};
use fencepost::model::LockEventKind;
use fencepost::model::ReleaseOutcome;
use std::collections::BTreeSet;

/// From token to token: a token between two others was never granted before.
pub const STEP: u64 = 100;

#[derive(Clone)]
pub struct LockServer {
    /// The service's name.
    pub name: &'static str,
    /// The node that answers for it: after a failover, another one.
    pub node: &'static str,
    pub keys: Vec<LockKey>,
    pub counter: u64,
    /// Owners whose holds are over: none of them is granted again.
    pub past: BTreeSet<String>,
    /// How far its clock is ahead.
    pub ahead_ns: u64,
    pub down: bool,
    pub stamps: u64,
}

#[derive(Clone, Default)]
pub struct LockKey {
    pub holder: Option<Holder>,
    /// Those who wait, by worker and owner, in the order in which they came.
    pub waiters: Vec<(usize, String)>,
    pub counter: u64,
    /// By a defect, nobody is granted it ever again.
    pub forgotten: bool,
}

#[derive(Clone)]
pub struct Holder {
    pub owner: String,
    pub worker: usize,
    pub token: u64,
    /// By the server's own clock.
    pub expires_ns: u64,
    pub stamp: u64,
}

#[derive(Clone, Debug)]
pub struct LockRequest {
    pub worker: usize,
    pub key: usize,
    pub owner: String,
    pub sent_ns: u64,
    pub what: Wanted,
    /// Its answer gets lost on the way.
    pub mute: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The lock, or a place among those who wait; asked again, a confirmation.
    Grant,
    Renewal,
    Release,
    /// No lock any more, whatever became of the wish for it.
    Nothing,
}

#[derive(Clone, Debug)]
pub enum LockAnswer {
    Granted {
        owner: String,
        token: u64,
        sent_ns: u64,
    },
    Held,
    /// This owner's hold is over.
    Over {
        owner: String,
    },
    /// To a waiter in a queue: the lock is yours since then.
    HandedOver {
        owner: String,
        token: u64,
        granted_ns: u64,
    },
    /// To a waiter without a queue: try again.
    Wake,
    Renewed {
        owner: String,
        sent_ns: u64,
        kept: bool,
    },
    Released {
        owner: String,
        outcome: ReleaseOutcome,
    },
}

impl LockServer {
    pub fn new(name: &'static str, settings: &Settings) -> LockServer {
        LockServer {
            name,
            node: name,
            keys: vec![LockKey::default(); settings.keys],
            // Two services count on their own.
            counter: if name == "etcd" { 40 } else { 0 },
            past: BTreeSet::new(),
            ahead_ns: 0,
            down: false,
            stamps: 0,
        }
    }
}

impl World {
    pub fn serve(&mut self, service: usize, request: LockRequest) {
        if self.servers[service].down {
            return;
        }
        let answer = match request.what {
            Wanted::Grant => self.serve_grant(service, &request),
            Wanted::Renewal => self.serve_renewal(service, &request),
            Wanted::Release => Some(self.serve_release(service, &request)),
            Wanted::Nothing => {
                self.serve_withdrawal(service, &request);
                None
            }
        };
        if let Some(answer) = answer
            && !request.mute
        {
            self.send_answer(request.worker, answer);
        }
    }

    fn serve_grant(&mut self, service: usize, request: &LockRequest) -> Option<LockAnswer> {
        let LockRequest { worker, key, .. } = *request;
        let owner = &request.owner;
        if self.servers[service].keys[key].forgotten {
            return Some(LockAnswer::Held);
        }
        if self.servers[service].past.contains(owner) {
            return Some(LockAnswer::Over {
                owner: owner.clone(),
            });
        }
        let holder = self.servers[service].keys[key].holder.as_ref();
        let token = match holder.map(|holder| (holder.owner == *owner, holder.token)) {
            Some((true, token)) => {
                self.prolong(service, key);
                token
            }
            Some((false, _)) if !self.overrules(service, request) => {
                return Some(self.wait(service, request));
            }
            Some((false, _)) => self.grant(service, key, worker, owner),
            None if self.waits_for_others(service, key, owner) => {
                return Some(self.wait(service, request));
            }
            None => {
                self.arrive(service, key, owner);
                self.grant(service, key, worker, owner)
            }
        };
        Some(LockAnswer::Granted {
            owner: owner.clone(),
            token,
            sent_ns: request.sent_ns,
        })
    }

    /// In a queue nobody passes those who are waiting.
    fn waits_for_others(&self, service: usize, key: usize, owner: &str) -> bool {
        let waiters = &self.servers[service].keys[key].waiters;
        self.settings.queue && waiters.iter().any(|(_, waiting)| waiting != owner)
    }

    /// A lock that grants although somebody holds it.
    fn overrules(&mut self, service: usize, request: &LockRequest) -> bool {
        let everybody = self.strikes(Defect::GrantsEverybody);
        let strikes = service == 0 && (everybody || self.strikes(Defect::GrantsWhileHeld));
        if strikes && let Some(holder) = &self.servers[service].keys[request.key].holder {
            let (defect, other) = (self.settings.defect, holder.owner.clone());
            let defect = defect.expect("it strikes");
            let owner = &request.owner;
            self.truth.plant(defect, self.now, owner, &other, 0);
            self.truth.end(&other, self.now, End::Overwritten);
            self.servers[service].past.insert(other);
        }
        strikes
    }

    fn wait(&mut self, service: usize, request: &LockRequest) -> LockAnswer {
        let owner = &request.owner;
        let waiters = &mut self.servers[service].keys[request.key].waiters;
        if !waiters.iter().any(|(_, waiting)| waiting == owner) {
            waiters.push((request.worker, owner.clone()));
            self.arrive(service, request.key, owner);
        }
        LockAnswer::Held
    }

    fn arrive(&mut self, service: usize, key: usize, owner: &str) {
        self.truth.arrivals.push(Arrival {
            service,
            key,
            owner: owner.to_owned(),
            granted_ns: None,
            withdrawn: false,
        });
    }

    /// From now on, for a TTL by the server's clock.
    pub(super) fn hold(
        &mut self,
        service: usize,
        key: usize,
        worker: usize,
        owner: &str,
        token: u64,
    ) {
        let server = &mut self.servers[service];
        server.stamps += 1;
        server.keys[key].holder = Some(Holder {
            owner: owner.to_owned(),
            worker,
            token,
            expires_ns: self.now + server.ahead_ns + self.settings.ttl_ns,
            stamp: server.stamps,
        });
        self.truth.grants.push(Grant {
            service,
            key,
            owner: owner.to_owned(),
            token,
            from_ns: self.now,
            to_ns: u64::MAX,
            end: End::None,
        });
    }

    pub fn grant(&mut self, service: usize, key: usize, worker: usize, owner: &str) -> u64 {
        let token = self.next_token(service, key, owner);
        let waiters = &mut self.servers[service].keys[key].waiters;
        waiters.retain(|(_, waiting)| waiting != owner);
        self.hold(service, key, worker, owner, token);
        let same = |arrival: &&mut Arrival| arrival.owner == owner;
        if let Some(arrival) = self.truth.arrivals.iter_mut().rev().find(same) {
            arrival.granted_ns = Some(self.now);
        }
        self.await_expiry(service, key);
        self.observe(service, key, LockEventKind::Granted, owner, token);
        token
    }

    fn next_token(&mut self, service: usize, key: usize, owner: &str) -> u64 {
        let shared = self.settings.shared_counter;
        let server = &mut self.servers[service];
        let before = if shared {
            server.counter
        } else {
            server.keys[key].counter
        };
        let mut token = before + STEP;
        if service == 0 && before > 0 {
            let other = self.truth.grants.iter().rev();
            let mut other = other.filter(|grant| (grant.service, grant.key) == (service, key));
            let other = other.next().map(|grant| grant.owner.clone());
            if let Some(other) = other {
                if self.strikes(Defect::TokensBackwards) {
                    token = before - 1 - self.truth.planted.len() as u64;
                    let defect = Defect::TokensBackwards;
                    self.truth.plant(defect, self.now, owner, &other, 0);
                } else if self.strikes(Defect::TokenTwice) {
                    token = before;
                    let defect = Defect::TokenTwice;
                    self.truth.plant(defect, self.now, owner, &other, 0);
                }
            }
        }
        // A token that went backwards does not take the counter with it.
        let after = before.max(token);
        let server = &mut self.servers[service];
        if shared {
            server.counter = after;
        } else {
            server.keys[key].counter = after;
        }
        token
    }

    pub fn prolong(&mut self, service: usize, key: usize) {
        let (now, ttl_ns) = (self.now, self.settings.ttl_ns);
        let server = &mut self.servers[service];
        server.stamps += 1;
        let (stamp, expires_ns) = (server.stamps, now + server.ahead_ns + ttl_ns);
        let Some(holder) = &mut server.keys[key].holder else {
            return;
        };
        holder.expires_ns = expires_ns;
        holder.stamp = stamp;
        let (owner, token) = (holder.owner.clone(), holder.token);
        self.await_expiry(service, key);
        self.observe(service, key, LockEventKind::Renewed, &owner, token);
    }

    /// Looks when its clock gets there; again after the clock was moved.
    pub fn await_expiry(&mut self, service: usize, key: usize) {
        let server = &self.servers[service];
        let Some(holder) = &server.keys[key].holder else {
            return;
        };
        let at = holder.expires_ns.saturating_sub(server.ahead_ns);
        let stamp = holder.stamp;
        let at = at.max(self.now);
        self.at(
            at,
            Action::Expire {
                service,
                key,
                stamp,
            },
        );
    }

    pub fn expire(&mut self, service: usize, key: usize, stamp: u64) {
        let server = &self.servers[service];
        let clock = self.now + server.ahead_ns;
        let Some(holder) = &server.keys[key].holder else {
            return;
        };
        if server.down || holder.stamp != stamp || holder.expires_ns > clock {
            return;
        }
        let (owner, token, worker) = (holder.owner.clone(), holder.token, holder.worker);
        if self.settings.defect == Some(Defect::NeverExpires) && self.workers[worker].dead {
            let defect = Defect::NeverExpires;
            self.truth.plant(defect, self.now, &owner, "", 0);
            self.truth.stuck_from_ns.get_or_insert(self.now);
            return;
        }
        self.free(service, key, End::Expired);
        self.observe(service, key, LockEventKind::Expired, &owner, token);
        self.pass_on(service, key);
    }

    pub fn free(&mut self, service: usize, key: usize, end: End) {
        let server = &mut self.servers[service];
        if let Some(holder) = server.keys[key].holder.take() {
            self.truth.end(&holder.owner, self.now, end);
            server.past.insert(holder.owner);
        }
    }
}
