//! Faults with their proofs, as the harness records them.

use super::lock_server::LockServer;
use super::settings::{MS, SECOND};
use super::truth::End;
use super::worker::Phase;
use super::world::{Action, World};
use fencepost::model::{ClockName, EventKind, FaultKind, FaultRow, FaultStage, PlannedFault};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    None,
    Pause,
    /// Stopped for longer than the TTL while it waits for a lock.
    PauseOfWaiter,
    Kill,
    KillOfHolder,
    /// A partition between a worker and its lock server.
    Cut,
    /// The lock server forgets locks and counter.
    RestartEmpty,
    /// The lock server's clock goes ahead, and back again.
    Skew,
    /// A replica that lags becomes the lock server.
    Promote,
}

impl Trouble {
    pub const ALL: [Trouble; 11] = [
        Trouble::None,
        Trouble::Pause,
        Trouble::None,
        Trouble::PauseOfWaiter,
        Trouble::Kill,
        Trouble::RestartEmpty,
        Trouble::None,
        Trouble::KillOfHolder,
        Trouble::Cut,
        Trouble::Skew,
        Trouble::Promote,
    ];

    /// Such a fault takes promises of the lock away.
    pub fn is_of_a_server(self) -> bool {
        matches!(
            self,
            Trouble::RestartEmpty | Trouble::Skew | Trouble::Promote
        )
    }
}

#[derive(Clone, Copy, Debug)]
pub enum TroubleStep {
    Pause(usize),
    /// After a pause, or after a stall that nobody recorded.
    WakesUp(usize),
    Kill(usize),
    Cut(usize),
    Healed(usize),
    Restart(usize),
    RunsEmpty(usize),
    Skew(usize),
    SkewEnds(usize),
    ReplicaLags,
    PrimaryDies,
    ReplicaTakesOver,
}

impl World {
    /// Whether what was just said is the moment for this world's trouble.
    pub fn look_for_trouble(&mut self, worker: usize) {
        if self.troubled {
            return;
        }
        let service = self.settings.troubled_service;
        let late_enough = self.record.history.len() >= self.settings.trouble_after;
        let said = self.record.history.last().map(|event| &event.kind);
        let asks = matches!(said, Some(EventKind::Acquiring { .. }));
        let acquired = matches!(said, Some(EventKind::Acquired { .. }));
        let mut delay = self.random.u64(20_000..300 * MS);
        let step = match self.settings.trouble {
            Trouble::None => return,
            Trouble::PauseOfWaiter => {
                if !asks || !self.has_to_wait(worker) {
                    return;
                }
                // By then it stands in the queue.
                delay = self.settings.delay_ns + MS;
                TroubleStep::Pause(worker)
            }
            Trouble::KillOfHolder if !acquired || self.random.u32(..3) == 0 => return,
            Trouble::KillOfHolder => {
                delay = self.random.u64(1_000..2 * MS);
                TroubleStep::Kill(worker)
            }
            _ if !late_enough => return,
            Trouble::Pause => TroubleStep::Pause(worker),
            Trouble::Kill => TroubleStep::Kill(worker),
            Trouble::Cut => TroubleStep::Cut(worker),
            Trouble::RestartEmpty => TroubleStep::Restart(service),
            Trouble::Skew => TroubleStep::Skew(service),
            Trouble::Promote => TroubleStep::ReplicaLags,
        };
        self.troubled = true;
        self.after(delay, Action::Trouble(step));
    }

    /// Whether somebody holds the key that this worker asks for.
    fn has_to_wait(&self, worker: usize) -> bool {
        let worker = &self.workers[worker];
        let server = &self.servers[worker.service];
        server.keys[worker.key].holder.is_some()
    }

    pub fn replica_follows(&self) -> bool {
        self.settings.trouble == Trouble::Promote && self.replica.is_none()
    }

    pub fn take_trouble(&mut self, step: TroubleStep) {
        match step {
            TroubleStep::Pause(worker) => self.pause(worker),
            TroubleStep::WakesUp(worker) => self.wake_up(worker),
            TroubleStep::Kill(worker) => self.kill(worker),
            TroubleStep::Cut(worker) => self.cut(worker),
            TroubleStep::Healed(worker) => self.workers[worker].cut = false,
            TroubleStep::Restart(service) => self.restart(service),
            TroubleStep::RunsEmpty(service) => self.run_empty(service),
            TroubleStep::Skew(service) => self.skew(service),
            TroubleStep::SkewEnds(service) => {
                self.servers[service].ahead_ns = 0;
                self.look_at_expiries(service);
            }
            TroubleStep::ReplicaLags => self.replica_lags(),
            TroubleStep::PrimaryDies => self.servers[0].down = true,
            TroubleStep::ReplicaTakesOver => self.replica_takes_over(),
        }
    }

