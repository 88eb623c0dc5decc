use crate::api::*;
use crate::leases::LeaseTimes;
use crate::peer::*;
use crate::raft::{Raft, Role};
use crate::status::Status;
use crate::store::Store;
use crate::{Change, Look, Start};
use prost::Message;
use std::collections::BTreeMap;
use std::mem;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// An answer, as it is sent.
pub type Answered = Result<Vec<u8>, Status>;

pub type Watcher = Box<dyn FnMut(&[Change<'_>], &Look<'_>) + Send>;

/// A new leader gives every lease so much more.
const ELECTION: Duration = Duration::from_secs(1);

/// A member: what it has on disk, and what its process knows.
pub struct State {
    pub raft: Raft,
    pub store: Store,
    process: Option<Start>,
    /// How often it was started.
    lives: u64,
    last_number: u64,
    /// Only a leader has it.
    leases: Option<LeaseTimes>,
    /// What is on its way to the other members.
    links: BTreeMap<u64, mpsc::Sender<PeerMessage>>,
    /// Those who wait for a command to be carried out.
    awaited: BTreeMap<u64, oneshot::Sender<Answered>>,
    /// Those who wait for the leader's word about a lease.
    asked: BTreeMap<u64, oneshot::Sender<Option<i64>>>,
    pub watcher: Option<Watcher>,
}

/// How a lease is, as far as it can be said now.
pub enum LeaseNow {
    /// The seconds that are left; None if there is no such lease.
    Is(Option<i64>),
    LeaderSays(oneshot::Receiver<Option<i64>>),
    /// Nobody leads, or the lease is over and the log does not say so yet.
    Later,
}

impl State {
    pub fn new(id: u64, others: impl IntoIterator<Item = u64>) -> State {
        let mut store = Store::default();
        store.head.cluster_id = 1;
        store.head.member_id = id;
        State {
            raft: Raft::new(id, others),
            store,
            process: None,
            lives: 0,
            last_number: 0,
            leases: None,
            links: BTreeMap::new(),
            awaited: BTreeMap::new(),
            asked: BTreeMap::new(),
            watcher: None,
        }
    }

    /// Begins another process with what is on disk.
    pub fn start(&mut self, start: Start) {
        self.raft.start(start.seed);
        self.process = Some(start);
        self.lives += 1;
        self.leases = None;
        self.links.clear();
        self.awaited.clear();
        self.asked.clear();
    }

    pub fn is_new(&self) -> bool {
        self.lives == 0
    }

    /// Returns what changes with everything that somebody may wait for.
    pub fn stamp(&self) -> impl PartialEq + use<> {
        (self.raft.disk.applied, self.raft.leader, self.raft.role)
    }

    /// Returns the wall clock, as the time since 1970.
    pub fn wall_clock(&self) -> Duration {
        let process = self.process.as_ref();
        process.map_or(Duration::ZERO, |process| (process.wall_clock)())
    }

    fn now(&self) -> Duration {
        let process = self.process.as_ref();
        process.map_or(Duration::ZERO, |process| (process.monotonic)())
    }

    pub fn header(&mut self) -> Option<ResponseHeader> {
        self.store.head.raft_term = self.raft.disk.term;
        self.store.header()
    }

    /// Returns a number that nobody else of the cluster has, nor this member in another life.
    pub fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.raft.id << 56 | self.lives << 40 | self.last_number
    }

    pub fn connect(&mut self, to: u64, link: mpsc::Sender<PeerMessage>) {
        self.links.insert(to, link);
    }

    pub fn disconnect(&mut self, from: u64) {
        self.links.remove(&from);
    }

    pub fn tick(&mut self) {
        self.raft.tick();
        self.settle();
    }

    /// Puts a command on its way into the log, if there is a leader.
    pub fn propose(&mut self, command: Command, waiter: oneshot::Sender<Answered>) -> bool {
        if self.raft.leader.is_none() {
            return false;
        }
        self.awaited.retain(|_, waiter| !waiter.is_closed());
        self.awaited.insert(command.id, waiter);
        self.raft.propose(command);
        self.settle();
        true
    }

    pub fn receive(&mut self, message: PeerMessage) {
        match message.word {
            Some(Word::AskLease(ask)) => {
                if let LeaseNow::Is(left_s) = self.lease_here(ask.lease, ask.renew) {
                    let number = ask.number;
                    let word = Word::LeaseIs(LeaseIs { number, left_s });
                    self.raft.send(message.from, self.raft.disk.term, word);
                }
            }
            Some(Word::LeaseIs(LeaseIs { number, left_s })) => {
                if let Some(waiter) = self.asked.remove(&number) {
                    let _or_gone = waiter.send(left_s);
                }
            }
            _ => self.raft.receive(message),
        }
        self.settle();
    }

    /// Looks at a lease, or asks the leader to; `renew` lets it begin anew.
    pub fn lease(&mut self, lease: i64, renew: bool) -> LeaseNow {
        let Some(leader) = self.raft.leader.filter(|leader| *leader != self.raft.id) else {
            return self.lease_here(lease, renew);
        };
        let number = self.next_number();
        let (waiter, says) = oneshot::channel();
        self.asked.retain(|_, waiter| !waiter.is_closed());
        self.asked.insert(number, waiter);
        let ask = AskLease {
            number,
            lease,
            renew,
        };
        self.raft
            .send(leader, self.raft.disk.term, Word::AskLease(ask));
        self.settle();
        LeaseNow::LeaderSays(says)
    }

    /// A leader that was deposed and does not know it answers another member all the same, as in etcd.
    fn lease_here(&mut self, lease: i64, renew: bool) -> LeaseNow {
        let now = self.now();
        let Some(times) = &mut self.leases else {
            return LeaseNow::Later;
        };
        let granted = self.store.leases.get(&lease);
        let (Some(granted), Some(left)) = (granted, times.left(lease, now)) else {
            return LeaseNow::Is(None);
        };
        if !renew {
            return LeaseNow::Is(Some(left.as_secs() as i64));
        }
        if left.is_zero() {
            return LeaseNow::Later;
        }
        times.begin(lease, now + granted.ttl());
        LeaseNow::Is(Some(granted.ttl_s))
    }

    /// Has the log say of every lease that is over that it is.
    pub fn expire(&mut self) {
        let now = self.now();
        let expired = self.leases.as_mut().map(|times| times.take_expired(now));
        for id in expired.unwrap_or_default() {
            let deed = Some(Deed::Revoke(LeaseRevokeRequest { id }));
            self.raft.propose(Command { id: 0, deed });
        }
        self.settle();
    }

    /// Carries out what was committed, and sends what has to be sent.
    fn settle(&mut self) {
        let leads = self.raft.role == Role::Leader;
        if leads && self.leases.is_none() {
            let from = self.now() + ELECTION;
            let mut times = LeaseTimes::default();
            for (lease, granted) in &self.store.leases {
                times.begin(*lease, from + granted.ttl());
            }
            self.leases = Some(times);
        } else if !leads {
            self.leases = None;
        }
        while let Some(command) = self.raft.next_committed() {
            self.carry_out(command);
        }
        for (to, message) in mem::take(&mut self.raft.outbox) {
            if let Some(link) = self.links.get(&to) {
                // What finds no room is lost, as on a network.
                let _or_lost = link.try_send(message);
            }
        }
    }

    fn carry_out(&mut self, Command { id, deed }: Command) {
        let revision = self.store.revision;
        self.store.head.raft_term = self.raft.disk.term;
        let answer = match deed {
            None => Ok(Vec::new()),
            Some(Deed::Put(put)) => self.store.put(&put).map(|it| it.encode_to_vec()),
            Some(Deed::DeleteRange(gone)) => self.store.delete(&gone).map(|it| it.encode_to_vec()),
            Some(Deed::Txn(txn)) => self.store.transact(&txn).map(|it| it.encode_to_vec()),
            Some(Deed::Grant(grant)) => {
                let granted = self.store.grant(&grant);
                let now = self.now();
                if let (Ok(granted), Some(times)) = (&granted, &mut self.leases) {
                    times.begin(granted.id, now + Duration::from_secs(granted.ttl as u64));
                }
                granted.map(|it| it.encode_to_vec())
            }
            Some(Deed::Revoke(revoke)) => {
                if let Some(times) = &mut self.leases {
                    times.forget(revoke.id);
                }
                self.store.revoke(&revoke).map(|it| it.encode_to_vec())
            }
        };
        self.report_since(revision + 1);
        if let Some(waiter) = self.awaited.remove(&id) {
            let _or_gone = waiter.send(answer);
        }
    }

    fn report_since(&mut self, revision: i64) {
        let Some(watcher) = &mut self.watcher else {
            return;
        };
        for batch in self.store.changes_since(revision) {
            let changes: Vec<Change> = batch.events.iter().filter_map(Change::of).collect();
            watcher(&changes, &Look(&self.store));
        }
    }
}
