//! The lock server's answers to those who hold a lock, or no longer want one.

use super::defect::Defect;
use super::lock_server::{LockAnswer, LockRequest};
use super::truth::{Arrival, End};
use super::world::World;
use fencepost::model::LockEventKind;
use fencepost::model::ReleaseOutcome;

impl World {
    pub fn serve_renewal(&mut self, service: usize, request: &LockRequest) -> Option<LockAnswer> {
        let LockRequest { worker, key, .. } = *request;
        let owner = &request.owner;
        let holder = self.servers[service].keys[key].holder.as_ref();
        let kept = holder.is_some_and(|holder| holder.owner == *owner);
        let is_free = holder.is_none();
        let mut answer = LockAnswer::Renewed {
            owner: owner.clone(),
            sent_ns: request.sent_ns,
            kept,
        };
        if kept {
            self.prolong(service, key);
        } else if is_free && service == 0 && self.strikes(Defect::RenewalRecreates) {
            let defect = Defect::RenewalRecreates;
            self.truth.plant(defect, self.now, owner, "", 0);
            self.recreate(service, key, worker, owner);
            answer = LockAnswer::Renewed {
                owner: owner.clone(),
                sent_ns: request.sent_ns,
                kept: true,
            };
        }
        Some(answer)
    }

    fn recreate(&mut self, service: usize, key: usize, worker: usize, owner: &str) {
        let token = self.truth.grant_of(owner).map_or(0, |grant| grant.token);
        // To everybody but the truth it is the same hold.
        self.hold(service, key, worker, owner, token);
        self.await_expiry(service, key);
        let kind = [LockEventKind::Granted, LockEventKind::Renewed][self.random.usize(..2)];
        self.observe(service, key, kind, owner, token);
    }

    pub fn serve_release(&mut self, service: usize, request: &LockRequest) -> LockAnswer {
        let (key, owner) = (request.key, request.owner.clone());
        let holder = self.servers[service].keys[key].holder.as_ref();
        let held = holder.map(|holder| (holder.owner.clone(), holder.token));
        let outcome = match held {
            None => ReleaseOutcome::Expired,
            Some((holder, token)) if holder == owner => {
                self.free(service, key, End::Released);
                self.observe(service, key, LockEventKind::Released, &owner, token);
                self.pass_on(service, key);
                ReleaseOutcome::Released
            }
            Some((holder, token)) => {
                let silent = self.strikes(Defect::FreesAnotherSilently);
                if service > 0 || !(silent || self.strikes(Defect::FreesAnother)) {
                    ReleaseOutcome::Superseded
                } else {
                    let defect = self.settings.defect.expect("it strikes");
                    self.truth.plant(defect, self.now, &owner, &holder, 0);
                    self.free(service, key, End::FreedByAnother);
                    self.observe(service, key, LockEventKind::Released, &holder, token);
                    self.pass_on(service, key);
                    if silent {
                        ReleaseOutcome::Released
                    } else {
                        ReleaseOutcome::FreedAnother
                    }
                }
            }
        };
        LockAnswer::Released { owner, outcome }
    }

    pub fn serve_withdrawal(&mut self, service: usize, request: &LockRequest) {
        let (key, owner) = (request.key, &request.owner);
        let waiters = &mut self.servers[service].keys[key].waiters;
        waiters.retain(|(_, waiting)| waiting != owner);
        let same = |arrival: &&mut Arrival| arrival.owner == *owner;
        if let Some(arrival) = self.truth.arrivals.iter_mut().rev().find(same) {
            arrival.withdrawn = true;
        }
        let holder = self.servers[service].keys[key].holder.as_ref();
        if let Some(token) = holder.and_then(|h| (h.owner == *owner).then_some(h.token)) {
            self.free(service, key, End::Released);
            self.observe(service, key, LockEventKind::Released, owner, token);
            self.pass_on(service, key);
        }
    }
}
