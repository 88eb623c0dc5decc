use super::*;
use crate::report::made_up::{PLAIN, case, contended, fault, latency, run, says, violation};
use std::time::Duration;

fn on(name: &str, mut case: CaseResult) -> CaseResult {
    case.service = Some(ServiceRun {
        name: name.into(),
        tokens: "a counter".to_owned(),
        ttl_ms: 2_000,
    });
    case
}

fn with(kind: FaultKind, fence: Fence, judgement: Judgement) -> CaseResult {
    let mut case = case("faulty", None);
    let row = fault(FaultStage::Observed, "a");
    case.faults = vec![FaultRow { fault: kind, ..row }];
    case.fence = fence;
    case.judgement = judgement;
    case
}

fn counted(overlaps: u64, refused: u64) -> Judgement {
    let mut judgement = Judgement::default();
    judgement.counts.definite_overlaps = overlaps;
    judgement.counts.stale_rejections = refused;
    judgement
}

fn load() -> CaseResult {
    let mut case = contended("load", &[50, 200], 1.0);
    let load = case.notes.load.as_mut().unwrap();
    load.uncontended = Some(Uncontended {
        lock: latency(1_000, 120.0),
        floor: latency(1_000, 100.0),
        writes: "SET, DEL".to_owned(),
    });
    let kept = BTreeMap::from([(Promise::Tokens, Kept::Kept)]);
    case.judgement.promises = kept;
    case
}

fn compared() -> RunRecord {
    let mut killed = Judgement::default();
    let blocked = Duration::from_millis(1_950);
    killed.measures.insert(Measure::Blocked, blocked);
    let mut corrupted = counted(1, 0);
    corrupted.violations = vec![violation(ViolationKind::StaleAccept); 3];
    let cases = vec![
        on("redis", load()),
        on("redis", with(FaultKind::Kill, Fence::On, killed)),
        on("redis", with(FaultKind::Pause, Fence::Off, corrupted)),
        on("redis", with(FaultKind::Pause, Fence::On, counted(1, 1))),
        on("redis", with(FaultKind::Skew, Fence::On, counted(1, 1))),
        on(
            "advisory",
            with(FaultKind::Pause, Fence::Off, counted(0, 0)),
        ),
        on("advisory", with(FaultKind::Skew, Fence::On, counted(0, 0))),
    ];
    run(cases)
}

#[test]
fn a_service_has_what_its_cases_say_whatever_they_are_called() {
    let services = of(&compared());
    let [redis, advisory] = &services[..] else {
        panic!("{services:?}");
    };
    assert_eq!(redis.uncontended.as_ref().unwrap().ratio, Some(1.2));
    assert_eq!(redis.hot_key[&200].hand_offs_per_s, 181.0);
    let blocked = redis.blocked.as_ref().unwrap();
    assert_eq!((blocked.for_ms, blocked.ttl_ms), (1_950, 2_000));
    assert_eq!(redis.paused_unfenced.as_ref().unwrap().violations, 3);
    assert_eq!(redis.paused_fenced.as_ref().unwrap().refused, 1);
    assert_eq!(redis.clock_breaks_exclusion, Some(true));
    assert_eq!(redis.tokens_only_grew, Some(true));
    assert_eq!(advisory.clock_breaks_exclusion, Some(false));
    assert_eq!((&advisory.uncontended, &advisory.blocked), (&None, &None));
    assert_eq!(advisory.tokens_only_grew, None, "nothing tested it");
}

#[test]
fn an_inconclusive_case_says_nothing_and_one_broken_promise_is_enough() {
    let mut unproven = with(FaultKind::Skew, Fence::On, counted(0, 0));
    unproven.verdict.outcome = Outcome::Inconclusive;
    let mut backwards = case("clock", None);
    backwards.judgement.promises = BTreeMap::from([(Promise::Tokens, Kept::Excused)]);
    let cases = [backwards, load(), unproven].map(|case| on("redis", case));
    let services = of(&run(cases.into()));
    assert_eq!(services[0].clock_breaks_exclusion, None);
    assert_eq!(services[0].tokens_only_grew, Some(false));
}

#[test]
fn the_tables_are_the_same_on_the_screen_and_in_markdown() {
    let run = compared();
    let look = look::Look {
        width: 100,
        ..PLAIN
    };
    let screen = terminal::screen(&run, &look);
    let markdown = markdown(&run);
    let squeezed = |line: &str| {
        let cells = line.split("  ").map(str::trim);
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.join(" | ")
    };
    for row in [
        "redis | 120us | 480us | 100us | 1.20",
        "redis | 1.95s | 2s | 3 violations | none, 1 refused | two holders",
        "advisory | - | - | all others wait | - | one holder",
        "redis | 181 | 25% | 0.988 | 181 | 25% | 0.988",
        "redis | SET, DEL | a counter | yes",
    ] {
        let found = screen.lines().any(|line| squeezed(line) == row);
        assert!(found, "no {row}\nin\n{screen}");
        says(&markdown, &[&format!("| {row} |\n")]);
    }
    says(
        &markdown,
        &["| tokens only grew |\n|---|--:|--:|--:|\n| redis |"],
    );
    let widest = screen.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{screen}");
}

#[test]
fn the_tables_of_each_load_come_with_all() {
    let run = compared();
    let bounds = "what bounds it";
    let screen = terminal::screen(&run, &PLAIN);
    assert!(!screen.contains(bounds), "{screen}");
    let all = terminal::screen(&run, &look::Look { all: true, ..PLAIN });
    says(&all, &[bounds, "two holders"]);
    let alone = crate::report::made_up::run(vec![load()]);
    assert_eq!(text(&alone, 100), "", "nothing to compare it with");
    says(terminal::screen(&alone, &PLAIN), &[bounds]);
}

#[test]
fn a_summary_has_the_comparison() {
    let mut summary = summary::Summary::default();
    summary.add(&compared());
    let page = summary.page(&[], "", &[]);
    says(
        &page,
        &[
            "### contention: services\n\n| uncontended |",
            "| two holders |",
        ],
    );
}
