//! The promises of a lock, each judged on what workers were told and on what the
//! lock servers were seen to hold.

mod claims;
mod exclusion;
mod excuses;
mod order;
mod progress;
mod release;
mod renewal;
mod timeliness;
mod tokens;

pub(super) use exclusion::contended;
pub(super) use excuses::Excuses;

use super::disturbance::Disturbances;
use super::episodes::Episodes;
use super::holds::{Hold, Holds};
use super::servers::Servers;
use crate::model::{CaseRecord, Excuse, Violation, ViolationKind};
use std::collections::{BTreeMap, HashSet};

/// All that a rule may look at.
pub(super) struct Case<'c, 'a> {
    pub record: &'a CaseRecord,
    pub holds: &'c Holds<'a>,
    pub episodes: &'c Episodes<'a>,
    pub servers: &'c Servers<'c, 'a>,
    pub disturbances: &'c Disturbances<'a>,
    pub excuses: &'c Excuses<'a>,
}

/// A promise of the lock that was not kept.
pub(super) struct Break<'a> {
    pub kind: ViolationKind,
    pub key: &'a str,
    pub at_ns: u64,
    /// The holds that it is about, by their index: first whose promise it was.
    pub holds: Vec<usize>,
    /// Who broke it, or whom it befell, and against whom.
    pub workers: Vec<&'a str>,
    pub detail: String,
    pub excuse: Option<Excuse>,
}

impl Break<'_> {
    pub fn violation(&self) -> Violation {
        Violation {
            kind: self.kind,
            key: self.key.to_owned(),
            row: 0,
            against: None,
            at_ns: self.at_ns,
            workers: self
                .workers
                .iter()
                .map(|worker| (*worker).to_owned())
                .collect(),
            detail: self.detail.clone(),
            excuse: self.excuse.clone(),
        }
    }
}

/// In the order of time.
pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    let freed = release::breaks(case);
    found.extend(exclusion::breaks(case, &freed));
    found.extend(freed);
    found.extend(claims::breaks(case));
    found.extend(timeliness::breaks(case));
    // Where one key had two holders, the order in which they were told says little.
    let in_doubt: HashSet<&str> = found.iter().map(|it| it.key).collect();
    found.extend(tokens::breaks(case, &in_doubt));
    found.extend(renewal::breaks(case));
    found.extend(progress::breaks(case));
    found.extend(order::breaks(case));
    found.sort_by_key(|it| (it.at_ns, it.kind));
    found
}

/// The granted holds of each key of each service, in the order of their grants, by
/// their index. Rows that contradict themselves accuse nobody.
fn by_domain<'a>(holds: &[Hold<'a>]) -> BTreeMap<(&'a str, &'a str), Vec<usize>> {
    let mut domains: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, hold) in holds.iter().enumerate() {
        if hold.grant.is_some() && hold.is_sound {
            domains
                .entry((hold.service, hold.key))
                .or_default()
                .push(index);
        }
    }
    domains
}

/// A time of the record for a person: seconds since its first event.
fn seconds(case: &Case, at_ns: u64) -> String {
    let since_ns = at_ns.saturating_sub(case.holds.start_ns);
    format!("{:.3} s", since_ns as f64 / 1e9)
}
