//! Checks the fields that a load excludes, and the mistakes in its plan.

use super::*;
use crate::load::{ContendPlan, KeyspacePlan};
use crate::scenario::draft::{DraftContend, DraftKeyspace, DraftLoad};
use crate::services::LockOptions;

/// The fields of a lock, whose mistakes are reported for every lock, in a load or not.
const OF_THE_LOCK: [&str; 6] = [
    "lock",
    "ttl",
    "wait",
    "release",
    "fence_floor",
    "lock_delay",
];
/// Used in place of a time that is missing or could not be read, which has been reported.
const SOME_TIME: Duration = Duration::from_secs(2);

pub fn check(draft: &DraftSetup, report: &mut Report) {
    match &draft.load {
        Some(DraftLoad::Contend(contend)) => check_contend(draft, contend, report),
        Some(DraftLoad::Keyspace(keyspace)) => check_keyspace(draft, keyspace, report),
        None => {}
    }
}

fn check_contend(draft: &DraftSetup, contend: &DraftContend, report: &mut Report) {
    let places = &contend.places;
    if draft.duration.is_none() {
        let message =
            "contenders go on for a `duration`, each number of them; give the scenario one";
        report.add(places.of_field(""), message);
    }
    let length = draft.duration.as_ref().map_or(SOME_TIME, |at| at.value);
    let plan = contend.plan(LockOptions::default(), SOME_TIME, length);
    for (field, words) in plan.mistakes() {
        if field == "contenders" && contend.contenders.is_none() {
            continue;
        }
        let place = match (field, &draft.duration) {
            ("duration", Some(duration)) => duration.place,
            _ => places.of_field(field),
        };
        if !OF_THE_LOCK.contains(&field) {
            report.add(place, words);
        }
    }
}

pub fn contend_plan(draft: &DraftSetup, contend: &DraftContend) -> Option<ContendPlan> {
    let lock = draft.lock.as_ref()?;
    let duration = draft.duration.as_ref()?.value;
    Some(contend.plan(lock.options()?, lock.ttl.as_ref()?.value, duration))
}

fn check_keyspace(draft: &DraftSetup, keyspace: &DraftKeyspace, report: &mut Report) {
    let places = &keyspace.places;
    if let Some(duration) = &draft.duration {
        let message =
            "a keyspace lasts until nothing dead is left, or for its `watch`; leave `duration` out";
        report.add(duration.place, message);
    }
    let Some(lock) = &draft.lock else { return };
    if let Some(backend) = &lock.backend
        && backend.value.service().keyspace.is_none()
    {
        let message = format!(
            "a keyspace is made in one Redis or in an etcd: `redis` or `etcd`, not `{}`",
            backend.value
        );
        report.add(backend.place, message);
    }
    for field in ["wait", "release", "fence_floor", "lock_delay"] {
        if let Some(place) = lock.places.get(field) {
            let message = format!("nobody waits for the locks of a keyspace; leave `{field}` out");
            report.add(place, message);
        }
    }
    let Some(plan) = keyspace.plan(SOME_TIME) else {
        return;
    };
    // A backend that is refused already causes no further complaints.
    let backend = lock.backend.as_ref().map(|backend| backend.value);
    let keyspace = backend.and_then(|backend| backend.service().keyspace);
    let mistakes = match keyspace {
        Some(keyspace) => plan.mistakes_at(keyspace),
        None => plan.mistakes(),
    };
    for (field, words) in mistakes {
        if !OF_THE_LOCK.contains(&field) {
            report.add(places.of_field(field), words);
        }
    }
}

pub fn keyspace_plan(draft: &DraftSetup, keyspace: &DraftKeyspace) -> Option<KeyspacePlan> {
    keyspace.plan(draft.ttl()?.value)
}
