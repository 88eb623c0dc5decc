//! The independent oracle: a small world that produces histories from a seed and knows
//! the truth. The judge must not accuse a correct world, and must find every planted
//! defect that shows in the record. The world shares no code with the judge.
//!
//! `FENCEPOST_ORACLE_HISTORIES` says how many histories; `FENCEPOST_ORACLE_SEED` plays
//! one of them and prints it.

mod certain_lock;
mod certain_resource;
mod defect;
mod finish;
mod flaw;
mod giving_back;
mod hold;
mod lock_server;
mod observer;
mod passing_on;
mod plain_rules;
mod print;
mod resource;
mod said;
mod settings;
mod tally;
mod trial;
mod trouble;
mod true_breaks;
mod truth;
mod worker;
mod world;
mod writing;

use defect::Defect;
use flaw::Flaw;
use tally::Tally;

/// Enough that each defect shows in dozens of them; `just soak-judge` plays ten million.
const HISTORIES: u64 = 20_000;

/// Histories of the tests that look at the world itself, without any judge.
const OF_THE_WORLD: u64 = 3_000;

#[test]
fn judge_accuses_no_correct_world_and_finds_every_defect_that_shows() {
    if let Some(seed) = number("FENCEPOST_ORACLE_SEED") {
        let trial = trial::of(seed);
        panic!("{}", trial.report());
    }
    let histories = number("FENCEPOST_ORACLE_HISTORIES").unwrap_or(HISTORIES);
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let tally = std::thread::scope(|scope| {
        let each =
            (0..threads).map(|first| scope.spawn(move || tally_of(first, threads, histories)));
        let each: Vec<_> = each.collect();
        let tallies = each
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        tallies.fold(Tally::default(), Tally::and)
    });
    println!("{tally}");
    assert!(tally.mistakes.is_empty(), "{}", tally.first_mistakes());
    // With fewer histories than that, some defect may not have had its turn.
    if histories >= HISTORIES {
        let often = histories / 1_000;
        for defect in Defect::ALL {
            let shown = tally.shown.get(&defect).copied().unwrap_or(0);
            assert!(shown >= often, "{defect:?} showed in {shown} histories");
        }
        for flaw in Flaw::ALL {
            let spoiled = tally.spoiled.get(&flaw).copied().unwrap_or(0);
            assert!(spoiled >= often, "{flaw:?} spoiled {spoiled} histories");
        }
        assert!(tally.excused >= often, "{} excused breaks", tally.excused);
    }
}

fn tally_of(first: u64, step: u64, histories: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in (first..histories).step_by(step as usize) {
        tally.add(trial::of(seed));
    }
    tally
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("cannot read {variable}: `{text}` is not a number")))
}

/// The promises as the world itself sees them, by true times.
#[test]
fn correct_world_keeps_every_promise_by_true_times() {
    for seed in 0..OF_THE_WORLD {
        let played = world::play(seed);
        if !played.truth.planted.is_empty() || !played.truth.excuses.is_empty() {
            continue;
        }
        let broken = true_breaks::of(&played);
        assert!(broken.is_empty(), "seed {seed}: {broken:?}");
    }
}

#[test]
fn planted_defect_breaks_its_promise_by_true_times() {
    for seed in 0..OF_THE_WORLD {
        let played = world::play(seed);
        let Some(defect) = played.settings.defect else {
            continue;
        };
        if played.truth.planted.is_empty() || !defect.is_of_the_lock() {
            continue;
        }
        let broken = true_breaks::of(&played);
        let meant = defect.meant().iter().any(|kind| broken.contains(kind));
        assert!(meant, "seed {seed}: {defect:?} broke only {broken:?}");
    }
}

/// The slow reading that says what must be found is itself never wrong about a correct world.
#[test]
fn correct_world_never_looks_broken() {
    for seed in 0..OF_THE_WORLD {
        let played = world::play(seed);
        if !played.truth.planted.is_empty() || !played.truth.excuses.is_empty() {
            continue;
        }
        let certain = trial::certain(&played);
        let (locks, resource) = (&certain.locks, &certain.resource);
        assert!(certain.is_empty(), "seed {seed}: {locks:?}, {resource:?}");
    }
}

#[test]
fn every_correct_world_comes_to_an_end() {
    for seed in 0..OF_THE_WORLD {
        let played = world::play(seed);
        if played.truth.stuck_from_ns.is_some() {
            continue;
        }
        let record = &played.record;
        for worker in &record.workers {
            let mut events = record
                .history
                .iter()
                .filter(|event| event.worker == *worker);
            let done = events.any(|event| event.kind.name() == "done");
            let mut faults = record.faults.iter();
            let killed = faults.any(|row| row.target == *worker && row.fault.name() == "kill");
            assert!(done || killed, "seed {seed}: {worker} is not done");
        }
    }
}
