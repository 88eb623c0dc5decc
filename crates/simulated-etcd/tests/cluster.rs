//! A real client of etcd with a simulated cluster, in played time.

use etcd_client::{
    Channel, Client, Compare, CompareOp, ConnectOptions, Error, GetOptions, LockOptions,
    PutOptions, Txn, TxnOp, WatchOptions,
};
use hyper_util::rt::TokioIo;
use simulated_etcd::{Etcd, Peer, Start};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, duplex, split};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::Endpoint;
use tower::service_fn;

/// The members of a cluster, with the tasks of each.
struct Cluster {
    members: Vec<Etcd>,
    tasks: Arc<Vec<Mutex<JoinSet<()>>>>,
    seed: u64,
    began_at: Instant,
    /// What members say to each other takes so long at least.
    delay: Duration,
}

impl Cluster {
    async fn start(size: u16) -> Cluster {
        Cluster::of_seed(size, 1).await
    }

    async fn of_seed(size: u16, seed: u64) -> Cluster {
        Cluster::with_delay(size, seed, Duration::ZERO).await
    }

    async fn with_delay(size: u16, seed: u64, delay: Duration) -> Cluster {
        let peer = |port: u16| Peer {
            name: format!("etcd-{port}"),
            host: "etcd".to_owned(),
            port,
        };
        let peers: Vec<Peer> = (0..size).map(peer).collect();
        let members = peers.iter().map(|peer| Etcd::new(&peer.name, &peers));
        let cluster = Cluster {
            members: members.collect(),
            tasks: Arc::new((0..size).map(|_| Mutex::default()).collect()),
            seed,
            began_at: Instant::now(),
            delay,
        };
        for at in 0..cluster.members.len() {
            cluster.begin(at);
        }
        for member in &cluster.members {
            member.ready().await;
        }
        cluster
    }

    fn begin(&self, at: usize) {
        let began_at = self.began_at;
        self.members[at].start(Start {
            wall_clock: Box::new(|| Duration::from_secs(1_700_000_000)),
            monotonic: Box::new(move || began_at.elapsed()),
            seed: self.seed * 10 + at as u64,
        });
        let (member, members) = (self.members[at].clone(), self.members.clone());
        let (tasks, delay) = (self.tasks.clone(), self.delay);
        let dial = move |_, port: u16| {
            let connected = connect(&members, &tasks, usize::from(port));
            let connected = connected.map(|stream| match delay.is_zero() {
                true => stream,
                false => slowed(stream, delay),
            });
            async move { connected }
        };
        let run = async move { match member.run(dial).await {} };
        self.tasks[at].lock().unwrap().spawn(run);
    }

    fn kill(&self, at: usize) {
        *self.tasks[at].lock().unwrap() = JoinSet::new();
    }

    fn leader(&self) -> usize {
        let leader = self.members.iter().position(Etcd::leads);
        leader.expect("somebody leads")
    }

    fn follower(&self) -> usize {
        let follower = self.members.iter().position(|member| !member.leads());
        follower.expect("somebody follows")
    }

    async fn client(&self, at: usize) -> Client {
        self.client_with(at, ConnectOptions::new()).await
    }

    async fn client_with(&self, at: usize, options: ConnectOptions) -> Client {
        let (members, tasks) = (self.members.clone(), self.tasks.clone());
        let endpoint = Endpoint::from_static("http://etcd");
        let channel = endpoint.connect_with_connector_lazy(service_fn(move |_| {
            let connected = connect(&members, &tasks, at).map(TokioIo::new);
            async move { connected }
        }));
        let client = Client::from_channel(Channel::Tonic(channel), Some(options));
        client.await.expect("no connection is made yet")
    }
}

/// Connects to a member that runs.
fn connect(members: &[Etcd], tasks: &[Mutex<JoinSet<()>>], at: usize) -> io::Result<DuplexStream> {
    let mut tasks = tasks[at].lock().unwrap();
    if tasks.is_empty() {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let (ours, theirs) = duplex(1 << 16);
    let served = members[at].serve(theirs);
    tasks.spawn(async move { drop(served.await) });
    Ok(ours)
}

/// Returns the other end of a connection through which everything takes so long.
fn slowed(far: DuplexStream, delay: Duration) -> DuplexStream {
    let (near, middle) = duplex(1 << 16);
    let ((from_near, to_near), (from_far, to_far)) = (split(middle), split(far));
    tokio::spawn(pass_on(from_near, to_far, delay));
    tokio::spawn(pass_on(from_far, to_near, delay));
    near
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        sleep(delay).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}

fn message(error: Error) -> String {
    match error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    }
}

