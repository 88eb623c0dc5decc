use super::*;

/// Returns doubts about faults that were not observed, or were too short: the outcome of
/// such a case proves nothing about the fault. Doubts that the harness already noted are
/// not repeated.
pub(super) fn doubts(record: &CaseRecord, episodes: &[Episode]) -> Vec<Doubt> {
    let said: HashSet<u32> = record.gaps.iter().filter_map(|gap| gap.fault).collect();
    let mut doubts = Vec::new();
    for episode in episodes {
        let is_said = said.contains(&episode.id);
        let failed = episode.stage(FaultStage::Unproven);
        let Some(observed) = episode.stage(FaultStage::Observed) else {
            if !is_said {
                doubts.push(unproven(episode, failed));
            }
            continue;
        };
        doubts.extend(too_short(episode, observed));
        if episode.kind.continued_by().is_some() && episode.stage(FaultStage::Healed).is_some() {
            doubts.push(of(
                episode,
                FaultDoubt::OnlyHealed,
                "was ended only by the healing after the case, not by the timeline",
            ));
        }
        if let Some(failed) = failed.filter(|_| !is_said) {
            let words = format!("was not seen to end: {}", failed.detail);
            let what = FaultDoubt::NotSeenToEnd(failed.reason.clone());
            doubts.push(of(episode, what, &words));
        }
    }
    // A case that was given up did not reach all of its faults.
    if record.gaps.is_empty() {
        let planned = record.plan.faults.iter();
        doubts.extend(planned.filter_map(|planned| missing(planned, episodes)));
    }
    doubts
}

fn of(episode: &Episode, what: FaultDoubt, words: &str) -> Doubt {
    let reason = DoubtReason::Fault {
        id: episode.id,
        kind: episode.kind,
        what,
    };
    let text = format!("{} (fault {}) {words}", episode.words(), episode.id);
    Doubt::new(reason, text)
}

fn unproven(episode: &Episode, failed: Option<&FaultRow>) -> Doubt {
    let why = failed.map(|row| row.detail.as_str());
    let why = why.filter(|why| !why.is_empty());
    let why = why.unwrap_or("nothing was seen");
    let words = format!("was asked for and not proven: {why}");
    let reason = failed.and_then(|row| row.reason.clone());
    of(episode, FaultDoubt::Unproven(reason), &words)
}

/// Compares the wanted duration with the shortest possible one: from the moment at which
/// the target was seen to be stopped to the moment at which somebody asked it to go on.
fn too_short(episode: &Episode, observed: &FaultRow) -> Option<Doubt> {
    let wanted_ms = episode.rows.iter().find_map(|row| row.longer_than_ms)?;
    let Some(end_ns) = episode.asked_to_end_ns() else {
        let words = format!(
            "has no end in the record, so it is unknown whether it lasted longer than {wanted_ms} ms"
        );
        return Some(of(episode, FaultDoubt::WithoutEnd, &words));
    };
    let lasted_ns = end_ns.saturating_sub(observed.at_ns);
    let wanted_ns = u128::from(wanted_ms) * 1_000_000;
    (u128::from(lasted_ns) <= wanted_ns).then(|| {
        let lasted_ms = lasted_ns / 1_000_000;
        let words = format!("lasted {lasted_ms} ms and had to last longer than {wanted_ms} ms");
        of(episode, FaultDoubt::TooShort, &words)
    })
}

/// Returns whether the record has a fault fewer times than the timeline.
pub(super) fn is_missing(planned: &PlannedFault, episodes: &[Episode]) -> bool {
    found(planned, episodes) < planned.times
}

fn found(planned: &PlannedFault, episodes: &[Episode]) -> usize {
    let is_one = |episode: &&Episode| {
        episode.kind == planned.kind
            && (planned.targets.is_empty()
                || planned
                    .targets
                    .iter()
                    .any(|target| episode.is_called(target)))
    };
    episodes.iter().filter(is_one).count()
}

fn missing(planned: &PlannedFault, episodes: &[Episode]) -> Option<Doubt> {
    let found = found(planned, episodes);
    (found < planned.times).then(|| {
        let target = planned.targets.join(" or ");
        let kind = planned.kind;
        let text = match found {
            0 => format!("the timeline has {kind} of {target}, and the record has no row of it"),
            _ => format!(
                "the timeline has {kind} of {target} {} times, and the record has it {found} times",
                planned.times
            ),
        };
        let targets = planned.targets.clone();
        Doubt::new(DoubtReason::FaultMissing { kind, targets }, text)
    })
}
