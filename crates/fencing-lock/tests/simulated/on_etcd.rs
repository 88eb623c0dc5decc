use super::world::Seeded;
use super::{client, play};
use fencing_lock::{EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockError, LockProblem};
use std::sync::Arc;

fn servers() -> [String; 2] {
    ["a:2379", "b:2379"].map(str::to_owned)
}

fn nobody_answered(asked: Result<Option<fencing_lock::Lease>, LockError>) {
    let problem = asked.unwrap_err().problem;
    assert!(matches!(problem, LockProblem::NoAnswer(_)), "{problem}");
}

/// A simulated etcd is for later. That a silent one is asked the same again, without a
/// socket, shows that its connections and tasks are those of the world.
#[test]
fn a_silent_etcd_is_asked_the_same_again() {
    let settings = EtcdSettings::default();
    play(async |world: Arc<Seeded>| {
        let backend = EtcdBackend::with_env(&servers(), settings, world.env()).unwrap();
        nobody_answered(client(backend, world.seed).try_acquire("k").await);
    });
    play(async |world: Arc<Seeded>| {
        let backend = EtcdLockApiBackend::with_env(&servers(), settings, world.env()).unwrap();
        nobody_answered(client(backend, world.seed).try_acquire("k").await);
    });
}
