use super::*;
use crate::report::made_up::{PLAIN, excused, lock_case, missed, run, says, violation};

fn locked(exclusion: Kept, determined: bool) -> CaseResult {
    let mut case = lock_case("fenced", exclusion);
    case.determined = determined;
    case
}

/// A fenced resource stays safe whatever the lock does, so the verdict alone is not enough.
#[test]
fn a_good_lock_and_one_that_excludes_nobody_do_not_compare_the_same() {
    let good = run(vec![locked(Kept::Kept, true)]);
    let mut bad = locked(Kept::Broken, true);
    let kind = ViolationKind::GrantedWhileHeld;
    bad.judgement.violations = vec![violation(kind)];
    bad.judgement.excused = vec![excused(kind, "restart-empty of redis")];
    bad.judgement
        .promises
        .insert(Promise::Tokens, Kept::NotTested);
    let difference = between(&good, &run(vec![bad]));
    assert!(difference.verdict_changed);
    assert_eq!(difference.weight(), Outcome::NotAsExpected);
    let headline =
        "a verdict changed (fenced lock kept -> broken); measurements: 0 of 0 beyond the noise";
    assert_eq!(difference.headline(), headline);
    let text = screen(&difference, &PLAIN);
    says(
        &text,
        &[
            "! fenced  as expected, lock kept  as expected, lock broken",
            "fenced violations granted_while_held: 0 -> 1",
            "fenced excused granted_while_held: 0 -> 1",
            "fenced promise exclusion: kept -> broken",
            "fenced promise tokens: none -> not tested",
        ],
    );
    let page = page(&difference, false);
    let row = "| fenced | as expected, lock kept | **as expected, lock broken** |";
    assert!(page.contains(row), "{page}");
}

#[test]
fn what_an_earlier_program_does_not_say_about_the_lock_is_not_compared() {
    let new = result(&run(vec![locked(Kept::Broken, true)]));
    let mut old = new.clone();
    let case = old["stable"]["cases"]["fenced"].as_object_mut().unwrap();
    for field in ["lock", "promises", "excused"] {
        case.remove(field);
    }
    case["counts"].as_object_mut().unwrap().remove("contended");
    let evidence = old["evidence"]["fenced"].as_object_mut().unwrap();
    for field in ["promises", "excused"] {
        evidence.remove(field);
    }
    let difference = compare(&read_value(&old), &read_value(&new), 1.5).unwrap();
    assert!(!difference.verdict_changed);
    assert_eq!(difference.findings, []);
}

#[test]
fn only_luck_decides_whether_a_storm_has_an_excused_break() {
    use LockOutcome::*;
    let verdict = |old, new, determined| Verdict {
        case: "a".to_owned(),
        old: CaseStatus::Judged(Outcome::AsExpected),
        new: CaseStatus::Judged(Outcome::AsExpected),
        old_lock: old,
        new_lock: new,
        determined,
    };
    for (old, new, determined, weight) in [
        (Kept, Excused, false, Outcome::AsExpected),
        (Excused, Kept, false, Outcome::AsExpected),
        (Kept, Excused, true, Outcome::NotAsExpected),
        (Kept, Broken, false, Outcome::NotAsExpected),
        (Broken, Kept, false, Outcome::NotAsExpected),
        (NotTested, Broken, true, Outcome::NotAsExpected),
        (Kept, NotTested, true, Outcome::Inconclusive),
        (NotTested, Kept, true, Outcome::Inconclusive),
        (Broken, Broken, true, Outcome::AsExpected),
    ] {
        let verdict = verdict(Some(old), Some(new), determined);
        assert_eq!(verdict.weight(), weight, "{old:?} {new:?}");
        let is_changed = weight != Outcome::AsExpected;
        assert_eq!(verdict.is_changed(), is_changed, "{old:?} {new:?}");
    }
    assert!(!verdict(None, Some(Broken), true).is_changed());
}

#[test]
fn of_a_storm_only_a_promise_that_breaks_is_listed() {
    let storm = |tokens: Kept| {
        let mut case = locked(Kept::Kept, false);
        case.judgement.promises.insert(Promise::Tokens, tokens);
        run(vec![case])
    };
    let findings = |new| {
        let difference = between(&storm(Kept::Kept), &storm(new));
        let words = difference.findings.into_iter().map(|change| change.what);
        words.collect::<Vec<String>>()
    };
    assert_eq!(findings(Kept::NotTested), [""; 0]);
    assert_eq!(findings(Kept::Broken), ["promise tokens"]);
}

#[test]
fn nothing_out_of_a_result_is_markup_or_moves_a_cursor() {
    let hostile = "a\u{1b}[2J\u{202e}|<b>\n\n# x [y](http://z) `c`";
    let with = |settings: &str, what: &str| {
        let mut case = locked(Kept::Kept, true);
        case.judgement.last_writers.clear();
        case.verdict.findings.push(Finding {
            held: true,
            outcome: Outcome::AsExpected,
            ..missed(what, hostile, 1)
        });
        let mut run = run(vec![case]);
        run.settings = vec![settings.to_owned()];
        run.environment
            .insert(hostile.to_owned(), settings.to_owned());
        run
    };
    let difference = between(&with("x", "y"), &with(hostile, hostile));
    let wide = Look {
        width: usize::MAX,
        ..PLAIN
    };
    let is_unseen = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    for text in [
        screen(&difference, &wide),
        page(&difference, true),
        folded(&difference),
        difference.headline(),
    ] {
        assert!(!text.contains(is_unseen), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("# x")), "{text}");
    }
    let page = page(&difference, true);
    assert!(
        !page.contains("<b>") && !page.contains("](http://"),
        "{page}"
    );
}
