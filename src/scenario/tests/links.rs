use super::*;
use crate::model::{FaultKind, LinkEffect, LinkPattern, LinkScope, Streams, ToxicEffect};

fn toxic(toxic: ToxicEffect, streams: Streams) -> LinkEffect {
    LinkEffect::Toxic {
        toxic,
        streams,
        toxicity: 1.0,
    }
}

#[test]
fn each_name_says_what_becomes_of_the_bytes() {
    let lost = ToxicEffect::Timeout { timeout_ms: 0 };
    let held_back = ToxicEffect::Bandwidth { rate_kb_per_s: 0 };
    let reset = ToxicEffect::ResetPeer { timeout_ms: 0 };
    let slow = ToxicEffect::Bandwidth { rate_kb_per_s: 20 };
    let late = ToxicEffect::Latency {
        latency_ms: 300,
        jitter_ms: 50,
    };
    for (step, kind, effect) in rows! {
        "refuse: a -> redis-1", FaultKind::Refuse => LinkEffect::Refuse;
        "blackhole: a -> redis-1", FaultKind::Blackhole => toxic(lost, Streams::Both);
        "reset: a -> redis-1", FaultKind::Reset => toxic(reset, Streams::Both);
        "one-way: a -> redis-1", FaultKind::OneWay => toxic(lost, Streams::Data);
        "stall: a -> redis-1", FaultKind::Stall => toxic(held_back, Streams::Data);
        "bandwidth: a -> redis-1, rate: 20KB/s", FaultKind::Bandwidth => toxic(slow, Streams::Data);
        "latency: a -> redis-1, delay: 300ms, jitter: 50ms", FaultKind::Latency => toxic(late, Streams::Data);
    } {
        let pattern = LinkPattern::parse("a -> redis-1").unwrap();
        let scope = LinkScope::Matching(vec![pattern]);
        let expected = LinkFault {
            kind,
            scope,
            effect,
        };
        assert_eq!(link_fault("redlock", step), expected, "{step}");
    }
}

#[test]
fn a_cut_is_made_in_the_way_that_it_asks_for() {
    let around = LinkScope::Around("redis-1".into());
    for (by, effect) in rows! {
        "" => toxic(ToxicEffect::Timeout { timeout_ms: 0 }, Streams::Both);
        ", by: blackhole" => toxic(ToxicEffect::Timeout { timeout_ms: 0 }, Streams::Both);
        ", by: refuse" => LinkEffect::Refuse;
        ", by: stall" => toxic(ToxicEffect::Bandwidth { rate_kb_per_s: 0 }, Streams::Both);
    } {
        let isolated = link_fault("redlock", &format!("isolate: redis-1{by}"));
        assert_eq!(isolated.scope, around);
        assert_eq!(isolated.effect, effect, "{by}");
        let step = format!("partition: [[a, redis-1], [b, redis-2]]{by}");
        let split = link_fault("redlock", &step);
        assert_eq!(split.scope.to_string(), "a, redis-1 | b, redis-2");
        assert_eq!(split.effect, effect, "{by}");
    }
    let typo = "isolate: redis-1, by: refues";
    refuses_step("redlock", typo, "refues", "did you mean `refuse`?");
}

#[test]
fn links_that_do_not_exist_are_refused() {
    for (step, at, expected) in rows! {
        "refuse: redis-1 -> redis-2", "redis-1" => "there is no link `redis-1 -> redis-2`; `redis-1` connects to nobody";
        "refuse: a -> b", "a ->" => "there is no link `a -> b`; `a` connects to redis-1, redis-2, redis-3, resource";
        "refuse: any -> bystander", "any" => "to `bystander` connect nobody";
        "refuse: redis-1 -> a", "redis-1" => "there is no link";
        "refuse: a -> redis", "a ->" => "unknown worker or service `redis`";
        "refuse: a to redis-1", "a to" => "is not a link";
        "refuse: []", "[]" => "name at least one link";
        "refuse: [a -> redis-1, a -> redis-1]", "a -> redis-1]" => "stands here twice";
        "isolate: bystander", "bystander" => "there is nothing to cut";
        "partition: [[a], [b]]", "a]" => "there is nothing to cut";
        "partition: [[a, redis-1]]", "[[" => "at least two groups";
        "partition: [[a], []]", "[]" => "a group has at least one node";
        "partition: [[a], [redis-1, a]]", "a]] }" => "`a` stands here twice";
        "partition: [[a, a], [redis-1]]", "a], [" => "a node is on one side";
        "partition: [[a], [redis-7]]", "redis-7" => "did you mean `redis-1`?";
        "partition: a", "a }" => "expected a list of groups";
    } {
        refuses_step("redlock", step, at, expected);
    }
}

#[test]
fn bytes_travel_both_ways_on_one_link_and_connections_only_one() {
    // Workers connect to servers, and the answers of a server travel back.
    for (topology, step) in rows! {
        "redlock" => "one-way: redis-1 -> a";
        "redlock" => "stall: any -> a, for: 1s";
        "redlock" => "blackhole: [a -> any, any -> redis-1]";
        "redlock" => "refuse: any -> any";
        "etcd" => "blackhole: etcd-2 -> etcd-1";
    } {
        taken(topology, &alone(step));
    }
    let back = "blackhole: redis-1 -> a";
    refuses_step("redlock", back, "redis-1", "there is no link");
}

#[test]
fn amounts_that_cannot_be_seen_are_refused() {
    for (step, at, expected) in rows! {
        "latency: a -> redis-1", "{ latency" => "`latency` needs `delay`";
        "latency: a -> redis-1, delay: 0ms", "0ms" => "longer than 0ms";
        "latency: a -> redis-1, delay: 10ms, jitter: 10ms", "10ms }" => "shorter than the delay";
        "bandwidth: a -> redis-1", "{ bandwidth" => "`bandwidth` needs `rate`";
        "bandwidth: a -> redis-1, rate: 20", "20" => "`20` is not a rate; write such as 20KB/s";
        "bandwidth: a -> redis-1, rate: -1KB/s", "-1KB/s" => "is not a rate";
        "bandwidth: a -> redis-1, rate: 0KB/s", "0KB/s" => "use `stall`";
        "bandwidth: a -> redis-1, rate: 2001KB/s", "2001KB/s" => "could not be seen to bite";
    } {
        refuses_step("redlock", step, at, expected);
    }
    let lines = said("redlock", &alone("latency: a -> redis-8, delay: 0ms"));
    assert_eq!(lines.len(), 2, "both are said: {lines:#?}");
}
