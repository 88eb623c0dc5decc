use super::*;

#[test]
fn a_pause_that_cannot_exceed_the_ttl_is_refused() {
    let resume = "  - { when: b.write_accepted, do: { resume: a } }\n";
    let short = GOOD
        .replace(resume, "")
        .replace("longer_than: ttl", "for: 1s, longer_than: ttl");
    let expected = "good.yml:9:45: a pause of 1s cannot exceed the TTL of 2s";
    assert_eq!(said_about("good.yml", &short), [expected]);
    for (to, expected) in rows! {
        "when: a.at_gate, after: 2s," => "a pause of 2s cannot exceed the TTL of 2s";
        "when: a.paused, after: 500ms," => "a pause of 500ms cannot exceed the TTL of 2s";
    } {
        refused("when: b.write_accepted,", to, expected);
    }
    let later = GOOD.replace("when: b.write_accepted,", "when: a.paused, after: 3s,");
    parse(&later).unwrap();
    let both = "for: 3s, longer_than: ttl";
    refused("longer_than: ttl", both, "keep one of them");
}

#[test]
fn whatever_stands_still_goes_on_once() {
    for (timeline, at, expected) in rows! {
        "  - { after: 1s, do: { freeze: a } }", "a } }" => "nothing thaws `a`; add `for: DURATION` or an entry with `thaw: a`";
        "  - { after: 1s, do: { pause: redis } }", "redis" => "nothing resumes `redis`";
        "  - { after: 1s, do: [{ freeze: a, for: 3s }, { thaw: a }] }", "3s"
            => "`a` is thawed by `for` and by a `thaw`; keep one of them";
        "  - { name: x, after: 1s, do: { pause: a, for: 3s } }\n  - { when: x.began, do: { heal: x } }", "3s"
            => "`a` is resumed by `for` and by `heal: x`; keep one of them";
        "  - { after: 1s, do: { thaw: a } }", "a } }" => "nothing freezes `a`";
        "  - { after: 1s, do: { resume: z } }", "z" => "unknown worker or service `z`";
        "  - { after: 1s, do: { freeze: a } }\n  - { when: a.released, do: { thaw: a } }", "a.released"
            => "stands still until this thaws it";
    } {
        refuses("redis", timeline, at, expected);
    }
    for timeline in [
        "  - { name: x, after: 1s, do: [{ pause: a, for: 3s }, { drop: b }] }\n  - { when: x.began, do: { heal: x } }",
        "  - { after: 1s, do: { freeze: redis } }\n  - { when: redis.frozen, after: 1s, do: { thaw: redis } }",
        "  - { when: a.acquired, do: [{ pause: a }, { wait: 3s }, { resume: a }] }",
    ] {
        taken("redis", timeline);
    }
}

#[test]
fn a_length_that_is_drawn_is_long_enough_whatever_is_drawn() {
    for (timeline, at, expected) in rows! {
        "  - { after: 1s, do: { pause: a, for: 2s..5s, longer_than: ttl } }", "2s..5s"
            => "a pause of 2s cannot exceed the TTL of 2s";
        "  - { after: 1s, do: [{ freeze: a, longer_than: ttl }, { wait: 1s..9s }, { thaw: a }] }", "{ thaw"
            => "a freeze of 1s cannot exceed the TTL of 2s";
    } {
        refuses("redis", timeline, at, expected);
    }
    for timeline in [
        "  - { after: 1s, do: { pause: a, for: 2001ms..5s, longer_than: ttl } }",
        "  - { after: 1s, do: [{ pause: a, longer_than: ttl }, { wait: 3s }, { resume: a }] }",
    ] {
        taken("redis", timeline);
    }
}

#[test]
fn a_step_that_cannot_be_read_may_be_the_missing_one() {
    let lines = said_of(GOOD, "{ resume: a }", "{ resum: a }");
    assert_eq!(lines.len(), 1, "{lines:#?}");
    let lines = said("redis", "  - { after: 1s, do: { pause: a, for: 3 } }");
    assert_eq!(lines.len(), 1, "{lines:#?}");
}
