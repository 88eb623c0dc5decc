//! One small world: simulated time, messages that travel, and everybody's turn.

use super::lock_server::{LockAnswer, LockRequest, LockServer};
use super::observer::Observer;
use super::resource::{Resource, ResourceAnswer, ResourceRequest};
use super::settings::{MS, SECOND, Settings, US};
use super::trouble::TroubleStep;
use super::truth::Truth;
use super::worker::{Timer, Worker};
use fastrand::Rng;
use fencepost::model::{CaseRecord, Event, EventKind};
use std::collections::BinaryHeap;

pub const KEYS: [&str; 2] = ["account-42", "account-43"];

/// The end of a world in which somebody would wait for ever: long after every bound.
const LONG_AFTER_NS: u64 = 30 * SECOND;

pub struct World {
    pub settings: Settings,
    pub random: Rng,
    pub now: u64,
    pub servers: Vec<LockServer>,
    pub resource: Resource,
    pub workers: Vec<Worker>,
    pub observer: Observer,
    pub record: CaseRecord,
    pub truth: Truth,
    /// Holds that nobody knows of may block a key for a while; there are few of them.
    pub ghosts: u32,
    pub next_fault: u32,
    pub troubled: bool,
    /// What the replica knew when it heard for the last time.
    pub replica: Option<LockServer>,
    owners: u32,
    due: BinaryHeap<Due>,
    order: u64,
    /// When the last message of each connection arrives: none overtakes another.
    connections: Vec<[u64; 2]>,
}

#[derive(Debug)]
pub enum Action {
    Timer(usize, Timer, u64),
    ToServer(usize, LockRequest),
    FromServer(usize, LockAnswer),
    ToResource(ResourceRequest),
    FromResource(usize, ResourceAnswer),
    Expire {
        service: usize,
        key: usize,
        stamp: u64,
    },
    Trouble(TroubleStep),
}

impl Action {
    /// The worker that has to be awake for it.
    fn worker(&self) -> Option<usize> {
        match self {
            Action::Timer(worker, ..)
            | Action::FromServer(worker, _)
            | Action::FromResource(worker, _) => Some(*worker),
            _ => None,
        }
    }
}

/// Small, because a heap moves it about.
struct Due {
    at: u64,
    order: u64,
    action: Box<Action>,
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

/// What a world leaves behind: the record for the judge, and the truth.
pub struct Played {
    pub settings: Settings,
    pub record: CaseRecord,
    pub truth: Truth,
}

pub fn play(seed: u64) -> Played {
    World::new(Settings::draw(seed)).play()
}

impl World {
    pub fn new(settings: Settings) -> World {
        let mut random = Rng::with_seed(!settings.seed);
        let start = SECOND * random.u64(1..2_000);
        let names = ["a", "b", "c", "d", "e"];
        let workers = (0..settings.workers).map(|index| {
            let service = index % settings.services;
            Worker::new(names[index], service, settings.rounds)
        });
        let workers: Vec<Worker> = workers.collect();
        let servers = ["redis", "etcd"].into_iter().take(settings.services);
        let servers = servers.map(|name| LockServer::new(name, &settings));
        let servers = servers.collect();
        World {
            servers,
            resource: Resource::new(&settings),
            observer: Observer::new(settings.observed),
            record: CaseRecord::default(),
            truth: Truth::default(),
            ghosts: 0,
            next_fault: 1,
            troubled: false,
            replica: None,
            owners: 0,
            now: start,
            due: BinaryHeap::new(),
            order: 0,
            connections: vec![[0; 2]; workers.len()],
            workers,
            random,
            settings,
        }
    }

    pub fn play(mut self) -> Played {
        for worker in 0..self.workers.len() {
            let ready = self.random.u64(..900 * MS);
            self.after(ready, Action::Timer(worker, Timer::Ready, 0));
        }
        let mut horizon = u64::MAX;
        while let Some(due) = self.due.pop() {
            if due.at > horizon {
                break;
            }
            self.now = due.at;
            if self.truth.stuck_from_ns.is_some() && horizon == u64::MAX {
                horizon = self.now + 4 * self.settings.ttl_ns + LONG_AFTER_NS;
            }
            self.act(*due.action);
        }
        if horizon != u64::MAX {
            self.now = horizon;
        }
        self.finish()
    }

    pub fn act(&mut self, action: Action) {
        if let Some(worker) = action.worker() {
            if self.workers[worker].dead {
                return;
            }
            if self.workers[worker].stopped {
                self.workers[worker].deferred.push(action);
                return;
            }
        }
        match action {
            Action::Timer(worker, timer, epoch) => self.timer(worker, timer, epoch),
            Action::ToServer(service, request) => self.serve(service, request),
            Action::FromServer(worker, answer) => {
                if !self.workers[worker].cut {
                    self.hear(worker, answer);
                }
            }
            Action::ToResource(request) => self.decide(request),
            Action::FromResource(worker, answer) => self.learn(worker, answer),
            Action::Expire {
                service,
                key,
                stamp,
            } => self.expire(service, key, stamp),
            Action::Trouble(step) => self.take_trouble(step),
        }
    }

    /// What should have happened already happens now.
    pub fn at(&mut self, at: u64, action: Action) {
        self.order += 1;
        let (at, order) = (at.max(self.now), self.order);
        let action = Box::new(action);
        self.due.push(Due { at, order, action });
    }

    pub fn after(&mut self, delay_ns: u64, action: Action) {
        self.at(self.now + delay_ns, action);
    }

    /// Mostly much shorter than the longest.
    pub fn delay(&mut self) -> u64 {
        let longest = self.settings.delay_ns;
        let bound = match self.random.u32(..8) {
            0 => longest,
            1 => longest / 4,
            _ => longest / 40,
        };
        50 * US + self.random.u64(..=bound)
    }

    /// Over the worker's one connection to its lock server.
    pub fn send_request(&mut self, worker: usize, request: LockRequest) {
        if self.workers[worker].cut {
            return;
        }
        let arrival = (self.now + self.delay()).max(self.connections[worker][0] + 1);
        self.connections[worker][0] = arrival;
        let service = self.workers[worker].service;
        self.at(arrival, Action::ToServer(service, request));
    }

    pub fn send_answer(&mut self, worker: usize, answer: LockAnswer) {
        let arrival = (self.now + self.delay()).max(self.connections[worker][1] + 1);
        self.connections[worker][1] = arrival;
        self.at(arrival, Action::FromServer(worker, answer));
    }

    pub fn one_in(&mut self, n: u32) -> bool {
        self.random.u32(..n) == 0
    }

    /// Whether the defect of this world strikes here, now that it could.
    pub fn strikes(&mut self, defect: super::defect::Defect) -> bool {
        self.settings.defect == Some(defect) && self.one_in(self.settings.one_in)
    }

    pub fn new_owner(&mut self, worker: usize) -> String {
        self.owners += 1;
        format!("{}-{:04}", self.workers[worker].name, self.owners)
    }

    pub fn say(&mut self, worker: usize, kind: EventKind) {
        self.record.history.push(Event {
            at_ns: self.now,
            worker: self.workers[worker].name.to_owned(),
            kind,
        });
        self.look_for_trouble(worker);
    }
}
