use super::*;
use crate::model::{Count, Measure};
use crate::scenario::draft::expectations;
use crate::scenario::fields::Field;

const EXPECT: &str = "{ violations: 1.. }";

#[test]
fn everything_that_can_be_expected_is_read_as_it_is_written() {
    let counts = Count::ALL.iter().map(|it| format!("{}: 1..3", it.name()));
    let measures = Measure::ALL
        .iter()
        .map(|it| format!("{}: 1s..4s", it.name()));
    let rest: Vec<String> = counts.chain(measures).collect();
    let order = "a.paused, b.acquired, resource.write_accepted, a.resumed";
    let rest = rest.join(", ");
    let all = format!("{{ violations: 0, {rest}, order: [{order}] }}");
    let scenario = parse(&GOOD.replace(EXPECT, &all)).unwrap();
    let expect = &scenario.cases[0].expect;
    for count in Count::ALL {
        assert_eq!(expect.counts[count].to_string(), "1..3");
    }
    for measure in Measure::ALL {
        assert_eq!(expect.measures[measure].to_string(), "1s..4s");
    }
    assert_eq!(expect.order_in_words(), order);
    let text = plan(&scenario, |_| Vec::new()).to_string();
    let words = "expects violations 0, accepted writers 1..3, accepted writes 1..3, \
        stale rejections 1..3, rightful rejections 1..3, overlaps 1..3, foreign releases 1..3, \
        lost leases 1..3, failed acquires 1..3, contended 1..3, blocked 1s..4s, quiet 1s..4s, \
        noticed 1s..4s, recovered 1s..4s, \
        in this order: a.paused, b.acquired, resource.write_accepted, a.resumed\n";
    assert!(text.contains(words), "{text}");
}

#[test]
fn durations_that_no_run_keeps_or_every_run_does_are_refused() {
    for (range, expected) in rows! {
        "2s" => "`2s` is not a range of durations; write 8s.., ..5s or 1s..4s";
        "..5" => "`..5` is not a range of durations";
        "4s..1s" => "`4s..1s` is not a range of durations";
        "0s.." => "`0s..` always holds, so it proves nothing";
        "[1s..]" => "expected a range of durations, found a list";
    } {
        refused(EXPECT, &format!("{{ blocked: {range} }}"), expected);
    }
    refused(EXPECT, "{ blokked: 1s.. }", "did you mean `blocked`?");
}

#[test]
fn an_order_is_of_events_that_the_record_can_show() {
    for (order, expected) in rows! {
        "[a.paused]" => "an order is two events or more";
        "a.paused" => "expected a list of events";
        "[a.paused, nonsense]" => "`nonsense` is not an event";
        "[a.paused, c.acquired]" => "good.yml:12:55: unknown worker, service or entry `c`";
        "[a.paused, b.aquired]" => "did you mean `acquired`?";
        "[a.paused, redis.killed]" => "`redis.killed` never comes: no step of the timeline";
        "[a.paused, a.acquired#2]" => "it comes at most 1 time(s)";
        "[scenario.started, a.paused]"
            => "`scenario.started` is not in the record, so no order can be judged by it; name events of workers, of nodes or of the resource";
    } {
        refused(EXPECT, &format!("{{ order: {order} }}"), expected);
    }
    let named = GOOD.replace("- { when: a.at_gate,", "- { name: cut, when: a.at_gate,");
    let named = named.replace(EXPECT, "{ order: [cut.began, a.resumed] }");
    let lines = parse(&named).unwrap_err().lines();
    one_says(&lines, "`cut.began` is not in the record");
}

/// A row only begins with these words: the README explains a measure at length, and an order below
/// the tables.
#[test]
fn the_readme_has_a_row_for_everything_that_can_be_expected() {
    let readme = include_str!("../../../scenarios/README.md");
    let is_listed = |field: &Field| field.name != Expectations::ORDER;
    for Field { name, about, .. } in expectations().into_iter().filter(is_listed) {
        let row = format!("\n| `{name}` | {about}");
        assert!(readme.contains(&row), "scenarios/README.md needs {row}");
    }
}