    fn moment(&mut self, longest_ms: u64) -> u64 {
        MS + self.random.u64(..longest_ms * MS)
    }

    fn plan(&mut self, kind: FaultKind, target: &str) -> u32 {
        self.record.plan.faults.push(PlannedFault {
            kind,
            targets: vec![target.to_owned()],
            times: 1,
        });
        self.next_fault += 1;
        self.next_fault - 1
    }

    fn row(&mut self, id: u32, fault: FaultKind, target: &str, stage: FaultStage, at_ns: u64) {
        let row = FaultRow::new(at_ns, id, fault, target, stage);
        // As it is read from a file: with the links that its target names.
        let row = serde_json::to_value(row).and_then(serde_json::from_value);
        self.record
            .faults
            .push(row.expect("a row is read as it is written"));
    }

    /// Asked for a moment ago, and seen a moment later; says when it is seen.
    fn proven(&mut self, id: u32, fault: FaultKind, target: &str) -> u64 {
        let (asked, seen) = (
            self.now - self.moment(60),
            self.now + 1 + self.moment(200) - MS,
        );
        self.row(id, fault, target, FaultStage::Requested, asked);
        self.row(id, fault, target, FaultStage::Observed, seen);
        seen
    }

    fn pause(&mut self, worker: usize) {
        if self.workers[worker].is_over() || self.workers[worker].stopped {
            return;
        }
        self.ghosts += 1;
        let name = self.workers[worker].name;
        let id = self.plan(FaultKind::Pause, name);
        let seen = self.proven(id, FaultKind::Pause, name);
        let ttl_ns = self.settings.ttl_ns;
        let least = match self.settings.trouble {
            Trouble::PauseOfWaiter => ttl_ns + ttl_ns / 4,
            _ => 50 * MS,
        };
        let lasts = least + self.random.u64(..ttl_ns * 2);
        if self.random.bool() {
            let asked = self.record.faults.len() - 2;
            self.record.faults[asked].longer_than_ms = Some(lasts / MS - 20);
        }
        let end = seen + lasts + self.moment(20);
        let id = self.plan(FaultKind::Resume, name);
        self.row(
            id,
            FaultKind::Resume,
            name,
            FaultStage::Requested,
            seen + lasts,
        );
        let gone = end + self.moment(200);
        self.row(id, FaultKind::Resume, name, FaultStage::Observed, gone);
        self.workers[worker].stopped = true;
        self.at(end, Action::Trouble(TroubleStep::WakesUp(worker)));
    }

    fn wake_up(&mut self, worker: usize) {
        self.workers[worker].stopped = false;
        for action in std::mem::take(&mut self.workers[worker].deferred) {
            self.act(action);
        }
    }

    fn kill(&mut self, worker: usize) {
        let phase = self.workers[worker].phase;
        if self.workers[worker].is_over() || phase == Phase::Starting {
            return;
        }
        self.ghosts += 1;
        let name = self.workers[worker].name;
        let id = self.plan(FaultKind::Kill, name);
        self.proven(id, FaultKind::Kill, name);
        self.workers[worker].dead = true;
    }

    fn cut(&mut self, worker: usize) {
        if self.workers[worker].is_over() {
            return;
        }
        self.ghosts += 1;
        let service = self.workers[worker].service;
        let target = format!(
            "{} | {}",
            self.workers[worker].name, self.servers[service].name
        );
        let id = self.plan(FaultKind::Partition, &target);
        let seen = self.proven(id, FaultKind::Partition, &target);
        let ends = seen + 20 * MS + self.random.u64(..self.settings.ttl_ns * 2);
        self.row(id, FaultKind::Partition, &target, FaultStage::Ending, ends);
        let heals = ends + self.moment(20);
        let ended = heals + self.moment(20);
        self.row(id, FaultKind::Partition, &target, FaultStage::Ended, ended);
        self.workers[worker].cut = true;
        self.at(heals, Action::Trouble(TroubleStep::Healed(worker)));
    }

    fn restart(&mut self, service: usize) {
        let name = self.servers[service].name;
        let id = self.plan(FaultKind::RestartEmpty, name);
        let asked = self.now - self.moment(60);
        let (kind, stage) = (FaultKind::RestartEmpty, FaultStage::Requested);
        self.row(id, kind, name, stage, asked);
        let runs = self.now + self.moment(1_500);
        let seen = runs + self.moment(100);
        self.row(id, kind, name, FaultStage::Observed, seen);
        self.servers[service].down = true;
        self.truth.excuses.push((service, asked));
        self.at(runs, Action::Trouble(TroubleStep::RunsEmpty(service)));
    }

