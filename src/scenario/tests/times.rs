use super::*;

#[test]
fn whatever_takes_time_fits_into_the_deadline() {
    for (timeline, at, expected) in rows! {
        "  - { after: 1s..60s, do: { drop: a } }", "1s..60s" => "1m does not fit";
        "  - { after: 1s, do: { drop: a, for: 2m } }", "2m" => "2m does not fit";
        "  - { after: 1s, do: { wait: 1s..2m } }", "1s..2m" => "2m does not fit";
        "  - { after: 1s, repeat: 30, do: [{ drop: a, for: 1s }, { wait: 500ms..1s }] }", "30"
            => "may take 61s, and the deadline is 1m";
        "  - { after: 1s, do: [{ drop: a, for: 30s }, { wait: 30s }] }", "{ after" => "may take 61s";
        "  - { after: 1s, do: { pause: a, longer_than: 70s } }\n  - { when: b.done, do: { resume: a } }", "70s"
            => "70s does not fit";
    } {
        refuses("redis", timeline, at, expected);
    }
}

#[test]
fn what_happens_together_takes_as_long_as_the_longest() {
    let both = "together: [{ drop: a, for: 40s }, { drop: b, for: 50s }]";
    taken("redis", &alone(both));
    let sum = "  - { after: 1s, do: [{ together: [{ drop: a, for: 40s }, { drop: b, for: 50s }] }, { wait: 9s }] }";
    refuses("redis", sum, "{ after", "may take 1m");
}
