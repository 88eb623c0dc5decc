//! What a search has come to, kept on disk so that it can go on.

use super::*;
use crate::run::{FolderError, make_folder, to_json, write_whole};
use crate::yaml::write;
use bounded_io::files::{self, Links};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

const FILE: &str = "explored.json";
/// Reasons for tries that say nothing, each counted; others are counted together.
const MOST_REASONS: usize = 20;

/// What a search has come to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Explored {
    pub subject: String,
    pub runtime: String,
    pub seed: u64,
    pub mutant: Option<String>,
    /// The overrides of the command.
    pub settings: Vec<String>,
    pub tries: u64,
    /// Tries whose record does not support a verdict, and why.
    pub inconclusive: u64,
    pub reasons: BTreeMap<String, u64>,
    /// Faults that have bitten, in all tries.
    pub faults: u64,
    /// Distinct orders of three events, in a simulation.
    pub orders: u32,
    pub findings: Vec<Finding>,
}

pub struct State {
    pub folder: PathBuf,
    pub explored: Explored,
    /// The number of the next try.
    pub(super) next: u64,
    pub(super) ground: Ground,
    /// The orders and the cases of a batch that was not played to its end yet.
    pub(super) of_this_batch: Vec<(Vec<u16>, Node)>,
    /// It could not be saved, which has been said.
    is_unsaved: bool,
}

#[derive(Serialize, Deserialize)]
struct Saved {
    explored: Explored,
    next: u64,
    seen: String,
    cases: Vec<String>,
    #[serde(default)]
    of_this_batch: Vec<(Vec<u16>, String)>,
}

impl State {
    pub fn begin(folder: PathBuf, explored: Explored) -> State {
        State {
            folder,
            explored,
            next: 0,
            ground: Ground::default(),
            of_this_batch: Vec::new(),
            is_unsaved: false,
        }
    }

    /// Reads the state of an earlier search for the same.
    pub fn resume(folder: PathBuf, asked: &Explored) -> Result<State, String> {
        let path = folder.join(FILE);
        let refused = |why: String| format!("cannot resume from {}: {why}", path.display());
        let text = files::read_text(&path, Links::Refuse, files::DOCUMENT);
        let text = text.map_err(|error| refused(format!("{error}; leave --resume out")))?;
        let broken = |why: String| refused(format!("{why}; remove it, and leave --resume out"));
        let saved: Saved =
            serde_json::from_str(&text).map_err(|error| broken(error.to_string()))?;
        let (known, asked) = (identity(&saved.explored), identity(asked));
        let mut both = known.into_iter().zip(asked);
        if let Some(((what, then), (_, now))) = both.find(|(known, asked)| known != asked) {
            let why = format!("it was another search, {what} {then} and not {now}");
            return Err(refused(format!(
                "{why}; give the same, or leave --resume out"
            )));
        }
        let read = |text: &String| {
            let case = parse(Path::new(FILE), text);
            case.map_err(|error| broken(error.to_string()))
        };
        let cases = saved.cases.iter().map(read).collect::<Result<_, _>>()?;
        let of_this_batch = saved.of_this_batch.into_iter();
        let of_this_batch = of_this_batch.map(|(orders, text)| Ok((orders, read(&text)?)));
        let ground = Ground::of_hex(&saved.seen, cases);
        Ok(State {
            ground: ground.ok_or_else(|| broken("its ground cannot be read".to_owned()))?,
            next: saved.next,
            of_this_batch: of_this_batch.collect::<Result<_, String>>()?,
            ..State::begin(folder, saved.explored)
        })
    }

    /// Writes it. A full disk ends no search: what was found is printed at its end.
    pub(super) fn save(&mut self, progress: &dyn Progress) {
        let of_this_batch = self.of_this_batch.iter();
        let saved = Saved {
            explored: self.explored.clone(),
            next: self.next,
            seen: self.ground.to_hex(),
            cases: self.ground.cases.iter().map(write).collect(),
            of_this_batch: of_this_batch
                .map(|(orders, case)| (orders.clone(), write(case)))
                .collect(),
        };
        if let Err(error) = write_whole(&self.folder.join(FILE), &to_json(&saved))
            && !std::mem::replace(&mut self.is_unsaved, true)
        {
            progress.say(&format!("the search goes on in memory: {error}"));
        }
    }

    /// Makes its folder, to find out before the search whether there is a place for it.
    pub fn check(&self) -> Result<(), FolderError> {
        make_folder(&self.folder)
    }
}

/// Returns what tells a search from others.
fn identity(it: &Explored) -> [(&'static str, String); 5] {
    let settings = match it.settings.is_empty() {
        true => "none".to_owned(),
        false => it.settings.join(" "),
    };
    [
        ("subject", it.subject.clone()),
        ("runtime", it.runtime.clone()),
        ("seed", it.seed.to_string()),
        ("mutant", it.mutant.clone().unwrap_or("none".to_owned())),
        ("settings", settings),
    ]
}

impl Explored {
    pub(super) fn add(&mut self, shown: &Shown) {
        self.faults += shown.faults;
        match &shown.silent {
            Some(reason) if shown.kinds.is_empty() => self.unknown(reason),
            _ => self.tries += 1,
        }
    }

    /// Counts a try that says nothing.
    pub(super) fn unknown(&mut self, reason: &str) {
        self.tries += 1;
        self.inconclusive += 1;
        let reasons = &mut self.reasons;
        let reason = match reasons.contains_key(reason) || reasons.len() < MOST_REASONS {
            true => reason,
            false => "others",
        };
        *reasons.entry(reason.to_owned()).or_default() += 1;
    }

    /// Returns whether no try has said anything.
    pub(super) fn is_hopeless(&self) -> bool {
        self.tries == self.inconclusive
    }

    /// Says how far it is, `first` being the tries of earlier commands.
    pub fn progress(&self, first: u64, took: Duration) -> String {
        let Explored {
            tries,
            faults,
            orders,
            inconclusive,
            findings,
            ..
        } = self;
        let rate = (tries - first) as f64 / took.as_secs_f64().max(0.001);
        let findings = findings.len();
        format!(
            "{tries} tries, {rate:.0} a second, {inconclusive} inconclusive, {faults} faults bit, {orders} orders of events, {findings} findings"
        )
    }
}
