//! What lock clients ask of a server, with the scripts that they send.

use super::pair::{CONNECTIONS, Care, Pair};
use std::time::Duration;
use tokio::time::sleep;

macro_rules! scripts {
    ($($file:literal),*) => {
        concat!($(include_str!(concat!("../../../crates/fencing-lock/src/", $file))),*)
    };
}

const ACQUIRE: &str = scripts!("redis/scripts/token.lua", "redis/scripts/acquire.lua");
const RELEASE: &str = scripts!("redis/scripts/release.lua");
const RENEW: &str = scripts!("redis/scripts/renew.lua");
const STAND: &str = scripts!(
    "redis/scripts/token.lua",
    "redis/scripts/line.lua",
    "redis/scripts/stand.lua"
);
const LEAVE: &str = scripts!(
    "redis/scripts/token.lua",
    "redis/scripts/line.lua",
    "redis/scripts/leave.lua"
);
const MAJORITY_ACQUIRE: &str = scripts!("redlock/scripts/acquire.lua");
const WRITE_BACK: &str = scripts!("redlock/scripts/write_back.lua");

const LOCKS: [&str; 3] = ["job", "}odd", "with blank"];
const OWNERS: usize = 5;
/// A hold of this length ends in the middle of the workload; of the other, never.
const SHORT_MS: u64 = 12;
const LONG_MS: u64 = 600_000;

struct Workload {
    random: fastrand::Rng,
    number: u64,
}

pub async fn play(pair: &mut Pair, seed: u64, steps: usize) {
    let mut workload = Workload {
        random: fastrand::Rng::with_seed(seed),
        number: 0,
    };
    let own = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect();
    let ask = async |pair: &mut Pair, at, words: &[&str], care| {
        let words: Vec<Vec<u8>> = own(words);
        pair.same(at, &words, care).await;
    };
    ask(pair, 0, &["FLUSHALL"], Care::Exact).await;
    ask(
        pair,
        0,
        &["CONFIG", "SET", "notify-keyspace-events", "Kg$hxe"],
        Care::Exact,
    )
    .await;
    for at in 1..CONNECTIONS {
        ask(pair, at, &["HELLO", "3"], Care::Shape).await;
        ask(pair, at, &["SUBSCRIBE", &channel(at)], Care::Exact).await;
    }
    ask(
        pair,
        1,
        &["PSUBSCRIBE", "__keyspace@0__:[^s]*"],
        Care::Exact,
    )
    .await;
    ask(pair, 2, &["SUBSCRIBE", "freed:{job}"], Care::Exact).await;
    for step in 0..steps {
        workload.step(pair).await;
        if step % 20 == 0 {
            // These end by themselves after a second, and nobody could say in which step.
            let swept = LOCKS.map(|lock| name("swept", lock));
            ask(
                pair,
                0,
                &["DEL", &swept[0], &swept[1], &swept[2]],
                Care::Exact,
            )
            .await;
            pair.same_messages().await;
        }
    }
    assert!(pair.compared >= steps, "{} of {steps}", pair.compared);
}

fn channel(at: usize) -> String {
    format!("fencepost:hand-offs:{at}")
}

fn name(kind: &str, lock: &str) -> String {
    match lock.starts_with('}') {
        true => format!("{kind}:{{:{lock}}}:"),
        false => format!("{kind}:{{{lock}}}"),
    }
}

