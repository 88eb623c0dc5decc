use super::*;
use crate::model::{LinkEffect, Streams, ToxicEffect};

fn effect(attributes: &str) -> LinkEffect {
    link_fault("redis", &format!("toxic: a -> redis, {attributes}")).effect
}

#[test]
fn toxics_have_the_names_and_units_of_toxiproxy() {
    for (attributes, toxic) in rows! {
        "type: latency, latency: 100, jitter: 20" => ToxicEffect::Latency { latency_ms: 100, jitter_ms: 20, };
        "type: bandwidth, rate: 0" => ToxicEffect::Bandwidth { rate_kb_per_s: 0 };
        "type: timeout, timeout: 500" => ToxicEffect::Timeout { timeout_ms: 500 };
        "type: timeout" => ToxicEffect::Timeout { timeout_ms: 0 };
        "type: reset_peer" => ToxicEffect::ResetPeer { timeout_ms: 0 };
        "type: slicer, average_size: 64, size_variation: 8, delay: 1000"
            => ToxicEffect::Slicer { average_size: 64, size_variation: 8, delay_us: 1000, };
        "type: limit_data, bytes: 1024" => ToxicEffect::LimitData { bytes: 1024 };
    } {
        let (streams, toxicity) = (Streams::Data, 1.0);
        let expected = LinkEffect::Toxic {
            toxic,
            streams,
            toxicity,
        };
        assert_eq!(effect(attributes), expected, "{attributes}");
    }
    let some = effect("type: timeout, stream: both, toxicity: 0.5");
    let expected = LinkEffect::Toxic {
        toxic: ToxicEffect::Timeout { timeout_ms: 0 },
        streams: Streams::Both,
        toxicity: 0.5,
    };
    assert_eq!(some, expected);
}

#[test]
fn toxics_that_cannot_be_seen_are_refused() {
    for (attributes, at, expected) in rows! {
        "type: slow_close", "slow_close" => "nothing of `slow_close` can be seen to bite";
        "type: noop", "noop" => "nothing of `noop` can be seen to bite";
        "type: latncy", "latncy" => "unknown type of toxic `latncy`; did you mean `latency`?";
        "type: latency, latency: 0", "0 }" => "nothing could be seen";
        "type: latency", "{ toxic" => "`toxic` needs `latency`";
        "type: latency, latency: 9, jitter: 9", "9 }" => "shorter than the latency";
        "type: latency, latency: -5", "-5" => "`latency` cannot be negative";
        "type: latency, latency: 5ms", "5ms" => "`5ms` is not a whole number";
        "type: timeout, bytes: 5", "5 }" => "a toxic of type `timeout` has no `bytes`; it has timeout";
        "type: bandwidth, rate: 9999", "9999" => "`rate` is 0 to 2000";
        "type: slicer, average_size: 0, delay: 9", "0, delay" => "would never end";
        "type: slicer, average_size: 9, delay: 0", "0 }" => "without a delay";
        "type: slicer, average_size: 9", "{ toxic" => "`toxic` needs `delay`";
        "type: slicer, average_size: 9, delay: 9, size_variation: 9", "9 }" => "less than their average";
        "type: timeout, toxicity: 0", "0 }" => "above 0 and at most 1";
        "type: timeout, toxicity: 1.5", "1.5" => "above 0 and at most 1";
        "type: timeout, toxicity: NaN", "NaN" => "above 0 and at most 1";
        "type: timeout, stream: upstream", "upstream" => "unknown stream `upstream`; known: both, data";
        "toxicity: 1", "{ toxic" => "`toxic` needs `type`";
        "type: timeout, percent: 5", "percent" => "`toxic` has no `percent`; that belongs to loss";
    } {
        let step = format!("toxic: a -> redis, {attributes}");
        refuses_step("redis", &step, at, expected);
    }
}