async fn has(client: &mut Client, key: &str) -> bool {
    let found = client.get(key, None).await.expect("an answer");
    found.count() > 0
}

#[tokio::test(start_paused = true)]
async fn another_leads_when_the_leader_dies_and_nothing_is_lost() {
    let cluster = Cluster::start(3).await;
    let old = cluster.leader();
    let mut client = cluster.client(cluster.follower()).await;
    let put = client.put("k", "before", None).await.unwrap();
    assert_eq!(put.header().unwrap().revision(), 2);
    cluster.kill(old);
    let began_at = Instant::now();
    // It waits for the next leader.
    let put = client.put("k", "after", None).await;
    let put = match put {
        // What was on its way to the old one is lost.
        Err(error) => {
            assert_eq!(message(error), "etcdserver: request timed out");
            client.put("k", "after", None).await.unwrap()
        }
        Ok(put) => put,
    };
    assert_eq!(put.header().unwrap().revision(), 3);
    assert!(
        began_at.elapsed() >= Duration::from_secs(1),
        "an election takes time"
    );
    cluster.begin(old);
    cluster.members[old].ready().await;
    let mut client = cluster.client(old).await;
    let from_memory = GetOptions::new().with_serializable();
    let found = client.get("k", Some(from_memory)).await.unwrap();
    assert_eq!(found.kvs()[0].value(), b"after");
    assert_eq!(found.kvs()[0].version(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lease_ends_with_its_keys_unless_it_is_kept_alive_through_any_member() {
    let cluster = Cluster::start(3).await;
    let mut client = cluster.client(cluster.follower()).await;
    let lease = client.lease_grant(1, None).await.unwrap();
    assert_eq!(lease.ttl(), 2, "none is shorter");
    let attached = PutOptions::new().with_lease(lease.id());
    client.put("k", "", Some(attached.clone())).await.unwrap();
    let (mut keeper, mut kept) = client.lease_keep_alive(lease.id()).await.unwrap();
    for _ in 0..5 {
        sleep(Duration::from_secs(1)).await;
        keeper.keep_alive().await.unwrap();
        assert_eq!(kept.message().await.unwrap().unwrap().ttl(), 2);
        assert!(has(&mut client, "k").await);
    }
    sleep(Duration::from_secs(3)).await;
    assert!(!has(&mut client, "k").await);
    let left = client.lease_time_to_live(lease.id(), None).await.unwrap();
    assert_eq!(left.ttl(), -1);
    let refused = client.put("k", "", Some(attached)).await.unwrap_err();
    assert_eq!(message(refused), "etcdserver: requested lease not found");
    keeper.keep_alive().await.unwrap();
    assert_eq!(kept.message().await.unwrap().unwrap().ttl(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_begins_every_lease_anew() {
    let cluster = Cluster::start(3).await;
    let mut client = cluster.client(cluster.follower()).await;
    let lease = client.lease_grant(10, None).await.unwrap();
    let attached = PutOptions::new().with_lease(lease.id());
    client.put("k", "", Some(attached)).await.unwrap();
    sleep(Duration::from_secs(9)).await;
    cluster.kill(cluster.leader());
    sleep(Duration::from_secs(10)).await;
    assert!(has(&mut client, "k").await);
    sleep(Duration::from_secs(5)).await;
    assert!(!has(&mut client, "k").await);
}

#[tokio::test(start_paused = true)]
async fn a_minority_says_that_nobody_leads() {
    let cluster = Cluster::start(3).await;
    let needs_leader = ConnectOptions::new().with_require_leader(true);
    let mut strict = cluster.client_with(0, needs_leader).await;
    let mut watch = strict.watch("k", None).await.unwrap();
    assert!(watch.message().await.unwrap().unwrap().created());
    cluster.kill(1);
    cluster.kill(2);
    sleep(Duration::from_secs(4)).await;
    let refused = strict.put("k", "", None).await.unwrap_err();
    assert_eq!(message(refused), "etcdserver: no leader");
    let mut patient = cluster.client(0).await;
    let given_up = patient.get("k", None).await.unwrap_err();
    assert_eq!(message(given_up), "etcdserver: request timed out");
    let from_memory = GetOptions::new().with_serializable();
    patient.get("k", Some(from_memory)).await.unwrap();
    let ended = timeout(Duration::from_secs(5), watch.message()).await;
    let ended = ended.expect("the watch ends").unwrap_err();
    assert_eq!(message(ended), "etcdserver: no leader");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_members_are_slow_answers_all_the_same() {
    let slow = async {
        let cluster = Cluster::with_delay(3, 1, Duration::from_millis(350)).await;
        let mut client = cluster.client(cluster.follower()).await;
        client.put("k", "v", None).await.expect("it is put");
        assert!(has(&mut client, "k").await);
        let lease = client.lease_grant(10, None).await.expect("a lease").id();
        let left = client.lease_time_to_live(lease, None).await;
        assert!(left.expect("it is there").ttl() > 0);
    };
    let answered = timeout(Duration::from_secs(60), slow).await;
    answered.expect("each answer takes more than half a second, and counts");
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_happens_from_any_revision_on() {
    let cluster = Cluster::start(1).await;
    let mut client = cluster.client(0).await;
    let mut now = client.watch("k", None).await.unwrap();
    assert!(now.message().await.unwrap().unwrap().created());
    client.put("k", "1", None).await.unwrap();
    client.put("other", "", None).await.unwrap();
    client.delete("k", None).await.unwrap();
    let since = WatchOptions::new()
        .with_prefix()
        .with_start_revision(3)
        .with_prev_key();
    let mut later = client.watch("", Some(since)).await.unwrap();
    assert!(later.message().await.unwrap().unwrap().created());
    let mut told = Vec::new();
    for turn in 0..4 {
        let watch = if turn < 2 { &mut now } else { &mut later };
        let answer = watch.message().await.unwrap().unwrap();
        let [event] = answer.events() else {
            panic!("one change of a revision: {answer:?}");
        };
        let (kv, before) = (event.kv().unwrap(), event.prev_kv());
        let before = before.map(|kv| kv.value_str().unwrap().to_owned());
        let key = kv.key_str().unwrap().to_owned();
        told.push((kv.mod_revision(), key, kv.version(), before));
    }
    let k = || "k".to_owned();
    let before = Some("1".to_owned());
    assert_eq!(told[0], (2, k(), 1, None));
    assert_eq!(told[1], (4, k(), 0, None));
    assert_eq!(told[2], (3, "other".to_owned(), 1, None));
    assert_eq!(told[3], (4, k(), 0, before));
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_the_server_goes_to_the_next_in_line() {
    let cluster = Cluster::start(3).await;
    let mut client = cluster.client(cluster.follower()).await;
    let mut ask = async || {
        let lease = client.lease_grant(60, None).await.unwrap().id();
        let (mut locks, options) = (client.clone(), LockOptions::new().with_lease(lease));
        (
            lease,
            tokio::spawn(async move { locks.lock("l", Some(options)).await }),
        )
    };
    let (_, first) = ask().await;
    let first = first.await.unwrap().unwrap();
    let (gone, second) = ask().await;
    sleep(Duration::from_secs(1)).await;
    let (_, third) = ask().await;
    sleep(Duration::from_secs(1)).await;
    assert!(!second.is_finished() && !third.is_finished());
    client.lease_revoke(gone).await.unwrap();
    client.unlock(first.key()).await.unwrap();
    let third = third.await.unwrap().unwrap();
    assert!(third.key().starts_with(b"l/") && third.key() != first.key());
    let second = second.await.unwrap().unwrap_err();
    assert_eq!(message(second), "mutex: session is expired");
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_all_or_nothing() {
    let cluster = Cluster::start(1).await;
    let mut client = cluster.client(0).await;
    let is_new = || Compare::create_revision("a", CompareOp::Equal, 0);
    let take = || {
        let puts = [TxnOp::put("a", "1", None), TxnOp::put("b", "1", None)];
        let look = [TxnOp::get("a", None)];
        Txn::new().when([is_new()]).and_then(puts).or_else(look)
    };
    let first = client.txn(take()).await.unwrap();
    let second = client.txn(take()).await.unwrap();
    assert!(first.succeeded() && !second.succeeded());
    let found = client.get("b", None).await.unwrap();
    assert_eq!(found.kvs()[0].create_revision(), 2);
    assert_eq!(found.header().unwrap().revision(), 2);
    let twice = [TxnOp::put("a", "1", None), TxnOp::put("a", "2", None)];
    let refused = client.txn(Txn::new().and_then(twice)).await.unwrap_err();
    assert_eq!(
        message(refused),
        "etcdserver: duplicate key given in txn request"
    );
}
