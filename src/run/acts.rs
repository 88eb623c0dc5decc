//! The acts of one timeline entry, carried out one after the other, and told
//! to the drive as they come about.

use super::drive::GateKey;
use super::seen::Seen;
use crate::fault::{Nemesis, NodeEvent, NotProven};
use crate::scenario::timeline::Act;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{RwLock, mpsc};
use tokio::time::Instant;

/// What an entry tells while it is carried out.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// A fault was proven or undone: `a.paused`, `cut.began`.
    Event { source: String, event: &'static str },
    /// Every act of an entry has begun, so a gate it held may open.
    Begun { gate: Option<GateKey> },
    /// Why a fault is not proven. The entry goes no further.
    Unproven(NotProven),
    /// The last thing that an entry tells.
    Over,
}

/// Whoever carries out one entry.
pub struct Actor {
    pub nemesis: Arc<Nemesis>,
    /// The entry's own.
    pub name: Option<String>,
    pub tell: mpsc::UnboundedSender<Told>,
    pub entries: Entries,
    pub seen: Seen,
}

/// What an entry does, one round after the other.
pub struct Rounds {
    pub after: Duration,
    pub rounds: Vec<Vec<Act>>,
    /// No round begins later than this after the event, and of a round that has
    /// begun only what ends something.
    pub until: Option<Duration>,
}

/// Tells that all acts have begun, once each of the last ones has.
struct Begun {
    left: AtomicUsize,
    name: Option<String>,
    gate: Option<GateKey>,
}

impl Actor {
    pub async fn carry_out(self, due: Rounds, gate: Option<GateKey>) {
        let last = due.rounds.last().and_then(|acts| acts.last());
        let begun = Begun {
            left: AtomicUsize::new(last.map_or(0, beginnings)),
            name: self.name.clone(),
            gate,
        };
        let until = due.until.map(|until| Instant::now() + until);
        tokio::time::sleep(due.after).await;
        match self.one_by_one(&due.rounds, until, &begun).await {
            Err(reason) => self.tell(Told::Unproven(reason)),
            Ok(()) => self.tell_if_over(self.name.as_deref()),
        }
        self.tell(Told::Over);
    }

    async fn one_by_one(
        &self,
        rounds: &[Vec<Act>],
        until: Option<Instant>,
        begun: &Begun,
    ) -> Result<(), NotProven> {
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        for (number, acts) in rounds.iter().enumerate() {
            let is_last = number + 1 == rounds.len();
            for (at, act) in acts.iter().enumerate() {
                // What it began in this round is still ended.
                if is_over() && act.is_complete_in_itself() {
                    continue;
                }
                let last_of_all = is_last && at + 1 == acts.len();
                self.act(act, last_of_all.then_some(begun)).await?;
            }
            if is_over() {
                break;
            }
        }
        // Where the time was over before the last act, nothing more begins.
        if begun.left.swap(0, Ordering::Relaxed) > 0 {
            self.tell_begun(begun);
        }
        Ok(())
    }

    fn act<'a>(
        &'a self,
        act: &'a Act,
        begun: Option<&'a Begun>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            match act {
                Act::Inject { fault, lasting } => {
                    let of = self.name.as_deref();
                    let entry = self.entries.of(of.unwrap_or_default());
                    let injecting = entry.under_way.read().await;
                    let injected = self.nemesis.inject(fault, *lasting, of).await?;
                    drop(injecting);
                    self.tell_events(injected.events);
                    self.one_has_begun(begun);
                    if let Some(lasting) = lasting {
                        tokio::time::sleep(*lasting).await;
                        self.tell_events(self.nemesis.end(injected.id).await?);
                    }
                }
                Act::Resume { node } => {
                    self.one_has_begun(begun);
                    self.nemesis.resume(node).await?;
                    self.tell_event(node, "resumed");
                }
                Act::Thaw { node } => {
                    self.one_has_begun(begun);
                    self.nemesis.thaw(node).await?;
                    self.tell_event(node, "thawed");
                }
                Act::Heal { entry } => {
                    self.one_has_begun(begun);
                    self.heal(entry).await?;
                }
                Act::Wait { how_long } => {
                    tokio::time::sleep(*how_long).await;
                    self.one_has_begun(begun);
                }
                Act::Await { event } => {
                    self.seen.wait_for(event).await;
                    self.one_has_begun(begun);
                }
                Act::Together { acts } => {
                    let all = acts.iter().map(|act| self.act(act, begun));
                    try_join_all(all).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn heal(&self, entry: &str) -> Result<(), NotProven> {
        let its = self.entries.of(entry);
        // What is just being injected is healed as soon as it is proven.
        drop(its.under_way.write().await);
        let standing = self.nemesis.standing_of(entry);
        let standing = standing.ok_or_else(|| format!("heal of {entry}: it has not begun"))?;
        for id in standing {
            self.tell_events(self.nemesis.end(id).await?);
        }
        // What is still being carried out tells its end itself.
        if its.over.load(Ordering::Relaxed) {
            self.tell_if_over(Some(entry));
        }
        Ok(())
    }

    fn one_has_begun(&self, begun: Option<&Begun>) {
        let Some(begun) = begun else { return };
        if begun.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.tell_begun(begun);
        }
    }

    fn tell_begun(&self, begun: &Begun) {
        let gate = begun.gate.clone();
        self.tell(Told::Begun { gate });
        if let Some(name) = &begun.name {
            self.tell_event(name, "began");
        }
    }

    /// An entry is over when nothing of it stands any more.
    fn tell_if_over(&self, entry: Option<&str>) {
        let Some(entry) = entry else { return };
        self.entries.of(entry).over.store(true, Ordering::Relaxed);
        if self
            .nemesis
            .standing_of(entry)
            .unwrap_or_default()
            .is_empty()
        {
            self.tell_event(entry, "ended");
        }
    }

    fn tell_events(&self, events: Vec<NodeEvent>) {
        for (node, event) in events {
            self.tell_event(&node, event);
        }
    }

    fn tell_event(&self, source: &str, event: &'static str) {
        let source = source.to_owned();
        self.tell(Told::Event { source, event });
    }

    fn tell(&self, told: Told) {
        // Nobody listens any more once the case is over.
        let _ = self.tell.send(told);
    }
}

/// How many things begin with an act.
fn beginnings(act: &Act) -> usize {
    match act {
        Act::Together { acts } => acts.iter().map(beginnings).sum(),
        _ => 1,
    }
}

/// How far the entries have come; shared by those that carry them out.
#[derive(Clone, Default)]
pub struct Entries(Arc<Mutex<BTreeMap<String, Arc<Entry>>>>);

#[derive(Default)]
struct Entry {
    /// Held while a fault of it is injected.
    under_way: RwLock<()>,
    /// All its steps have been taken.
    over: AtomicBool,
}

impl Entries {
    fn of(&self, name: &str) -> Arc<Entry> {
        let all = self.0.lock();
        let mut all = all.unwrap_or_else(|poisoned| poisoned.into_inner());
        Arc::clone(all.entry(name.to_owned()).or_default())
    }
}
