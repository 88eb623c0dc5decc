use super::{MOST_LINES, line, screen, summary};
use crate::model::{
    CaseResult, Finding, Found, Outcome, RunRecord, StepKind, Story, StoryStep, ViolationKind,
};
use crate::report::look::Look;
use crate::report::made_up::{case, run};
use std::path::Path;

const PLAIN: Look = Look {
    color: false,
    width: 80,
    all: false,
};

fn told(name: &str, outcome: Outcome, stories: usize) -> CaseResult {
    let mut case = case(name, None);
    case.verdict.outcome = outcome;
    case.verdict.findings = vec![Finding {
        what: "accepted_writers".to_owned(),
        expected: "1".to_owned(),
        held: outcome == Outcome::AsExpected,
        found: Found::Count(2),
        outcome,
    }];
    let step = |number: u64| StoryStep {
        kind: StepKind::Other,
        at_ns: number * 1_000_000_000,
        symbolic: format!("step {number}"),
        concrete: format!(
            "step {number} of {name}, told at a length that no narrow terminal has in a line"
        ),
    };
    let story = |row: usize| Story {
        key: "account-42".to_owned(),
        row: row as u64,
        kinds: vec![ViolationKind::StaleAccept],
        steps: (1..=8).map(step).collect(),
    };
    case.judgement.stories = (1..=stories).map(story).collect();
    case
}

fn cases(count: usize, worst: Outcome) -> RunRecord {
    let outcome = |number: usize| match number + 1 == count {
        true => worst,
        false => Outcome::AsExpected,
    };
    let cases = (0..count).map(|number| told(&format!("case-{number}"), outcome(number), 3));
    run(cases.collect())
}

#[test]
fn a_scenario_fits_on_a_screen_however_much_it_has_to_say() {
    for count in [1, 2, 3, 8, 30, 100] {
        for width in [40, 80, usize::MAX] {
            let look = Look { width, ..PLAIN };
            let text = screen(&cases(count, Outcome::NotAsExpected), &look);
            let lines = text.lines().count();
            assert!(
                lines <= MOST_LINES,
                "{count} cases at {width}: {lines}\n{text}"
            );
            let worst = format!("case-{} (fence on): not as expected", count - 1);
            assert!(text.contains(&worst), "{text}");
            assert!(text.contains("results: results/contention/1\n"), "{text}");
        }
    }
}

#[test]
fn what_is_left_out_is_said_with_where_it_is() {
    let run = cases(4, Outcome::NotAsExpected);
    let text = screen(&run, &PLAIN);
    let said = "shortened: case-0, case-1, case-2; whole: fencepost check results/contention/1";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("  and 2 more, in the result\n"), "{text}");
    let all = screen(&run, &Look { all: true, ..PLAIN });
    assert!(!all.contains("shortened"), "{all}");
    assert_eq!(all.matches("violation: stale_accept").count(), 12, "{all}");
}

#[test]
fn the_worst_case_is_told_before_those_that_are_as_expected() {
    let text = screen(&cases(4, Outcome::NotAsExpected), &PLAIN);
    assert!(text.contains("step 8 of case-3"), "{text}");
    assert!(
        text.contains("accepted writers 2 where 1 was expected"),
        "{text}"
    );
    assert!(!text.contains("step 1 of case-2"), "{text}");
}

#[test]
fn lines_are_as_wide_as_the_terminal_and_hang_together() {
    let text = screen(
        &cases(2, Outcome::NotAsExpected),
        &Look { width: 44, ..PLAIN },
    );
    for line in text.lines().filter(|line| !line.starts_with("results")) {
        assert!(line.chars().count() <= 44, "{line}");
    }
    let step = "      1.000 s  step 1 of case-1, told at a\n               length that";
    assert!(text.contains(step), "{text}");
}

#[test]
fn colours_take_no_room_and_are_left_out_where_nobody_wants_them() {
    let run = cases(2, Outcome::Inconclusive);
    let painted = screen(
        &run,
        &Look {
            color: true,
            ..PLAIN
        },
    );
    assert!(
        painted.contains("\u{1b}[33minconclusive\u{1b}[0m"),
        "{painted}"
    );
    let plain = screen(&run, &PLAIN);
    assert!(!plain.contains('\u{1b}'));
    assert_eq!(painted.lines().count(), plain.lines().count());
}

#[test]
fn of_many_runs_the_bad_ones_are_named() {
    let run = cases(2, Outcome::AsExpected);
    let expected = "contention: as expected (2 of 2 cases as expected)\n";
    assert_eq!(line(&run, &PLAIN), expected);
    let runs = [
        ("calm", Outcome::AsExpected),
        ("storm", Outcome::NotAsExpected),
        ("flood", Outcome::NotAsExpected),
        ("fog", Outcome::Inconclusive),
    ];
    let runs = runs.map(|(name, outcome)| (name.to_owned(), outcome));
    assert_eq!(
        summary(&runs, Path::new("results"), &PLAIN),
        "\n4 scenarios: 1 as expected, 1 inconclusive, 2 not as expected\n  \
         inconclusive: fog\n  not as expected: storm, flood\nresults: results\n"
    );
}
