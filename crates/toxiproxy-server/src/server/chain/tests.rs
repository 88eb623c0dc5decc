//! Tests every toxic as a state machine: data and the time in, data out.

use super::*;
use crate::server::tests::{bandwidth, latency, slicer};
use bytes::Bytes;
use std::time::Duration;

const LATE: ToxicKind = latency(100, 0);
const STALL: ToxicKind = bandwidth(0);
const BLACKHOLE: ToxicKind = ToxicKind::Timeout { timeout_ms: 0 };

/// A chain with a clock that moves only on demand.
struct Kit {
    chain: Chain,
    start: Instant,
    now: Instant,
    arrived: String,
    ended: bool,
}

impl Kit {
    fn new(kinds: &[ToxicKind]) -> Kit {
        let start = Instant::now();
        let mut kit = Kit {
            chain: Chain::new(),
            start,
            now: start,
            arrived: String::new(),
            ended: false,
        };
        let numbered: Vec<(u64, ToxicKind)> = (1..).zip(kinds.iter().copied()).collect();
        kit.follow(&numbered);
        kit
    }

    fn follow(&mut self, kinds: &[(u64, ToxicKind)]) {
        let doses = kinds.iter().map(|&(id, kind)| Dose {
            id,
            kind,
            rng: Rng::with_seed(id),
        });
        self.chain.follow(doses.collect(), self.now);
    }

    fn say(&mut self, text: &str) {
        self.chain.push(Item::Data(Chunk {
            bytes: Bytes::copy_from_slice(text.as_bytes()),
            since: self.now,
        }));
    }

    fn end(&mut self) {
        self.chain.push(Item::End);
    }

    /// Moves the clock to `ms` milliseconds after the start.
    fn at(&mut self, ms: u64) -> &mut Kit {
        self.now = self.start + Duration::from_millis(ms);
        self
    }

    /// Lets everything leave that may, and returns when the chain wants to be called
    /// again.
    fn turn(&mut self) -> Option<u64> {
        loop {
            let Turn::Wait(wake) = self.chain.advance(self.now) else {
                panic!("the chain wants a reset");
            };
            match self.chain.out().pop() {
                Some(Item::Data(chunk)) => {
                    self.arrived += std::str::from_utf8(&chunk.bytes).expect("text");
                }
                Some(Item::End) => self.ended = true,
                None => return wake.map(|wake| (wake - self.start).as_millis() as u64),
            }
        }
    }

    #[track_caller]
    fn has(&mut self, arrived: &str, ended: bool) -> Option<u64> {
        let wake = self.turn();
        assert_eq!((self.arrived.as_str(), self.ended), (arrived, ended));
        wake
    }
}

#[test]
fn latency_is_counted_from_the_arrival_and_the_end_waits_for_data_alone() {
    let mut kit = Kit::new(&[LATE]);
    kit.say("a");
    assert_eq!(kit.has("", false), Some(100));
    kit.at(60).say("b");
    assert_eq!(kit.at(99).has("", false), Some(100));
    assert_eq!(kit.at(100).has("a", false), Some(160));
    kit.end();
    assert_eq!(kit.has("a", false), Some(160));
    assert_eq!(kit.at(160).has("ab", true), None);
    let mut quiet = Kit::new(&[LATE]);
    quiet.end();
    quiet.has("", true);
}

#[test]
fn two_latencies_add_up() {
    let mut kit = Kit::new(&[LATE, latency(50, 0)]);
    kit.say("a");
    assert_eq!(kit.has("", false), Some(100));
    // Even if called late, it counts from when the first toxic should have passed the
    // data.
    assert_eq!(kit.at(120).has("", false), Some(150));
    kit.at(150).has("a", false);
}

