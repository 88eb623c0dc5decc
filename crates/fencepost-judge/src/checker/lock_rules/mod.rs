//! The promises of a lock, each judged on the workers' reports and on what the lock
//! servers were seen to hold.

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

use super::*;

pub(super) struct Break<'a> {
    pub kind: ViolationKind,
    pub key: &'a str,
    pub at_ns: u64,
    /// The indexes of the holds that it is about; the first is the one whose promise was
    /// broken.
    pub holds: Vec<usize>,
    /// The worker that broke it or was affected, then the other one.
    pub workers: Vec<&'a str>,
    pub detail: String,
    pub excuse: Option<Excuse>,
}

impl<'a> Break<'a> {
    /// Makes a break by one hold. If there is another one that it is against, the broken
    /// promise is that one's.
    fn by(case: &Case<'_, 'a>, hold: usize, against: Option<usize>, what: What) -> Break<'a> {
        let holds = &case.holds.all;
        let What(kind, at_ns, detail) = what;
        let workers = [Some(hold), against].into_iter().flatten();
        Break {
            kind,
            key: holds[hold].key,
            at_ns,
            holds: against.into_iter().chain([hold]).collect(),
            workers: workers.map(|index| holds[index].worker).collect(),
            detail,
            excuse: None,
        }
    }

    fn excused_by(self, excuse: Option<Excuse>) -> Break<'a> {
        Break { excuse, ..self }
    }

    pub fn violation(&self) -> Violation {
        let workers = self.workers.iter().map(|&worker| worker.to_owned());
        Violation {
            workers: workers.collect(),
            excuse: self.excuse.clone(),
            ..Violation::new(self.kind, self.key, 0, self.at_ns, self.detail.clone())
        }
    }
}

/// The broken rule, the time, and the details.
struct What(ViolationKind, u64, String);

/// Returns all breaks in the order of time.
pub(super) fn breaks<'a>(case: &Case<'_, 'a>) -> Vec<Break<'a>> {
    let mut found = Vec::new();
    let freed = release::breaks(case);
    found.extend(exclusion::breaks(case, &freed));
    found.extend(freed);
    found.extend(claims::breaks(case));
    found.extend(timeliness::breaks(case));
    // If one key had two holders, the order of their reports says little.
    let in_doubt: HashSet<&str> = found.iter().map(|it| it.key).collect();
    found.extend(tokens::breaks(case, &in_doubt));
    found.extend(renewal::breaks(case));
    found.extend(progress::breaks(case));
    found.extend(order::breaks(case));
    found.sort_by_key(|it| (it.at_ns, it.kind));
    found
}

/// Returns the granted holds with their indexes. Rows that contradict themselves accuse
/// nobody.
fn granted<'h, 'a>(holds: &'h [Hold<'a>]) -> impl Iterator<Item = (usize, &'h Hold<'a>)> {
    let holds = holds.iter().enumerate();
    holds.filter(|(_, hold)| hold.grant.is_some() && hold.is_sound)
}

/// Returns the same for each key of each service, in the order of their grants.
fn by_domain<'a>(holds: &[Hold<'a>]) -> BTreeMap<(&'a str, &'a str), Vec<usize>> {
    let mut domains: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, hold) in granted(holds) {
        let domain = domains.entry((hold.service, hold.key));
        domain.or_default().push(index);
    }
    domains
}

/// Formats a time of the record for a person: seconds since its first event.
fn seconds(case: &Case, at_ns: u64) -> String {
    let since_ns = at_ns.saturating_sub(case.holds.start_ns);
    format!("{:.3} s", since_ns as f64 / 1e9)
}
