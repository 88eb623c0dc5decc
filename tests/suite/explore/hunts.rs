//! The defects that a search has to find by itself, and make as small as the scenarios that
//! people wrote for them.

use super::*;
use std::time::Instant;

/// What is wrong, and what of it has to be found.
struct Hunt {
    mutant: Option<&'static str>,
    settings: &'static [&'static str],
    kind: &'static str,
    /// The entries of the scenario that somebody wrote for it.
    entries: u64,
}

const fn hunt(
    mutant: &'static str,
    settings: &'static [&'static str],
    kind: &'static str,
    entries: u64,
) -> Hunt {
    Hunt {
        mutant: Some(mutant),
        ..known(settings, kind, entries)
    }
}

/// A lock that is wrong without a mutant, or one that is outlived.
const fn known(settings: &'static [&'static str], kind: &'static str, entries: u64) -> Hunt {
    Hunt {
        mutant: None,
        settings,
        kind,
        entries,
    }
}

const SPIN: &str = "lock.wait=spin";
const QUEUE: &str = "lock.wait=queue";
const REDLOCK: &str = "lock.backend=redlock";

#[rustfmt::skip]
const ALL: &[Hunt] = &[
    known(&["lock.release=unsafe-get-then-del", SPIN], "freed_another", 2),
    known(&["lock.backend=redlock-unsafe-tokens"], "token_not_growing", 1),
    known(&["lock.backend=memory-majority"], "token_granted_twice", 1),
    known(&["fence=off"], "stale_accept", 1),
    hunt("lock-takes-token-before-grant", &[SPIN], "token_not_growing", 1),
    hunt("lock-releases-without-compare", &[SPIN], "freed_another", 2),
    hunt("lock-releases-without-compare", &[REDLOCK], "granted_while_held", 2),
    hunt("lock-renew-recreates", &[SPIN], "renewal_recreated", 1),
    hunt("lock-renew-recreates", &[QUEUE], "renewal_recreated", 1),
    // Larger than the scenario that somebody wrote, which has 1.
    hunt("lock-renew-recreates", &[REDLOCK], "renewal_recreated", 5),
    hunt("lock-grants-everybody", &[SPIN], "granted_while_held", 2),
    hunt("lock-grants-everybody", &[QUEUE], "granted_while_held", 2),
    hunt("lock-grants-everybody", &[REDLOCK], "granted_while_held", 2),
    hunt("lock-enters-without-the-lock", &[SPIN], "claimed_not_granted", 2),
    hunt("lock-enters-without-the-lock", &[REDLOCK], "claimed_not_granted", 2),
    hunt("lock-never-expires", &[SPIN], "never_granted", 1),
    hunt("lock-never-expires", &[QUEUE], "never_granted", 1),
    // Here too: it has 1.
    hunt("lock-never-expires", &[REDLOCK], "never_granted", 2),
    hunt("lock-tokens-backwards", &[SPIN], "token_not_growing", 0),
    hunt("lock-tokens-backwards", &[QUEUE], "token_not_growing", 0),
    hunt("lock-tokens-backwards", &[REDLOCK], "token_not_growing", 0),
    hunt("lock-reuses-nonce", &[REDLOCK], "never_granted", 1),
    hunt("lock-reports-a-late-hand-off", &[QUEUE], "acquired_too_late", 3),
    hunt("resource-ignores-token", &[], "stale_accept", 2),
    hunt("resource-accepts-equal-tokens", &[], "token_two_owners", 2),
    hunt("resource-applies-what-it-refuses", &[], "value_not_accepted", 2),
    hunt("resource-forgets-at-restart", &[], "token_regression", 2),
    hunt("resource-loses-a-key", &[], "value_not_accepted", 0),
    hunt("resource-duplicates-for-strangers", &[], "untrue_repetition", 2),
    hunt("resource-refuses-the-highest", &[], "refused_without_reason", 0),
    hunt("resource-states-a-wrong-maximum", &[], "untrue_refusal", 2),
    hunt("resource-names-a-position-twice", &[], "position_named_twice", 0),
];