#[test]
fn jitter_spreads_around_the_latency_and_keeps_the_order() {
    let mut kit = Kit::new(&[latency(100, 50)]);
    let letters: Vec<String> = ('a'..='z').cycle().take(200).map(String::from).collect();
    let mut delays = Vec::new();
    for at in 0..400 {
        if let Some(letter) = letters.get(at) {
            kit.at(at as u64).say(letter);
        }
        kit.at(at as u64).turn();
        let arrived = delays.len()..kit.arrived.len();
        delays.extend(arrived.map(|said_at| at - said_at));
    }
    assert_eq!(kit.arrived, letters.concat());
    assert!(
        delays.iter().all(|ms| (50..=151).contains(ms)),
        "{delays:?}"
    );
    let longest = delays.iter().max().unwrap();
    assert!(*longest > 120, "{delays:?}");
}

#[test]
fn jitter_larger_than_the_latency_never_goes_back_in_time() {
    let mut kit = Kit::new(&[latency(0, 1_000)]);
    for _ in 0..100 {
        kit.say("x");
    }
    kit.turn();
    kit.at(1_001).turn();
    assert_eq!(kit.arrived.len(), 100);
}

#[test]
fn bandwidth_lets_so_many_bytes_go_in_so_much_time() {
    let mut kit = Kit::new(&[bandwidth(1)]);
    kit.say(&"x".repeat(250));
    kit.end();
    assert_eq!(kit.turn(), Some(100), "in slices of 100 ms");
    assert_eq!(kit.at(100).turn(), Some(200));
    assert_eq!(kit.arrived.len(), 100);
    assert_eq!(kit.at(200).turn(), Some(250));
    kit.at(250).has(&"x".repeat(250), true);
}

#[test]
fn a_fast_line_has_enough_waiting_and_a_slow_one_pushes_back() {
    let takes = |kind| {
        let mut kit = Kit::new(&[kind]);
        let mut bytes = 0;
        while kit.chain.takes_input() {
            kit.say(&"x".repeat(10_000));
            bytes += 10_000;
            kit.turn();
        }
        bytes
    };
    assert!(takes(bandwidth(1_000)) < 100_000);
    // 8 ms of a gigabyte per second.
    assert!((7_500_000..8_500_000).contains(&takes(bandwidth(1_000_000))));
    let mut kit = Kit::new(&[bandwidth(1_000)]);
    kit.follow(&[(1, bandwidth(100_000))]);
    for _ in 0..70 {
        assert!(kit.chain.takes_input(), "the bound grows with the rate");
        kit.say(&"x".repeat(10_000));
    }
    // Called late, it has not lost the time.
    kit.at(7).turn();
    assert_eq!(kit.arrived.len(), 700_000);
}

#[test]
fn a_rate_of_zero_holds_back_and_loses_nothing() {
    let mut kit = Kit::new(&[STALL]);
    let mut said = String::new();
    let mut count = 0;
    while kit.chain.takes_input() {
        let text = format!("{count:08}");
        said += &text;
        kit.say(&text);
        assert_eq!(kit.at(count).has("", false), None);
        count += 1;
    }
    assert!(count < 1_000, "what is held back has a bound");
    kit.follow(&[(1, bandwidth(1_000))]);
    kit.at(10_000).has(&said, false);
    assert!(kit.chain.takes_input());
    let mut kit = Kit::new(&[STALL]);
    kit.say("held");
    kit.end();
    kit.at(60_000).has("", false);
    kit.follow(&[]);
    kit.has("held", true);
}

#[test]
fn slow_close_delays_the_end_alone() {
    let mut kit = Kit::new(&[ToxicKind::SlowClose { delay_ms: 30 }]);
    kit.say("a");
    kit.has("a", false);
    kit.at(10).end();
    assert_eq!(kit.has("a", false), Some(40));
    kit.at(40).has("a", true);
}

#[test]
fn timeout_drops_and_closes_when_it_was_quiet_for_so_long() {
    let mut kit = Kit::new(&[ToxicKind::Timeout { timeout_ms: 50 }]);
    assert_eq!(kit.turn(), Some(50));
    kit.at(40).say("lost");
    assert_eq!(kit.has("", false), Some(90));
    kit.at(90).has("", true);
    assert!(!kit.chain.takes_input());
}

