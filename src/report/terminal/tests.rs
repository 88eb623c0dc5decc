use super::*;
use crate::report::made_up::{
    PLAIN, case, excused, fault, lock_case, missed, run, says, violation,
};

fn told(name: &str, outcome: Outcome, stories: usize) -> CaseResult {
    let mut case = case(name, None);
    case.verdict.outcome = outcome;
    case.verdict.findings = vec![Finding {
        held: outcome == Outcome::AsExpected,
        outcome,
        ..missed("accepted_writers", "1", 2)
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
        title: "a stale write was accepted".to_owned(),
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
    let titles = all.matches("  a stale write was accepted\n");
    assert_eq!(titles.count(), 12, "{all}");
}

#[test]
fn the_worst_case_is_told_before_those_that_are_as_expected() {
    let text = screen(&cases(4, Outcome::NotAsExpected), &PLAIN);
    assert!(text.contains("step 8 of case-3"), "{text}");
    says(&text, &["accepted writers 2 where 1 was expected"]);
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
    let color = true;
    let painted = screen(&run, &Look { color, ..PLAIN });
    says(&painted, &["\u{1b}[33minconclusive\u{1b}[0m"]);
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

#[test]
fn a_good_case_says_in_half_a_line_what_became_of_its_lock() {
    let mut good = lock_case("fenced", Kept::Kept);
    let unchecked = Kept::NotChecked("nobody renewed".to_owned());
    good.judgement.promises.insert(Promise::Renewal, unchecked);
    let said = "fenced (fence on): as expected, the lock kept its promises\n\n";
    let mut run = run(vec![good]);
    let text = screen(&run, &PLAIN);
    assert!(text.starts_with(said), "{text}");
    let all = screen(&run, &Look { all: true, ..PLAIN });
    says(&all, &["  renewal: not checked, nobody renewed\n"]);
    let narrow = screen(&run, &Look { width: 40, ..PLAIN });
    let said = "fenced (fence on): as expected\n  the lock kept its promises\n";
    assert!(narrow.starts_with(said), "{narrow}");
    run.cases[0].judgement.lock_servers_seen = false;
    let said = "as expected, the lock kept its promises (lock server not seen)\n";
    let wide = Look { width: 90, ..PLAIN };
    assert!(screen(&run, &wide).contains(said));
}

#[test]
fn a_bad_lock_is_told_of_whatever_was_expected() {
    let mut broken = lock_case("fenced", Kept::Broken);
    let kind = ViolationKind::GrantedWhileHeld;
    broken.judgement.violations = vec![violation(kind)];
    let mut explained = lock_case("emptied", Kept::Excused);
    explained.judgement.excused = vec![excused(kind, "restart-empty of redis")];
    let run = run(vec![broken, explained, lock_case("alone", Kept::NotTested)]);
    let text = screen(&run, &PLAIN);
    for said in [
        "fenced (fence on): as expected, the lock broke its promises\n",
        "  broken: exclusion (granted_while_held 1)\n",
        "  the lock broke its promises, and a proven fault explains it\n",
        "  granted_while_held 1, excused by restart-empty of redis\n",
        "alone (fence on): as expected, the lock was not put to the test\n",
        "  nobody asked for a key that was held: a lock that excludes nobody would come\n    out the same\n",
        "(3 of 3 cases as expected), the lock broke its promises\n  in fenced\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
}

#[test]
fn what_a_lock_does_not_offer_is_told_calmly() {
    let mut case = lock_case("fenced", Kept::Kept);
    case.verdict.outcome = Outcome::Inconclusive;
    let doubt = Doubt::new(DoubtReason::NotOffered, "lost_leases: workers say so");
    case.verdict.doubts = vec![doubt];
    case.judgement
        .promises
        .insert(Promise::Order, Kept::NotOffered);
    let run = run(vec![case]);
    let text = screen(&run, &PLAIN);
    says(
        &text,
        &[
            "fenced (fence on): inconclusive (not offered), the lock kept its promises\n",
            "  not offered: order\n",
            "  not offered: lost_leases: workers say so\n",
        ],
    );
    let color = true;
    let painted = screen(&run, &Look { color, ..PLAIN });
    says(&painted, &["\u{1b}[36minconclusive (not offered)\u{1b}[0m"]);
}

#[test]
fn nothing_out_of_a_record_moves_a_cursor_or_makes_a_line() {
    let hostile = "x\u{1b}[2J\u{9b}31m\u{202e}\r\nforged: as expected";
    let owned = || hostile.to_owned();
    let mut bad = told("bad", Outcome::NotAsExpected, 1);
    bad.verdict.findings[0].what = owned();
    bad.verdict.findings[0].found = Found::Timed(owned());
    bad.verdict.doubts = vec![Doubt::new(
        DoubtReason::Gap,
        format!("{hostile}\n{hostile}"),
    )];
    bad.faults = vec![fault(FaultStage::Healed, hostile)];
    bad.notes.workers = vec![owned()];
    bad.notes.values.insert(owned(), RowValue::Text(owned()));
    let unchecked = Kept::NotChecked(owned());
    bad.judgement.promises.insert(Promise::Exclusion, unchecked);
    bad.judgement.excused = vec![excused(ViolationKind::FreedAnother, hostile)];
    let story = &mut bad.judgement.stories[0];
    (story.key, story.title) = (owned(), owned());
    story.steps[0].concrete = owned();
    let quoted = case_text(&bad);
    let mut run = run(vec![bad]);
    run.settings = vec![owned()];
    run.mutant = Some(owned());
    run.folder = hostile.into();
    let all = Look {
        all: true,
        width: usize::MAX,
        ..PLAIN
    };
    let listed = [(owned(), Outcome::NotAsExpected)];
    for text in [
        screen(&run, &all),
        screen(&run, &PLAIN),
        quoted,
        summary(&listed, Path::new(hostile), &all),
    ] {
        let is_unseen = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!text.contains(is_unseen), "{text:?}");
        // Only a doubt keeps its line breaks, because it may quote what a container printed.
        // Its further lines are indented.
        let mut forged = text
            .lines()
            .filter(|line| line.trim_start().starts_with("forged"));
        assert!(forged.all(|line| line.starts_with("    ")), "{text}");
        assert!(text.contains("x\\x1b[2J\\u{9b}31m\\u{202e}\\r"), "{text}");
    }
}
