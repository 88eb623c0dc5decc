//! The toxics of one proxy. A change is published to all connections and answered at
//! once: nobody waits for a stuck connection.

use super::announced::{Announcer, Follower};
use super::*;
use crate::toxic::checked_toxicity;
use crate::{ToxicKind, ToxicProblem};
use serde::Deserialize;
use serde_json::{Map, Value};

pub type Published = Arc<[Entry]>;

#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Grows with every toxic that this proxy ever had.
    pub id: u64,
    pub toxic: Toxic,
}

/// The content of a request to change a toxic; name, type and stream in it have no
/// effect.
#[derive(Debug, Default, Deserialize)]
pub struct ToxicPatch {
    attributes: Option<Map<String, Value>>,
    toxicity: Option<f64>,
}

pub struct Toxics {
    all: Mutex<All>,
    upstream: Announcer<Published>,
    downstream: Announcer<Published>,
}

#[derive(Default)]
struct All {
    entries: Vec<Entry>,
    last_id: u64,
}

impl Toxics {
    pub fn new() -> Toxics {
        let nothing = || Announcer::new(Published::default());
        Toxics {
            all: Mutex::default(),
            upstream: nothing(),
            downstream: nothing(),
        }
    }

    pub fn subscribe(&self, stream: Stream) -> Follower<Published> {
        self.announcer(stream).follow()
    }

    pub fn list(&self) -> Vec<Toxic> {
        let all = self.all.lock();
        let of = |stream| all.entries.iter().filter(move |e| e.toxic.stream == stream);
        let toxics = Stream::ALL.into_iter().flat_map(of);
        toxics.map(|entry| entry.toxic.clone()).collect()
    }

    pub fn get(&self, name: &str) -> Result<Toxic, Refusal> {
        let all = self.all.lock();
        let entry = all.entries.iter().find(|entry| entry.toxic.name == name);
        entry.map(|e| e.toxic.clone()).ok_or(Refusal::no_toxic())
    }

    pub fn add(&self, toxic: Toxic) -> Result<Toxic, Refusal> {
        Refusal::unless_short(&toxic.name)?;
        let mut all = self.all.lock();
        if all.entries.iter().any(|e| e.toxic.name == toxic.name) {
            return Err(Refusal::toxic_exists());
        }
        all.last_id += 1;
        let id = all.last_id;
        all.entries.push(Entry {
            id,
            toxic: toxic.clone(),
        });
        self.publish(&all, toxic.stream);
        Ok(toxic)
    }

    pub fn update(&self, name: &str, patch: ToxicPatch) -> Result<Toxic, Refusal> {
        let mut all = self.all.lock();
        let entry = all.entries.iter_mut().find(|e| e.toxic.name == name);
        let toxic = &mut entry.ok_or(Refusal::no_toxic())?.toxic;
        let mut attributes = toxic.kind.attributes();
        attributes.extend(patch.attributes.unwrap_or_default());
        let kind = ToxicKind::from_attributes(toxic.kind.type_name(), &attributes)?;
        toxic.toxicity = checked_toxicity(patch.toxicity.unwrap_or(toxic.toxicity))?;
        toxic.kind = kind;
        let toxic = toxic.clone();
        self.publish(&all, toxic.stream);
        Ok(toxic)
    }

    pub fn remove(&self, name: &str) -> Result<(), Refusal> {
        let mut all = self.all.lock();
        let at = all.entries.iter().position(|e| e.toxic.name == name);
        let removed = all.entries.remove(at.ok_or(Refusal::no_toxic())?);
        self.publish(&all, removed.toxic.stream);
        Ok(())
    }

    pub fn clear(&self) {
        let mut all = self.all.lock();
        all.entries.clear();
        for stream in Stream::ALL {
            self.publish(&all, stream);
        }
    }

    /// Publishes the toxics of a stream. The caller holds the lock, so that nobody
    /// publishes an older list over a newer one.
    fn publish(&self, all: &All, stream: Stream) {
        let entries = all.entries.iter().filter(|e| e.toxic.stream == stream);
        self.announcer(stream).announce(entries.cloned().collect());
    }

    fn announcer(&self, stream: Stream) -> &Announcer<Published> {
        match stream {
            Stream::Upstream => &self.upstream,
            Stream::Downstream => &self.downstream,
        }
    }
}

impl From<ToxicProblem> for Refusal {
    fn from(problem: ToxicProblem) -> Refusal {
        match problem {
            ToxicProblem::Stream | ToxicProblem::Type => Refusal::bad_request(problem),
            ToxicProblem::Attribute { .. } | ToxicProblem::Toxicity(_) => {
                Refusal::bad_body(problem)
            }
        }
    }
}
