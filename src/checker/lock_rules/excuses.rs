//! Proven faults that take a promise away for a time, from exactly that service.

use super::Case;
use crate::checker::episodes::Episode;
use crate::model::{ClockName, Excuse, FaultKind};

/// A fault that made the service forget what it had granted.
pub(super) fn data_lost(case: &Case, service: &str, from_ns: u64, to_ns: u64) -> Option<Excuse> {
    first(case, service, from_ns, to_ns, |it| loses_data(it, service))
}

/// The same, or a fault that moved a clock which its leases end by.
pub(super) fn lease_cut_short(
    case: &Case,
    service: &str,
    from_ns: u64,
    to_ns: u64,
) -> Option<Excuse> {
    first(case, service, from_ns, to_ns, |it| {
        loses_data(it, service) || moves_clock(it, service)
    })
}

fn first(
    case: &Case,
    service: &str,
    from_ns: u64,
    to_ns: u64,
    excuses: impl Fn(&Episode) -> bool,
) -> Option<Excuse> {
    let mut all = case.episodes.iter();
    let found = all.find(|it| {
        let is_its_server = case.servers.may_be_of(service, it.target)
            && !case.disturbances.is_worker(it.target)
            && case.record.resource.as_deref() != Some(it.target);
        is_its_server && it.is_proven() && it.touches(from_ns, to_ns) && excuses(it)
    })?;
    Some(Excuse {
        fault: Some(found.id),
        text: found.words(),
    })
}

fn loses_data(episode: &Episode, service: &str) -> bool {
    match episode.kind {
        FaultKind::RestartEmpty | FaultKind::Promote => true,
        // A Redis that is started again may have kept nothing; a member of an etcd
        // has everything on disk, and the others have it too.
        FaultKind::Kill => !is_etcd(service) && episode.over_ns().is_some(),
        _ => false,
    }
}

fn moves_clock(episode: &Episode, service: &str) -> bool {
    if !matches!(episode.kind, FaultKind::Skew | FaultKind::Drift) {
        return false;
    }
    let leases_by = match is_etcd(service) {
        true => ClockName::Monotonic,
        false => ClockName::Realtime,
    };
    // Rows of earlier programs do not say which clock it was.
    let clock = episode.rows.iter().find_map(|row| row.clock);
    clock.is_none_or(|clock| clock == leases_by)
}

pub(super) fn is_etcd(service: &str) -> bool {
    service.starts_with("etcd")
}