impl Hunt {
    /// The options of a search for it.
    fn options(&self) -> Vec<&'static str> {
        let mutant = self.mutant.iter().flat_map(|mutant| ["--mutant", mutant]);
        let settings = self.settings.iter().flat_map(|it| ["--set", it]);
        mutant.chain(settings).collect()
    }

    /// Searches for it; returns what was told of the search.
    fn found(&self, budget: &[&str]) -> Value {
        let name = self.options().join("-");
        let options = [&["--until-found"], budget, &self.options()].concat();
        let (_, told) = explored(&name.replace(['.', '='], "-"), 1, &options);
        let found = finding(&told, self.kind);
        assert!(found["entries"].as_u64() <= Some(self.entries), "{found:#}");
        assert_eq!(found["came"], found["plays"]);
        told
    }

    /// What was found is found again when it is played as a scenario, and only with the defect.
    fn comes_again(&self, told: &Value) {
        let found = finding(told, self.kind);
        let file = found["file"].as_str().expect("a file");
        let text = fs::read_to_string(file).expect("readable");
        assert_eq!(found["scenario"], text);
        let seed = found["seed"].to_string();
        let results = fresh_folder("explore-again");
        let results = results.to_str().expect("a plain path");
        let again = ["run", file, "--results", results, "--seed", &seed];
        let again = [&again[..], &["--runtime", "sim"]].concat();
        let mutant = self.mutant.iter().flat_map(|mutant| ["--mutant", mutant]);
        let with = mutant.fold(again.clone(), |mut all, word| {
            all.push(word);
            all
        });
        offline(&with).expect_code(0);
        if self.mutant.is_some() {
            offline(&again).expect_code(1);
        }
    }
}

/// Those that nearly every search shows at once. The others take minutes in a test build.
#[test]
fn defects_are_found_by_search_and_made_small() {
    let quick = [
        "lock-grants-everybody",
        "lock-tokens-backwards",
        "lock-reports-a-late-hand-off",
        "resource-loses-a-key",
        "resource-refuses-the-highest",
    ];
    for hunt in ALL
        .iter()
        .filter(|it| quick.contains(&it.mutant.unwrap_or("")))
    {
        let told = hunt.found(&["--tries", "64"]);
        hunt.comes_again(&told);
    }
}

/// What has to come together for the defect that no search has found. The clock of c is an hour ahead,
/// so the servers that a and b share with it give higher tokens than the others, and both have to write
/// theirs back. Within the 100 ms in which a waits for a slow server, the clock of the one server that a and b
/// share jumps, and b gets a's place there with the same token.
const WRITTEN_BACK: &str = "name: written-back
about: A token that is written back to a server whose grant is over is another's as well.
topology: redlock
lock: { backend: redlock, ttl: 5s }
workers:
  c: { key: k, start: c.skewed }
  a: { key: k, start: slow.began, work: 1s }
  b: { key: k, start: redis-1.skewed }
timeline:
  - when: scenario.started
    do:
      - { partition: [[a], [redis-4, redis-5]], by: refuse }
      - { partition: [[b], [redis-2, redis-3]], by: refuse }
      - { partition: [[c], [redis-1, redis-2]], by: refuse }
      - { skew: c, by: 60m }
  - { name: slow, when: c.done, do: { latency: a -> redis-2, delay: 60ms } }
  - { when: a.acquiring, after: 40ms, do: { skew: redis-1, by: 60m } }
cases:
  found: { fence: on, expect: { violations: 0 } }
";

#[test]
fn a_token_that_is_written_back_unconditionally_is_granted_twice() {
    let results = fresh_folder("explore-written-back");
    let file = results.join("written-back.yml");
    fs::write(&file, WRITTEN_BACK).expect("a folder of ours");
    let [file, folder] = [&file, &results].map(|path| path.to_str().expect("a plain path"));
    let sound = ["run", file, "--runtime", "sim", "--results", folder];
    offline(&sound).expect_code(0);
    let defect = ["--mutant", "lock-writes-back-unconditionally"];
    let ended = offline(&[&sound[..], &defect].concat()).expect_code(1);
    ended.expect_said(&["broken: tokens (token_granted_twice 1)"]);
}

/// Each in so many tries, whatever the machine is; the seconds are printed beside them, for the
/// table of docs/explore.md.
#[test]
#[ignore = "takes minutes: just hunt"]
fn every_defect_is_found() {
    println!("| defect | with | found | in try | entries | seconds |\n|---|---|---|---|---|---|");
    for hunt in ALL {
        let began = Instant::now();
        let told = hunt.found(&["--tries", "6400", "--jobs", "2"]);
        let took = began.elapsed();
        let found = finding(&told, hunt.kind);
        println!(
            "| {} | {} | `{}` | {} | {} | {:.1} |",
            hunt.mutant.map_or("–".to_owned(), |it| format!("`{it}`")),
            hunt.settings
                .iter()
                .map(|it| format!("`{it}`"))
                .collect::<Vec<_>>()
                .join(", "),
            hunt.kind,
            found["first_try"],
            found["entries"],
            took.as_secs_f64(),
        );
        hunt.comes_again(&told);
    }
}
