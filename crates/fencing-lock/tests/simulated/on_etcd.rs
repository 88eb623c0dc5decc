use super::world::{EPOCH_S, Seeded};
use super::{TTL, client, play};
use fencing_lock::{
    EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockClient, LockError, LockProblem,
};
use simulated_etcd::{Etcd, Peer, Start};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep};

fn servers() -> [String; 2] {
    ["a:2379", "b:2379"].map(str::to_owned)
}

#[derive(Clone, Copy)]
enum Backend {
    Ours,
    LockApi,
}

fn locks(world: &Arc<Seeded>, backend: Backend) -> LockClient {
    let (servers, settings, env) = (servers(), EtcdSettings::default(), world.env());
    match backend {
        Backend::Ours => {
            let backend = EtcdBackend::with_env(&servers, settings, env);
            client(backend.unwrap(), world.seed)
        }
        Backend::LockApi => {
            let backend = EtcdLockApiBackend::with_env(&servers, settings, env);
            client(backend.unwrap(), world.seed)
        }
    }
}

fn nobody_answered(asked: Result<Option<fencing_lock::Lease>, LockError>) {
    let problem = asked.unwrap_err().problem;
    assert!(matches!(problem, LockProblem::NoAnswer(_)), "{problem}");
}

#[test]
fn a_silent_etcd_is_asked_the_same_again() {
    for backend in [Backend::Ours, Backend::LockApi] {
        play(async |world: Arc<Seeded>| {
            nobody_answered(locks(&world, backend).try_acquire("k").await);
        });
    }
}

#[test]
fn a_lock_goes_from_hand_to_hand_the_same_again() {
    for backend in [Backend::Ours, Backend::LockApi] {
        let sent = play(async |world: Arc<Seeded>| {
            let etcd = only_member(world.seed);
            world.host_etcd("a", &etcd);
            let run = tokio::spawn(async move {
                let nobody =
                    |_, _| async { Err::<DuplexStream, io::Error>(io::ErrorKind::NotFound.into()) };
                match etcd.run(nobody).await {}
            });
            hand_over(&world, backend).await;
            run.abort();
        });
        let [one, another] = sent;
        assert_ne!(one, another, "two seeds, two worlds");
    }
}

async fn hand_over(world: &Arc<Seeded>, backend: Backend) {
    let [first, second] = [(); 2].map(|()| locks(world, backend));
    let soon = Instant::now() + 2 * TTL;
    let held = first.acquire("k", soon).await.unwrap();
    let waits = tokio::spawn(async move {
        let held = second.acquire("k", soon).await.unwrap();
        let token = held.fence();
        held.release().await;
        token
    });
    // Long enough for the first lease to be prolonged.
    sleep(TTL / 2).await;
    assert!(!waits.is_finished());
    let token = held.fence();
    held.release().await;
    assert!(waits.await.unwrap() > token);
}

fn only_member(seed: u64) -> Etcd {
    let peer = Peer {
        name: "a".to_owned(),
        host: "a".to_owned(),
        port: 2380,
    };
    let etcd = Etcd::new("a", &[peer]);
    let began_at = Instant::now();
    etcd.start(Start {
        wall_clock: Box::new(|| Duration::from_secs(EPOCH_S)),
        monotonic: Box::new(move || began_at.elapsed()),
        seed,
    });
    etcd
}