impl Workload {
    async fn step(&mut self, pair: &mut Pair) {
        let at = self.random.usize(..CONNECTIONS);
        let lock = LOCKS[self.random.usize(..LOCKS.len())];
        let owner = format!("owner-{}", self.random.usize(..OWNERS));
        let gone = format!("{}:{owner}", name("gone", lock));
        let [held, fence, line, waiters, swept] =
            ["lock", "fence", "line", "waiters", "swept"].map(|kind| name(kind, lock));
        let floor = if self.random.u8(..8) == 0 {
            "server-clock"
        } else {
            "none"
        };
        let is_short = self.random.u8(..100) == 0;
        let ttl = if is_short { SHORT_MS } else { LONG_MS }.to_string();
        let number = self.number();
        match self.random.u8(..14) {
            0 | 1 => {
                let keys = [&held, &fence, &gone];
                let arguments = [&owner, &ttl, floor, &number];
                self.call(pair, at, ACQUIRE, &keys, &arguments).await;
            }
            2 => {
                let channel = name("freed", lock);
                let keys = [&held, &gone];
                let keys = if self.rarely() { &keys[..] } else { &keys[..1] };
                let announced = if self.random.bool() {
                    channel.as_str()
                } else {
                    ""
                };
                let arguments = [&owner, announced, &number];
                self.call(pair, at, RELEASE, keys, &arguments).await;
            }
            3 => {
                self.call(pair, at, RENEW, &[&held], &[&owner, &ttl, &number])
                    .await
            }
            4..=8 => {
                let keys = [&held, &fence, &line, &waiters, &gone, &swept];
                let again = if self.random.bool() { "again" } else { "" };
                let most = ["0", "2", "100"][self.random.usize(..3)];
                let own = channel(at);
                let arguments = [&owner, &ttl, floor, &own, most, again, &number];
                self.call(pair, at, STAND, &keys, &arguments).await;
            }
            9..=11 => {
                let keys = [&held, &fence, &line, &waiters, &gone];
                let keys = if self.rarely() { &keys[..] } else { &keys[..4] };
                let own = channel(at);
                let own = if self.random.bool() { own.as_str() } else { "" };
                self.call(pair, at, LEAVE, keys, &[&owner, floor, own, &number])
                    .await;
            }
            12 => {
                let proposed = self.random.u32(1..50).to_string();
                let keys = [&held, &fence, &gone];
                let arguments = [owner.as_str(), &ttl, &proposed, &number];
                self.call(pair, at, MAJORITY_ACQUIRE, &keys, &arguments)
                    .await;
            }
            _ => {
                self.write_back(pair, at, [&held, &fence], &owner, &number)
                    .await;
            }
        }
        if is_short {
            self.wait_for_the_end(pair, at, &held).await;
            for key in [line, waiters] {
                let keep = ["PEXPIRE", &key, "1000000"].map(|word| word.as_bytes().to_vec());
                pair.same(at, &keep, Care::Exact).await;
            }
        }
        if self.random.u8(..50) == 0 {
            self.forget(pair, at, &gone).await;
        }
    }

    async fn write_back(
        &mut self,
        pair: &mut Pair,
        at: usize,
        [held, fence]: [&str; 2],
        owner: &str,
        number: &str,
    ) {
        let token = self.random.u32(1..50).to_string();
        // The counter has to be there.
        let look = ["EXISTS", fence].map(|word| word.as_bytes().to_vec());
        let there = pair.same(at, &look, Care::Exact).await;
        if there == simulated_redis::Reply::Int(1) {
            let keys = [held, fence];
            self.call(pair, at, WRITE_BACK, &keys, &[owner, &token, number])
                .await;
        }
    }

    /// Waits until a hold or a waiter that was to end soon has ended, on both.
    async fn wait_for_the_end(&mut self, pair: &mut Pair, at: usize, held: &str) {
        sleep(Duration::from_millis(SHORT_MS + 3)).await;
        let look = ["EXISTS", held].map(|word| word.as_bytes().to_vec());
        pair.same(at, &look, Care::Exact).await;
    }

    /// Lets an owner try again, or the server lose a key or its scripts.
    async fn forget(&mut self, pair: &mut Pair, at: usize, gone: &str) {
        let words = match self.random.u8(..3) {
            0 => ["SCRIPT", "FLUSH"],
            _ => ["DEL", gone],
        };
        let words = words.map(|word| word.as_bytes().to_vec());
        pair.same(at, &words, Care::Exact).await;
    }

    fn rarely(&mut self) -> bool {
        self.random.u8(..20) == 0
    }

    fn number(&mut self) -> String {
        self.number += 1;
        self.number.to_string()
    }

    async fn call(
        &mut self,
        pair: &mut Pair,
        at: usize,
        code: &str,
        keys: &[impl AsRef<str>],
        arguments: &[&str],
    ) {
        let count = keys.len().to_string();
        let head = ["EVAL", code, &count];
        let keys = keys.iter().map(AsRef::as_ref);
        let words = head
            .into_iter()
            .chain(keys)
            .chain(arguments.iter().copied());
        let words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
        pair.same(at, &words, Care::Times).await;
    }
}
