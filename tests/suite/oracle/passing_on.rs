//! What becomes of a key that is free again.

use super::defect::Defect;
use super::lock_server::LockAnswer;
use super::world::World;

impl World {
    /// The key is free: in a queue the next one has it, else somebody is woken.
    pub fn pass_on(&mut self, service: usize, key: usize) {
        let waiters = self.servers[service].keys[key].waiters.len();
        if waiters == 0 {
            return;
        }
        if self.strikes(Defect::NeverWoken) {
            self.servers[service].keys[key].forgotten = true;
            let defect = Defect::NeverWoken;
            self.truth.plant(defect, self.now, "", "", 0);
            self.truth.stuck_from_ns.get_or_insert(self.now);
            return;
        }
        if !self.settings.queue {
            let all = self.random.bool();
            let first = self.random.usize(..waiters);
            for (index, (worker, _)) in self.take_waiters(service, key).into_iter().enumerate() {
                if all || index == first {
                    self.send_answer(worker, LockAnswer::Wake);
                }
            }
            return;
        }
        let mut next = 0;
        if waiters > 1 && self.strikes(Defect::QueueOutOfOrder) {
            next = self.random.usize(1..waiters);
            let waiters = &self.servers[service].keys[key].waiters;
            let (first, passed) = (waiters[next].1.clone(), waiters[0].1.clone());
            let defect = Defect::QueueOutOfOrder;
            self.truth.plant(defect, self.now, &first, &passed, 0);
        }
        let (worker, owner) = self.servers[service].keys[key].waiters.remove(next);
        let token = self.grant(service, key, worker, &owner);
        let granted_ns = self.now;
        self.send_answer(
            worker,
            LockAnswer::HandedOver {
                owner,
                token,
                granted_ns,
            },
        );
    }

    /// Those who are not woken ask again by themselves, after a while.
    fn take_waiters(&mut self, service: usize, key: usize) -> Vec<(usize, String)> {
        std::mem::take(&mut self.servers[service].keys[key].waiters)
    }
}
