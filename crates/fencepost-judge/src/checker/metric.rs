use super::*;

/// Compares the resource's metric, which people watch, with the log. A resource that was
/// started again counts from 0 again, so it is compared with the refusals since then;
/// those between the request and the observation of the restart may be on either side.
pub(super) fn doubt(sound: &Sound) -> Option<Doubt> {
    let record = sound.record;
    let counted = record.refusals_counted?;
    let restart = last_restart(record);
    let refused_since = |from_ns: u64| {
        let rows = sound.log.iter();
        let refused = rows.filter(|row| row.outcome == RowOutcome::Rejected);
        refused.filter(|row| row.at_ns >= from_ns).count() as u64
    };
    let (most, least) = match restart {
        Some((requested_ns, observed_ns)) => {
            (refused_since(requested_ns), refused_since(observed_ns))
        }
        None => (refused_since(0), refused_since(0)),
    };
    (!(least..=most).contains(&counted)).then(|| {
        let since = match restart {
            Some(_) => " since it was started again",
            None => "",
        };
        let text = format!(
            "the resource counted {counted} refusals in its metric and logged {most}{since}"
        );
        Doubt::new(DoubtReason::Metric, text)
    })
}

/// Returns when the resource's process was last ended: when that was requested, and
/// observed.
fn last_restart(record: &CaseRecord) -> Option<(u64, u64)> {
    let seen = record.faults.iter().rfind(|row| {
        row.stage == FaultStage::Observed
            && row.fault.ends_process()
            && Some(&row.target) == record.resource.as_ref()
    })?;
    let is_request = |row: &&FaultRow| row.id == seen.id && row.stage == FaultStage::Requested;
    let requested = record.faults.iter().find(is_request).unwrap_or(seen);
    Some((requested.at_ns, seen.at_ns))
}