    fn run_empty(&mut self, service: usize) {
        let empty = LockServer::new(self.servers[service].name, &self.settings);
        let before = std::mem::replace(&mut self.servers[service], empty);
        for holder in before.keys.iter().filter_map(|key| key.holder.as_ref()) {
            self.truth.end(&holder.owner, self.now, End::Forgotten);
        }
        self.observer.blind_until[service] = self.now + self.moment(1_000);
    }

    fn skew(&mut self, service: usize) {
        let name = self.servers[service].name;
        let id = self.plan(FaultKind::Skew, name);
        let longest = (self.settings.ttl_ns * 2).min(5 * SECOND);
        let by = self.random.u64(100 * MS..longest);
        self.truth.excuses.push((service, self.now - 100 * MS));
        let seen = self.proven(id, FaultKind::Skew, name);
        let asked = self.record.faults.len() - 2;
        let row = &mut self.record.faults[asked];
        // The one that leases are counted by.
        let clock = match name {
            "etcd" => ClockName::Monotonic,
            _ => ClockName::Realtime,
        };
        row.detail = format!("{clock} by +{} ms", by / MS);
        row.clock = Some(clock);
        row.by_ms = Some((by / MS) as i64);
        let ends = seen + self.random.u64(..self.settings.ttl_ns * 2);
        self.row(id, FaultKind::Skew, name, FaultStage::Ending, ends);
        let back = ends + self.moment(20);
        let ended = back + self.moment(20);
        self.row(id, FaultKind::Skew, name, FaultStage::Ended, ended);
        self.servers[service].ahead_ns = by;
        self.look_at_expiries(service);
        self.at(back, Action::Trouble(TroubleStep::SkewEnds(service)));
    }

    fn look_at_expiries(&mut self, service: usize) {
        for key in 0..self.settings.keys {
            self.await_expiry(service, key);
        }
    }

    fn replica_lags(&mut self) {
        const LINK: &str = "redis-replica -> redis";
        self.replica = Some(self.servers[0].clone());
        let id = self.plan(FaultKind::Blackhole, LINK);
        let cut = self.proven(id, FaultKind::Blackhole, LINK);
        self.truth.excuses.push((0, self.now));
        let asked = cut + self.random.u64(..self.settings.ttl_ns);
        let id = self.plan(FaultKind::Kill, "redis");
        self.row(id, FaultKind::Kill, "redis", FaultStage::Requested, asked);
        let dies = asked + self.moment(20);
        self.at(dies, Action::Trouble(TroubleStep::PrimaryDies));
        let dead = dies + self.moment(200);
        self.row(id, FaultKind::Kill, "redis", FaultStage::Observed, dead);
        let id = self.plan(FaultKind::Promote, "redis-replica");
        let (kind, asked) = (FaultKind::Promote, dead + MS);
        self.row(id, kind, "redis-replica", FaultStage::Requested, asked);
        let leads = asked + self.moment(60);
        self.at(leads, Action::Trouble(TroubleStep::ReplicaTakesOver));
        let seen = leads + self.moment(60);
        self.row(id, kind, "redis-replica", FaultStage::Observed, seen);
    }

    fn replica_takes_over(&mut self) {
        let replica = self.replica.clone().expect("it lagged before");
        let before = std::mem::replace(&mut self.servers[0], replica);
        self.servers[0].node = "redis-replica";
        for (key, state) in before.keys.iter().enumerate() {
            let known = self.servers[0].keys[key].holder.as_ref();
            let known = known.map(|holder| holder.owner.clone());
            if let Some(holder) = &state.holder
                && known.as_ref() != Some(&holder.owner)
            {
                self.truth.end(&holder.owner, self.now, End::Forgotten);
            }
        }
        self.look_at_expiries(0);
    }

    /// Faults that the timeline left standing.
    pub fn heal(&mut self) {
        if self.servers[0].node != "redis-replica" {
            return;
        }
        let standing = [
            (FaultKind::Kill, "redis"),
            (FaultKind::Blackhole, "redis-replica -> redis"),
        ];
        for (kind, target) in standing {
            let of_it = |row: &&FaultRow| row.fault == kind && row.target == target;
            let Some(id) = self.record.faults.iter().find(of_it).map(|row| row.id) else {
                continue;
            };
            let (ending, healed) = (self.now + MS, self.now + 20 * MS);
            self.row(id, kind, target, FaultStage::Ending, ending);
            self.row(id, kind, target, FaultStage::Healed, healed);
        }
    }
}
