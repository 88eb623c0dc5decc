use super::*;

/// Returns why the record is incomplete: the gaps that the harness noted, and workers
/// that never finished.
pub(super) fn doubts(sound: &Sound, episodes: &Episodes) -> Vec<Doubt> {
    let record = sound.record;
    let mut doubts = super::gaps(record);
    // In a case that was given up, no worker could have finished.
    if record.gaps.is_empty() {
        doubts.extend(unfinished_workers(sound, episodes));
    }
    doubts
}

fn unfinished_workers(sound: &Sound, episodes: &Episodes) -> Vec<Doubt> {
    let mut last: HashMap<&str, &Event> = HashMap::new();
    for event in &sound.history {
        last.insert(&event.worker, event);
    }
    // A worker that was killed on purpose has nothing more to report.
    let lives = |worker: &&String| episodes.killed_ns(worker).is_none();
    let workers = sound.record.workers.iter().filter(lives);
    let unfinished = workers.filter_map(|worker| {
        let text = match last.get(worker.as_str()) {
            None => format!("worker {worker} never said anything"),
            Some(event) if matches!(event.kind, EventKind::Done { .. }) => return None,
            Some(event) => format!(
                "worker {worker} never said done; the last thing it said was {}",
                event.kind.name()
            ),
        };
        let reason = DoubtReason::Unfinished {
            worker: worker.clone(),
        };
        Some(Doubt::new(reason, text))
    });
    unfinished.collect()
}
