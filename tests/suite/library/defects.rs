//! Defects that are switched on, each caught by the scenario that is named for it.

use super::*;

/// A defect, the case that shows it, what has to be set for that, and the rule
/// that is meant for it.
struct Defect {
    name: &'static str,
    scenario: &'static str,
    case: &'static str,
    settings: &'static [&'static str],
    rule: &'static str,
}

macro_rules! defects {
    ($($name:ident = $defect:expr,)*) => {
        const DEFECTS: &[Defect] = &[$($defect),*];
        $(
            #[test]
            fn $name() {
                is_caught($defect);
            }
        )*
    };
}

#[rustfmt::skip]
defects! {
    lock_grants_everybody = defect("lock-grants-everybody", "pause-gt-ttl", "fenced", "granted_while_held"),
    lock_enters_without_the_lock = defect("lock-enters-without-the-lock", "pause-gt-ttl", "fenced", "claimed_not_granted"),
    lock_enters_without_the_lock_of_etcd = defect("lock-enters-without-the-lock", "pause-gt-ttl-etcd", "fenced", "claimed_not_granted"),
    lock_never_expires = Defect {
        // Whoever waits for a key that never becomes free waits until the deadline.
        settings: &["deadline=25s", "workers.a.work=20s"],
        ..defect("lock-never-expires", "ttl-sweep", "kill-2s", "never_granted")
    },
    lock_tokens_backwards = defect("lock-tokens-backwards", "healthy", "redis-fenced", "token_not_growing"),
    lock_takes_token_before_grant = defect("lock-takes-token-before-grant", "healthy", "redis-fenced", "token_not_growing"),
    lock_releases_without_compare = defect("lock-releases-without-compare", "release-toctou", "compare-and-delete", "freed_another"),
    lock_renew_recreates = defect("lock-renew-recreates", "redis-restart-empty", "renewing-holder-stops", "renewal_recreated"),
    lock_reports_a_late_hand_off = defect("lock-reports-a-late-hand-off", "queue-late-hand-off", "stopped-while-it-waits", "acquired_too_late"),
    s3_ignores_conditions = defect("s3-ignores-conditions", "slow-body", "compares", "stale_accept"),
    resource_accepts_equal_tokens = defect("resource-accepts-equal-tokens", "redis-failover", "fenced", "token_two_owners"),
    resource_forgets_at_restart = defect("resource-forgets-at-restart", "resource-crash", "fenced", "token_regression"),
    resource_loses_a_key = defect("resource-loses-a-key", "healthy", "redis-fenced", "value_not_accepted"),
    resource_duplicates_for_strangers = defect("resource-duplicates-for-strangers", "redis-failover", "fenced", "untrue_repetition"),
    resource_refuses_the_highest = defect("resource-refuses-the-highest", "healthy", "redis-fenced", "refused_without_reason"),
    resource_states_a_wrong_maximum = defect("resource-states-a-wrong-maximum", "pause-gt-ttl", "fenced", "untrue_refusal"),
    resource_names_a_position_twice = defect("resource-names-a-position-twice", "healthy", "redis-fenced", "position_named_twice"),
}

const fn defect(
    name: &'static str,
    scenario: &'static str,
    case: &'static str,
    rule: &'static str,
) -> Defect {
    Defect {
        name,
        scenario,
        case,
        settings: &[],
        rule,
    }
}

/// Not only is the case not as expected: the rule that is meant for the defect
/// says so, and no fault excuses it.
fn is_caught(defect: Defect) {
    let Defect {
        name,
        scenario,
        case,
        rule,
        ..
    } = defect;
    let results = fresh_folder(&format!("{name}-{scenario}"));
    let settings = defect.settings.iter().flat_map(|it| ["--set", it]);
    let arguments = ["--case", case, "--mutant", name]
        .into_iter()
        .chain(settings);
    let arguments: Vec<&str> = arguments.collect();
    let ended = run_until_judged(Runtime::Local, &results, scenario, &arguments);
    let switched_on = format!("with the defect `{name}` switched on");
    ended.expect_code(1).expect_said(&[&switched_on]);
    let evidence = &latest(&results, scenario)["evidence"][case];
    let violations = evidence["violations"].as_array().expect("violations");
    let meant = |it: &Value| it["kind"] == rule && it["excuse"].is_null();
    assert!(violations.iter().any(meant), "{name}: {violations:#?}");
}

#[test]
fn the_page_of_mutants_names_the_scenario_and_the_rule_of_each_defect() {
    let page = fs::read_to_string(project().join("docs/mutants.md")).expect("a page");
    for defect in DEFECTS {
        let row = format!("| `{}` |", defect.name);
        let row = page.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row for {}", defect.name));
        let &Defect { scenario, case, .. } = defect;
        let settings = defect.settings.iter().map(|it| format!("`{it}`"));
        let shown = [format!("`{scenario}/{case}`"), format!("`{}`", defect.rule)];
        for words in settings.chain(shown) {
            assert!(row.contains(&words), "{row}: {words}");
        }
        loaded(scenario)
            .cases
            .iter()
            .find(|it| it.name == case)
            .expect(case);
    }
}
