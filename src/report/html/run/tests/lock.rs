use super::*;

#[test]
fn the_verdict_and_what_became_of_the_lock_are_told_apart() {
    let (mut run, all) = with_evidence();
    let at_ns = evidence_at_ns(&all);
    let case = &mut run.cases[0];
    case.notes.workers = vec!["a".to_owned(), "b".to_owned()];
    let kind = ViolationKind::GrantedWhileHeld;
    let broken = Violation {
        at_ns,
        ..made_up::violation(kind)
    };
    let excused = Violation {
        at_ns: at_ns + 1,
        ..made_up::excused(kind, "restart-empty of redis")
    };
    let judgement = &mut case.judgement;
    judgement.violations.push(broken);
    judgement.excused.push(excused);
    judgement.promises = BTreeMap::from([
        (Promise::Exclusion, Kept::Broken),
        (Promise::Loss, Kept::NotChecked("no TTL".to_owned())),
        (Promise::Order, Kept::NotOffered),
    ]);
    let text = shown(&run, all);
    made_up::says(
        &text,
        &[
            "(2 violations), and the lock broke its promises.",
            "data-lock=\"broken\"><span class=\"broken\">the lock broke its promises (lock server not seen)</span>",
            "<br>broken: exclusion (granted_while_held 1)",
            "<br>granted_while_held 1, excused by restart-empty of redis",
            "<br>loss: not checked, no TTL",
            "<span class=\"calm\">not offered</span>",
            "<h3>Excused breaks (1)</h3>",
            "<h3>a stale write was accepted</h3><p class=\"faint\">stale_accept</p>",
            "What the violations mean",
        ],
    );
    let marks = text.matches("class=\"mark a-break\"").count();
    assert_eq!(marks, 2, "one in the lane of b, and the excused one");
    assert_eq!(text.matches("class=\"mark a-pair\"").count(), 1);
    for kind in ViolationKind::ALL {
        let row = format!(
            "<td class=\"name\">{kind}</td><td class=\"name\">{}</td>",
            kind.breaks()
        );
        assert!(text.contains(&row), "{kind}");
    }
}

#[test]
fn however_many_promises_are_broken_the_page_is_bounded() {
    let (mut run, all) = with_evidence();
    let broken = Violation {
        at_ns: evidence_at_ns(&all),
        ..made_up::violation(ViolationKind::GrantedWhileHeld)
    };
    run.cases[0].judgement.violations = vec![broken; 50_000];
    let text = shown(&run, all);
    assert!(text.len() < 200_000, "{} bytes", text.len());
    let labels = text.matches("class=\"pair-words\"").count();
    assert_eq!(labels, 1, "those above each other have one label");
}

#[test]
fn a_story_about_no_write_and_without_marks_is_told() {
    let (mut run, mut all) = with_evidence();
    let story = &mut run.cases[0].judgement.stories[0];
    story.row = 0;
    story.kinds = Vec::new();
    for step in &mut story.steps {
        (step.kind, step.at_ns) = (StepKind::Other, 1);
    }
    let told = shown(&run, with_evidence().1);
    assert!(told.contains("a's write is accepted</li>"), "{told}");
    // The same holds if the case is too long to be drawn whole.
    let evidence = all.get_mut("unfenced").unwrap();
    let many = vec![evidence.record.history[0].clone(); 2_000];
    evidence.record.history.extend(many);
    assert!(shown(&run, all).contains("a stale write was accepted"));
}

#[test]
fn what_a_lock_does_not_offer_is_not_as_red_as_corruption() {
    let (mut run, all) = with_evidence();
    let verdict = &mut run.cases[0].verdict;
    verdict.outcome = Outcome::Inconclusive;
    verdict.doubts = vec![Doubt::new(DoubtReason::NotOffered, "no lost signal")];
    let text = shown(&run, all);
    made_up::says(
        &text,
        &[
            "<h2>unfenced <span class=\"calm\">not offered</span>",
            "data-verdict=\"inconclusive\"",
            "<div class=\"warning quiet\"",
            "not offered: no lost signal",
        ],
    );
}
