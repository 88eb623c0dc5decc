use super::*;
use crate::scenario::timeline::{Timeline, What};

#[test]
fn the_timeline_fires_each_entry_once_when_its_event_comes() {
    let text = GOOD
        .replace("key: k, gate", "key: k, rounds: 3, gate")
        .replace("a.at_gate", "a.at_gate#2");
    let mut timeline = Timeline::new(&the_setup(parse(&text).unwrap()), 1);
    assert!(timeline.event("a", "at_gate").is_empty());
    let due = timeline.event("a", "at_gate");
    assert!(matches!(&due[0].what, What::Act { .. }));
    assert!(timeline.event("a", "at_gate").is_empty());
    let due = timeline.event("a", "paused");
    assert_eq!(due[0].what, What::Start { worker: "b".into() });
    let awaited: Vec<String> = timeline.awaited().iter().map(|t| t.to_string()).collect();
    assert_eq!(awaited, ["b.write_accepted"]);
}

#[test]
fn one_seed_is_one_timeline() {
    let text =
        "  - { after: 1ms..30s, repeat: 3, do: { drop: { one_of: [a, b, redis] }, for: 1ms..5s } }";
    let scenario = taken("redis", text);
    let drawn = |seed| Timeline::new(&scenario, seed).event("scenario", "started");
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    let What::Act { rounds, .. } = &drawn(1)[0].what else {
        panic!("an act")
    };
    assert_eq!(rounds.len(), 3);
}
