//! Carries out the steps of one timeline entry one after the other, and reports them to the
//! drive as they happen.

use super::drive::GateKey;
use super::seen::Seen;
use super::*;
use crate::faults::{NodeEvent, NotProven};
use crate::model::UnprovenReason;
use crate::scenario::{DrawnStep, End, Step};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, try_join_all};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::RwLock;
use tokio::time::Instant;

/// A report of an entry while it is carried out.
#[derive(Debug, PartialEq)]
pub enum Told {
    /// A fault was proven or undone: `a.paused`, `cut.began`.
    Event { source: String, event: &'static str },
    /// Every step of an entry has begun, so a gate that it held may open.
    Begun { gate: Option<GateKey> },
    /// The reason why a fault is not proven. The entry goes no further.
    Unproven(NotProven),
    /// The last report of an entry.
    Over,
}

pub struct Actor {
    pub nemesis: Arc<Nemesis>,
    pub name: Option<String>,
    pub tell: mpsc::UnboundedSender<Told>,
    pub entries: Entries,
    pub seen: Seen,
}

pub struct Rounds {
    pub after: Duration,
    pub rounds: Vec<Vec<DrawnStep>>,
    /// No round begins later than this after the event. Of a round that has begun by then, the
    /// steps that are complete in themselves are skipped; its faults are still ended.
    pub until: Option<Duration>,
}

/// Counts the parts of the last step that have not begun. At 0 all steps have begun, which is
/// reported.
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
            Err(reason) => {
                self.tell(Told::Unproven(reason));
                // Whoever goes on all the same finds the gate open.
                self.last_has_begun(&begun);
            }
            Ok(()) => self.tell_if_over(self.name.as_deref()),
        }
        self.tell(Told::Over);
    }

    async fn one_by_one(
        &self,
        rounds: &[Vec<DrawnStep>],
        until: Option<Instant>,
        begun: &Begun,
    ) -> Result<(), NotProven> {
        let is_over = || until.is_some_and(|until| Instant::now() >= until);
        for (number, acts) in rounds.iter().enumerate() {
            let is_last = number + 1 == rounds.len();
            for (at, act) in acts.iter().enumerate() {
                // What this round began is still ended.
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
        // If the time was over before the last step, nothing more begins.
        self.last_has_begun(begun);
        Ok(())
    }

    fn act<'a>(
        &'a self,
        step: &'a DrawnStep,
        begun: Option<&'a Begun>,
    ) -> BoxFuture<'a, Result<(), NotProven>> {
        async move {
            match step {
                Step::Inject { fault, lasting } => {
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
                Step::End(End { by, node }) => {
                    self.one_has_begun(begun);
                    self.nemesis.continue_by(*by, node).await?;
                    self.tell_events(by.node_event().map(|event| (node.to_string(), event)));
                }
                Step::Heal { entry } => {
                    self.one_has_begun(begun);
                    self.heal(&entry.value).await?;
                }
                Step::Wait { length } => {
                    tokio::time::sleep(*length).await;
                    self.one_has_begun(begun);
                }
                Step::Await { event } => {
                    self.seen.wait_for(&event.value).await;
                    self.one_has_begun(begun);
                }
                Step::Together { steps } => {
                    let all = steps.iter().map(|step| self.act(step, begun));
                    try_join_all(all).await?;
                }
            }
            Ok(())
        }
        .boxed()
    }

    async fn heal(&self, entry: &str) -> Result<(), NotProven> {
        let its = self.entries.of(entry);
        // A fault that is just being injected is healed as soon as it is proven.
        drop(its.under_way.write().await);
        let standing = self.nemesis.standing_of(entry);
        let missing = || UnprovenReason::NotBegun {
            entry: entry.to_owned(),
        };
        let standing = standing.ok_or_else(missing)?;
        for id in standing {
            self.tell_events(self.nemesis.end(id).await?);
        }
        // An entry that is still being carried out reports its end itself.
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

    fn last_has_begun(&self, begun: &Begun) {
        if begun.left.swap(0, Ordering::Relaxed) > 0 {
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

    /// Reports that an entry is over, if none of its faults is active any more.
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

    fn tell_events(&self, events: impl IntoIterator<Item = NodeEvent>) {
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

/// Returns how many things begin with a step.
fn beginnings(step: &DrawnStep) -> usize {
    if let Step::Together { steps } = step {
        steps.iter().map(beginnings).sum()
    } else {
        1
    }
}

/// The progress of the entries, shared by the actors that carry them out.
#[derive(Clone, Default)]
pub struct Entries(Arc<Mutex<BTreeMap<String, Arc<Entry>>>>);

#[derive(Default)]
struct Entry {
    /// Held while a fault of the entry is injected.
    under_way: RwLock<()>,
    /// All steps of the entry have been taken.
    over: AtomicBool,
}

impl Entries {
    fn of(&self, name: &str) -> Arc<Entry> {
        Arc::clone(self.0.lock().entry(name.to_owned()).or_default())
    }
}
