//! Random histories from a small simulated world. What a correct fence lets
//! through must never be called a violation; what no fence lets through must
//! be called exactly what a slow and plain reading of the rules calls it.

mod plain_rules;
mod world;

use fencepost::checker::judge;
use fencepost::model::*;
use world::{Reads, World};

const SEEDS: u64 = 500;

#[test]
fn a_fence_under_random_delays_is_never_accused() {
    let mut refused = 0;
    for seed in 0..SEEDS {
        let record = World::new(seed).fence(true).expiring(true).run();
        let judgement = judge(&record);
        assert_eq!(judgement.violations, [], "seed {seed}");
        assert_eq!(judgement.doubts, [""; 0], "seed {seed}");
        assert_eq!(judgement.counts.rightful_rejections, 0, "seed {seed}");
        refused += judgement.counts.stale_rejections;
    }
    // Without late writers the test above would prove nothing.
    assert!(
        refused > SEEDS,
        "only {refused} late writes in {SEEDS} seeds"
    );
}

#[test]
fn read_modify_write_under_a_lock_that_never_expires_is_never_accused() {
    for seed in 0..SEEDS {
        let record = World::new(seed).fence(true).reads(Reads::Modify).run();
        let judgement = judge(&record);
        assert_eq!(judgement.violations, [], "seed {seed}");
        assert_eq!(judgement.overlaps, [], "seed {seed}");
        assert_eq!(judgement.counts.rejections, 0, "seed {seed}");
    }
}

/// A late write can arrive between the next holder's read and its write, and
/// nothing is stale about it yet. A fence that sees only writes cannot help.
#[test]
fn a_lost_update_is_all_that_can_slip_through_a_fence() {
    let mut lost = 0;
    for seed in 0..SEEDS {
        let world = World::new(seed).fence(true).expiring(true);
        for violation in judge(&world.reads(Reads::Modify).run()).violations {
            assert_eq!(violation.kind, ViolationKind::LostUpdate, "seed {seed}");
            lost += 1;
        }
    }
    assert!(lost > 0);
}

#[test]
fn without_a_fence_every_rule_finds_what_its_plain_reading_finds() {
    let mut found = std::collections::BTreeMap::new();
    for seed in 0..SEEDS {
        let world = World::new(seed)
            .expiring(true)
            .repeats_tokens(seed % 3 == 0);
        let record = world.reads(Reads::Modify).run();
        let judgement = judge(&record);
        let rows: Vec<_> = judgement
            .violations
            .iter()
            .map(|v| (v.row, v.kind))
            .collect();
        assert_eq!(rows, plain_rules::violations(&record.log), "seed {seed}");
        for violation in judgement.violations {
            *found.entry(violation.kind).or_insert(0) += 1;
        }
    }
    assert_eq!(found.len(), 5, "some rule had nothing to find: {found:?}");
}

#[test]
fn one_late_write_in_a_clean_log_is_found() {
    for seed in 0..SEEDS {
        let mut record = World::new(seed).fence(true).expiring(true).run();
        assert_eq!(judge(&record).violations, [], "seed {seed}");
        let late = inject_late_write(&mut record, seed);
        let found: Vec<_> = judge(&record).violations;
        let is_it = |v: &Violation| v.kind == ViolationKind::StaleAccept && v.row == late;
        assert!(found.iter().any(is_it), "seed {seed}: {found:#?}");
        assert!(
            found.iter().all(|violation| violation.row >= late),
            "seed {seed}"
        );
    }
}

/// Turns one refusal into an acceptance, or, where nobody was late, lets the
/// first writer of some key write again at the end. Returns the row.
fn inject_late_write(record: &mut CaseRecord, seed: u64) -> u64 {
    let mut refused: Vec<&mut LogRow> = record
        .log
        .iter_mut()
        .filter(|row| row.outcome == RowOutcome::Rejected && row.token < row.seen)
        .collect();
    if !refused.is_empty() {
        let chosen = fastrand::Rng::with_seed(seed).usize(..refused.len());
        refused[chosen].outcome = RowOutcome::Accepted;
        return refused[chosen].seq;
    }
    let highest = record
        .log
        .iter()
        .max_by_key(|row| row.token)
        .expect("somebody wrote");
    let mut late = record
        .log
        .iter()
        .find(|row| row.key == highest.key && row.token < highest.token)
        .expect("two holds wrote")
        .clone();
    late.seq = record.log.len() as u64 + 1;
    late.seen = None;
    record.log.push(late);
    record.log.len() as u64
}
