//! Explores the token scheme: every order in which messages can arrive, be heard or not,
//! and locks expire. The decisions are made by the production code.

mod explore;
mod world;

use super::decision::{Decision, TokenScheme, Vote, decide};
use explore::{Explored, explore, walk};
use world::{Mutant, Rules, Violation, World};

const STRICT: TokenScheme = TokenScheme::Strict;
const NAIVE: TokenScheme = TokenScheme::UnsafeMaxOfCounters;

fn rules<const TRIES: usize>(scheme: TokenScheme) -> Rules<TRIES> {
    Rules {
        quorum: 2,
        scheme,
        mutant: None,
        proposals: [0; TRIES],
        one_after_another: false,
    }
}

fn in_soak() -> bool {
    std::env::var_os("FENCEPOST_SOAK").is_some()
}

#[track_caller]
fn assert_safe<const TRIES: usize>(rules: &Rules<TRIES>) {
    let started_at = std::time::Instant::now();
    match explore::<3, TRIES>(rules, |_| true) {
        Explored::Safe { worlds } => {
            let proposals = rules.proposals;
            let took = started_at.elapsed();
            println!("{worlds} worlds with proposals {proposals:?} in {took:?}");
            assert!(worlds > 10_000, "only {worlds} worlds were seen");
        }
        Explored::Violated(story) => panic!("{}", story.tell()),
    }
}

#[track_caller]
fn violation<const TRIES: usize>(rules: &Rules<TRIES>) -> Violation {
    match explore::<3, TRIES>(rules, |_| true) {
        Explored::Safe { worlds } => panic!("no violation in {worlds} worlds"),
        Explored::Violated(story) => {
            println!("{}", story.tell());
            story.violation
        }
    }
}

#[test]
fn tokens_only_grow_in_every_world_of_three_nodes() {
    // Proposals are hints from clocks that may be wrong in any way.
    let of_three: &[[u8; 3]] = if in_soak() {
        &[[0, 0, 0], [1, 3, 2], [2, 0, 1], [0, 3, 3], [3, 2, 1]]
    } else {
        &[[0, 0, 0], [1, 3, 2]]
    };
    for &proposals in of_three {
        assert_safe(&Rules {
            proposals,
            ..rules::<3>(STRICT)
        });
    }
    if in_soak() {
        for proposals in [[0, 0, 0, 0], [3, 0, 2, 1]] {
            assert_safe(&Rules {
                proposals,
                ..rules::<4>(STRICT)
            });
        }
    }
}

#[test]
fn the_highest_counter_is_no_token() {
    // Without any fault, one try after another: two holds have the same token …
    let one_after_another = true;
    let same = violation(&Rules {
        one_after_another,
        ..rules::<3>(NAIVE)
    });
    assert_eq!(same, Violation::Twice { token: 2 });
    // … and a token goes backwards.
    let rules = Rules {
        one_after_another,
        ..rules::<5>(NAIVE)
    };
    let backwards = |violation| matches!(violation, Violation::Backwards { .. });
    let Explored::Violated(story) = explore::<3, 5>(&rules, backwards) else {
        panic!("never backwards");
    };
    println!("{}", story.tell());
    let tokens = story.end.tokens();
    assert!(
        tokens.windows(2).any(|pair| pair[1] < pair[0]),
        "{tokens:?}"
    );
}

#[test]
fn the_known_counterexample_is_one_and_the_strict_scheme_survives_it() {
    let three: &[&[usize]] = &[&[0, 1], &[0, 2], &[0, 1], &[0, 2], &[1, 2]];
    let five: &[&[usize]] = &[&[0, 1, 2], &[0, 3, 4], &[0, 1, 2], &[0, 3, 4], &[1, 2, 3]];
    for (quorums, nodes) in [(three, 3), (five, 5)] {
        assert_eq!(tokens_of(quorums, nodes, NAIVE), [1, 2, 3, 4, 3]);
        assert_eq!(tokens_of(quorums, nodes, STRICT), [1, 2, 3, 4, 5]);
    }
}

/// Grants by each of these quorums in turn, and never asks the other nodes.
fn tokens_of(quorums: &[&[usize]], nodes: usize, scheme: TokenScheme) -> Vec<u64> {
    let mut counters = vec![0; nodes];
    let hold = |quorum: &&[usize]| {
        for &node in *quorum {
            counters[node] += 1;
        }
        let decide = |counters: &[u64]| {
            let votes = quorum.iter().map(|&node| Vote::Granted(counters[node]));
            decide(votes, quorum.len(), scheme)
        };
        if let Decision::WriteBack(token) = decide(&counters) {
            for &node in *quorum {
                counters[node] = token;
            }
        }
        match decide(&counters) {
            Decision::Held(token) => token,
            other => panic!("{other:?}"),
        }
    };
    quorums.iter().map(hold).collect()
}

#[test]
fn every_part_of_the_scheme_is_needed() {
    for mutant in [
        Mutant::WriteBackUnconditional,
        Mutant::NodeForgets,
        Mutant::OwnerUsedTwice,
        Mutant::ExtensionRevives,
    ] {
        println!("{mutant:?}");
        violation(&Rules {
            mutant: Some(mutant),
            ..rules::<2>(STRICT)
        });
    }
}

#[test]
fn random_walks_of_five_nodes_only_see_tokens_grow() {
    const TRIES: usize = 6;
    let walks = if in_soak() { 100_000 } else { 2_000 };
    let with = |scheme, seed| Rules {
        quorum: 3,
        proposals: std::array::from_fn(|n| [0, 2, 1, 5][(n + seed as usize) % 4]),
        ..rules::<TRIES>(scheme)
    };
    let mut holds = 0;
    let mut naive_violations = 0;
    for seed in 0..walks {
        let walked: Result<World<5, TRIES>, _> = walk(&with(STRICT, seed), seed);
        match walked {
            Ok(world) => holds += world.tokens().len() as u64,
            Err(story) => panic!("{}", story.tell()),
        }
        naive_violations += u64::from(walk::<5, TRIES>(&with(NAIVE, seed), seed).is_err());
    }
    println!("{holds} holds in {walks} walks; the naive scheme failed in {naive_violations}");
    assert!(
        holds > walks,
        "too little was held to prove anything: {holds}"
    );
    assert!(naive_violations > 0, "walks that cannot fail prove nothing");
}
