//! Everything that a server knows, and the way of a command through it.

use crate::client::Client;
use crate::commands::{self, Call};
use crate::keyspace::{Bytes, Keyspace};
use crate::notify::{Class, Notify};
use crate::pubsub::Listeners;
use crate::replication::{Replicas, Role};
use crate::reply::Reply;
use crate::{Change, Data, Look};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify as Bell;

const DATABASES: usize = 16;

pub(crate) type Clock = Box<dyn Fn() -> Duration + Send + Sync>;
pub(crate) type Watcher = Box<dyn FnMut(&[Change], &Look<'_>) + Send>;

pub(crate) struct State {
    clock: Clock,
    /// The time at which the present command began; nothing ends in the middle of one.
    pub(crate) now_us: i64,
    pub(crate) databases: Vec<Keyspace>,
    /// The scripts that can be called by their hash.
    pub(crate) scripts: BTreeMap<String, Arc<[u8]>>,
    pub(crate) listeners: Listeners,
    pub(crate) notify: Notify,
    last_client: u64,
    watcher: Option<Watcher>,
    pub(crate) run_id: String,
    pub(crate) role: Role,
    /// Rings when the role has changed, or a replica has everything.
    pub(crate) role_changed: Arc<Bell>,
    pub(crate) replicas: Replicas,
    /// What the present command changed, if somebody watches.
    changes: Vec<(Class, Change)>,
    /// Rings when a key has an end and none had one before.
    pub(crate) mortal: Arc<Bell>,
}

impl State {
    pub(crate) fn new(clock: Clock) -> State {
        State {
            clock,
            now_us: 0,
            databases: vec![Keyspace::default(); DATABASES],
            scripts: BTreeMap::new(),
            listeners: Listeners::default(),
            notify: Notify::default(),
            last_client: 0,
            watcher: None,
            run_id: "0".repeat(40),
            role: Role::default(),
            role_changed: Arc::default(),
            replicas: Replicas::default(),
            changes: Vec::new(),
            mortal: Arc::default(),
        }
    }

    pub(crate) fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    pub(crate) fn connect(&mut self) -> Client {
        self.last_client += 1;
        let client = Client {
            id: self.last_client,
            db: 0,
            protocol: Default::default(),
            name: Vec::new(),
            outbox: Arc::default(),
            messages_before: None,
        };
        self.listeners.connect(client.id, &client.outbox);
        client
    }

    pub(crate) fn disconnect(&mut self, client: &Client) {
        self.listeners.disconnect(client.id);
        self.replicas.remove(&client.id);
    }

    pub(crate) fn begin(&mut self, clock: Clock, run_id: String) {
        self.clock = clock;
        self.run_id = run_id;
    }

    pub(crate) fn restart(&mut self, data: Data) {
        self.listeners.end_all();
        self.scripts.clear();
        self.replicas.clear();
        self.notify = Notify::default();
        if data == Data::Lost {
            self.clear();
        }
    }

    pub(crate) fn clear(&mut self) {
        self.databases.fill(Keyspace::default());
        self.send_whole();
    }

    /// Carries a command out for a client; returns its answers.
    pub(crate) fn run(&mut self, client: &mut Client, words: &[Bytes]) -> Vec<Reply> {
        self.tick();
        let had_ends = self.first_end_ms().is_some();
        let replies = commands::run(Call {
            state: self,
            client,
            words,
        });
        self.report();
        if !had_ends && self.first_end_ms().is_some() {
            self.mortal.notify_one();
        }
        replies
    }

    pub(crate) fn report(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        self.send_changes(&changes);
        if let Some(watcher) = self.watcher.as_mut().filter(|_| !changes.is_empty()) {
            let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
            watcher(&changes, &Look(&self.databases));
        }
    }

    fn first_end_ms(&self) -> Option<i64> {
        let ends = self.databases.iter().filter_map(Keyspace::first_end);
        ends.map(|(ends_ms, _)| *ends_ms).min()
    }

    fn tick(&mut self) {
        let now = (self.clock)();
        self.now_us = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.now_us / 1000
    }

    pub(crate) fn expire(&mut self) -> Option<Duration> {
        if self.is_replica() {
            return None;
        }
        self.tick();
        let now_ms = self.now_ms();
        for db in 0..DATABASES {
            while let Some((ends_ms, key)) = self.databases[db].first_end().cloned() {
                if now_ms <= ends_ms {
                    break;
                }
                self.end(db, &key);
            }
        }
        self.report();
        let first = self.first_end_ms()?;
        // A key is there for the whole of its last millisecond.
        let left_us = first.saturating_add(1).saturating_mul(1000) - self.now_us;
        Some(Duration::from_micros(left_us.unsigned_abs()))
    }

    /// Returns the database, after a key of it has ended if its time is over.
    pub(crate) fn keys(&mut self, db: usize, key: &[u8]) -> &mut Keyspace {
        let ends_ms = self.databases[db].ends_ms(key);
        if ends_ms.is_some_and(|ends_ms| self.now_ms() > ends_ms) && !self.is_replica() {
            self.end(db, key);
        }
        &mut self.databases[db]
    }

    /// Returns the database, whatever has ended in it.
    pub(crate) fn database(&mut self, db: usize) -> &mut Keyspace {
        &mut self.databases[db]
    }

    fn end(&mut self, db: usize, key: &[u8]) {
        self.databases[db].remove(key);
        self.changed(db, Class::Expired, "expired", key);
    }

    /// Reports a change of a key to those who listen.
    pub(crate) fn changed(
        &mut self,
        db: usize,
        class: Class,
        event: impl Into<Cow<'static, str>>,
        key: &[u8],
    ) {
        let event = event.into();
        if self.notify.on_key(class) {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
            self.listeners.publish(&channel, event.as_bytes());
        }
        if self.notify.on_event(class) {
            let channel = format!("__keyevent@{db}__:{event}");
            self.listeners.publish(channel.as_bytes(), key);
        }
        if self.watcher.is_some() || !self.replicas.is_empty() {
            let key = key.to_vec();
            self.changes.push((class, Change { db, key, event }));
        }
    }
}
