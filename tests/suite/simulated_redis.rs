//! The simulated Redis against a real one: the same commands on both, and the same answers and
//! messages. A simulator that nobody compares would be a mock.

mod draw;
mod locks;
mod pair;
mod wire;

use crate::support::{docker_shared, own_redis};
use pair::Pair;

/// Another seed plays other commands: `SEED=7 cargo test …`.
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
async fn random_commands_are_answered_as_a_real_redis_answers_them() {
    let _turn = docker_shared();
    let real = own_redis();
    let mut pair = Pair::connect(&real.address).await;
    draw::play(&mut pair, seed(), steps()).await;
}

#[tokio::test]
async fn lock_workloads_are_answered_as_a_real_redis_answers_them() {
    let _turn = docker_shared();
    let real = own_redis();
    let mut pair = Pair::connect(&real.address).await;
    locks::play(&mut pair, seed(), steps()).await;
}
