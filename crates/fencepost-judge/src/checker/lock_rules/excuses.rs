//! Proven faults that suspend a promise for a time, for exactly one service.

use super::*;

#[derive(Default)]
pub(in crate::checker) struct Excuses<'a> {
    by_service: HashMap<&'a str, OfService>,
}

#[derive(Default)]
struct OfService {
    data_lost: InOrder,
    lease_cut_short: InOrder,
}

/// Faults in the order of their requests.
#[derive(Default)]
struct InOrder {
    faults: Vec<(u64, Excuse)>,
    /// When this fault and all before it were over.
    over_ns: Vec<u64>,
}

impl<'a> Excuses<'a> {
    pub fn of(
        record: &CaseRecord,
        holds: &[Hold<'a>],
        episodes: &[Episode],
        servers: &Servers,
        disturbances: &Disturbances,
    ) -> Excuses<'a> {
        let is_server = |it: &&Episode| {
            !disturbances.is_worker(it.target) && record.resource.as_deref() != Some(it.target)
        };
        let proven = episodes.iter().filter(|it| it.is_proven());
        let mut proven: Vec<&Episode> = proven.filter(is_server).collect();
        proven.sort_by_key(|it| (it.requested_ns(), it.id));
        let mut by_service: HashMap<&str, OfService> = HashMap::new();
        for hold in holds {
            by_service.entry(hold.service).or_insert_with(|| {
                let mut excuses = OfService::default();
                let own = proven.iter();
                for it in own.filter(|it| servers.may_be_of(hold.service, it.target)) {
                    if loses_data(it, hold.service_plan) {
                        excuses.data_lost.add(it);
                        excuses.lease_cut_short.add(it);
                    } else if moves_clock(it, hold.service_plan) {
                        excuses.lease_cut_short.add(it);
                    }
                }
                excuses
            });
        }
        Excuses { by_service }
    }
}

impl InOrder {
    fn add(&mut self, episode: &Episode) {
        let excuse = Excuse {
            fault: Some(episode.id),
            text: episode.words(),
        };
        self.faults.push((episode.requested_ns(), excuse));
        let before_ns = self.over_ns.last().copied().unwrap_or(0);
        let over_ns = episode.over_ns().unwrap_or(u64::MAX);
        self.over_ns.push(before_ns.max(over_ns));
    }

    /// Returns the first fault that may have changed anything between two moments.
    fn first(&self, from_ns: u64, to_ns: u64) -> Option<&Excuse> {
        let first = self.over_ns.partition_point(|&over_ns| over_ns < from_ns);
        let (requested_ns, excuse) = self.faults.get(first)?;
        (*requested_ns <= to_ns).then_some(excuse)
    }

    /// Returns when all faults were over that were requested by then.
    fn over_ns(&self, by_ns: u64) -> Option<u64> {
        let asked = self.faults.partition_point(|(at_ns, _)| *at_ns <= by_ns);
        Some(self.over_ns[asked.checked_sub(1)?])
    }
}

/// Returns a fault that made a hold's service lose its grants after the hold was
/// requested.
pub(super) fn data_lost(case: &Case, hold: &Hold, to_ns: u64) -> Option<Excuse> {
    let own = case.excuses.by_service.get(hold.service)?;
    own.data_lost.first(hold.asked_ns, to_ns).cloned()
}

/// Returns when the last of these faults was over, of those that were requested by then.
pub(super) fn data_lost_by(case: &Case, service: &str, by_ns: u64) -> Option<u64> {
    let own = case.excuses.by_service.get(service)?;
    own.data_lost.over_ns(by_ns)
}

/// Returns the same, or a fault that moved a clock which the service's leases end by.
pub(super) fn lease_cut_short(case: &Case, hold: &Hold, to_ns: u64) -> Option<Excuse> {
    let own = case.excuses.by_service.get(hold.service)?;
    own.lease_cut_short.first(hold.asked_ns, to_ns).cloned()
}

fn loses_data(episode: &Episode, service: ServicePlan) -> bool {
    match episode.kind {
        FaultKind::RestartEmpty | FaultKind::Promote => true,
        // A server that is started again may have kept nothing.
        FaultKind::Kill => !service.keeps_grants && episode.over_ns().is_some(),
        _ => false,
    }
}

fn moves_clock(episode: &Episode, service: ServicePlan) -> bool {
    if episode.kind.class() != FaultClass::Clock {
        return false;
    }
    // Rows of earlier programs do not say which clock it was.
    let clock = episode.rows.iter().find_map(|row| row.clock);
    clock.is_none_or(|clock| clock == service.leases_by)
}
