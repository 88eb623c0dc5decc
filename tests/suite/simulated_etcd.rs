//! The simulated etcd against a real one: the same requests on both, and the same answers and
//! events. A simulator that nobody compares would be a mock.

mod draw;
mod pair;

use crate::support::{docker_shared, own_fast_etcd};
use draw::Draw;
use pair::Pair;

/// Another seed plays other requests: `SEED=7 cargo test …`.
fn seed() -> u64 {
    let given = std::env::var("SEED").ok();
    given.map_or(1, |seed| seed.parse().expect("a number"))
}

/// A soak plays more than this: `STEPS=1000000 cargo test …`.
fn steps() -> usize {
    let given = std::env::var("STEPS").ok();
    given.map_or(10_000, |steps| steps.parse().expect("a number"))
}

#[tokio::test]
async fn random_requests_are_answered_as_a_real_etcd_answers_them() {
    let _turn = docker_shared();
    let real = own_fast_etcd();
    let pair = Pair::connect(&real.address).await;
    Draw::new(pair, seed()).play(steps()).await;
}