#[test]
fn timeout_zero_never_closes_until_it_is_removed() {
    let mut kit = Kit::new(&[BLACKHOLE]);
    kit.say("lost");
    assert_eq!(kit.at(1_000_000).has("", false), None);
    assert!(kit.chain.takes_input(), "it swallows everything");
    kit.follow(&[]);
    kit.has("", true);
}

#[test]
fn timeout_zero_passes_the_end_on() {
    let mut kit = Kit::new(&[BLACKHOLE]);
    kit.say("lost");
    kit.end();
    kit.has("", true);
}

#[test]
fn reset_peer_resets_after_its_time_and_lets_nothing_pass() {
    let mut kit = Kit::new(&[ToxicKind::ResetPeer { timeout_ms: 20 }]);
    kit.say("lost");
    kit.end();
    assert_eq!(kit.has("", false), Some(20));
    kit.at(20);
    assert_eq!(kit.chain.advance(kit.now), Turn::Reset);
}

#[test]
fn slicer_cuts_into_pieces_of_about_that_size_with_pauses() {
    let mut kit = Kit::new(&[slicer(10, 5, 2_000)]);
    let said: String = ('a'..='z').cycle().take(500).collect();
    kit.say(&said);
    kit.end();
    let mut before = 0;
    let mut sizes = Vec::new();
    while let Some(wake) = kit.turn() {
        sizes.push(kit.arrived.len() - before);
        before = kit.arrived.len();
        kit.at(wake);
    }
    assert!(
        sizes.iter().all(|size| (5..=15).contains(size)),
        "{sizes:?}"
    );
    assert!(sizes.iter().any(|&size| size != sizes[0]), "they vary");
    kit.has(&said, true);
    assert!(kit.now - kit.start >= Duration::from_millis(2) * sizes.len() as u32);
}

#[test]
fn limit_data_closes_behind_the_last_byte_and_counts_over_a_change() {
    let mut kit = Kit::new(&[ToxicKind::LimitData { bytes: 5 }]);
    kit.say("abc");
    kit.has("abc", false);
    kit.follow(&[(1, ToxicKind::LimitData { bytes: 4 })]);
    kit.say("def");
    kit.has("abcd", true);
    let mut none = Kit::new(&[ToxicKind::LimitData { bytes: 0 }]);
    none.has("", false);
    none.say("a");
    none.has("", true);
}

#[test]
fn what_a_removed_toxic_held_goes_on_in_order_through_the_rest() {
    let mut kit = Kit::new(&[latency(1_000, 0), STALL, LATE]);
    kit.say("a");
    kit.at(1_000).turn();
    kit.say("b");
    kit.turn();
    // Both toxics are removed at once: b is in the first, a in the second.
    kit.follow(&[(3, LATE)]);
    kit.say("c");
    kit.at(1_099).has("", false);
    kit.at(1_100).has("abc", false);
}

#[test]
fn a_toxic_that_is_added_in_the_middle_keeps_the_order() {
    let mut kit = Kit::new(&[]);
    kit.follow(&[(3, STALL)]);
    kit.say("a");
    kit.turn();
    kit.follow(&[(2, LATE), (3, STALL)]);
    kit.say("b");
    kit.has("", false);
    kit.follow(&[(2, LATE)]);
    kit.has("a", false);
    kit.at(100).has("ab", false);
}

#[test]
fn what_closed_the_stream_does_not_come_back_with_the_next_change() {
    let mut kit = Kit::new(&[ToxicKind::LimitData { bytes: 1 }, LATE]);
    kit.say("ab");
    kit.turn();
    kit.follow(&[(1, ToxicKind::LimitData { bytes: 1 }), (2, latency(10, 0))]);
    assert!(!kit.chain.takes_input());
    kit.at(10).has("a", true);
}

#[test]
fn noop_and_no_toxic_let_everything_pass() {
    let mut kit = Kit::new(&[ToxicKind::Noop]);
    assert!(kit.chain.is_idle(), "nothing has to go through it");
    kit.say("a");
    kit.end();
    kit.has("a", true);
}
