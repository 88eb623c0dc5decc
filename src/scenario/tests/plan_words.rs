use super::*;

#[test]
fn the_plan_says_what_a_run_would_do() {
    let text = plan(&parse(GOOD).unwrap(), |_| vec!["redis".to_owned()]).to_string();
    let parts = [
        "SIGSTOP a",
        "SIGCONT a",
        "when a.paused: b acquires",
        "fence off; expects violations 1..",
    ];
    has_all(&text, &parts);
}

#[test]
fn the_plan_says_what_each_fault_does_and_what_proves_it() {
    let timeline = "  - name: cut
    after: 500ms..2s
    repeat: 3
    do:
      - { isolate: { one_of: [redis-1, redis-2] }, for: 1s..3s }
      - together:
          - { partition: [[a], [redis-3]], for: 2s, by: refuse }
          - { kill: redis-1, for: 2s }
  - { when: a.acquired, do: { skew: redis-1, by: -15s } }
  - { when: cut.ended, do: { latency: a -> any, delay: 300ms, jitter: 50ms } }
  - { when: cut.ended, do: { heal: cut } }";
    let scenario = parse_as("redlock.yml", &with_timeline("redlock", timeline)).unwrap();
    let text = plan(&scenario, |_| vec!["redis-1".to_owned()]).to_string();
    let parts = [
        "from the start, 500ms..2s later, 3 times over (`cut`):\n",
        "- cut one of redis-1, redis-2 off from everybody: bytes of both directions are acknowledged, and none arrives; proven when a probe through the link gets no answer, and one beside it does; undone after 1s..3s\n",
        "- at the same time:\n       - split the network (a | redis-3): connections are refused",
        "SIGKILL redis-1; proven when its end is seen; started again after 2s",
        "when a.acquired: set the realtime clock of redis-1 back by 15s; proven when its clock is read from inside, and the host's has not moved; it stands until something undoes it",
        "latency a -> any: bytes of this direction arrive 300ms late, give or take 50ms",
        "undo everything of `cut` that still stands",
        "The seed draws what has bounds or choices",
    ];
    has_all(&text, &parts);
    let fixed = plan(&parse(GOOD).unwrap(), |_| Vec::new()).to_string();
    assert!(!fixed.contains("The seed draws"), "{fixed}");
}
