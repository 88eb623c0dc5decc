use async_trait::async_trait;
use etcd_client::{ConnectOptions, Error, PutOptions, WatchOptions, WatchResponse, WatchStream};
use fencing_lock::servers::{EtcdWire, etcd_wire, etcd_wire_in};
use fencing_lock::{ByteStream, Env, World};
use futures_util::future::BoxFuture;
use simulated_etcd::{Etcd, Peer, Start};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Debug, Display};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::{DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const DEADLINE: Duration = Duration::from_secs(10);
/// A key that only says how far the watches are, and the watch for it.
const MARK: &str = "~mark";
pub const MARK_WATCH: i64 = 1;

/// A simulated and a real member, with the same clients and watches at both.
pub struct Pair {
    simulated: Side,
    real: Side,
    _member: JoinHandle<()>,
    last: VecDeque<String>,
    pub compared: usize,
    events: usize,
}

struct Side {
    wire: EtcdWire,
    watches: WatchStream,
    /// What each watch has told that was not compared yet.
    told: BTreeMap<i64, Vec<String>>,
}

/// An answer as it is compared.
pub type Shown = Result<String, String>;

impl Pair {
    /// Connects to a real member that is new. The simulated one is it as well.
    pub async fn connect(address: &str) -> Pair {
        let peer = Peer {
            name: "etcd".to_owned(),
            host: "etcd".to_owned(),
            port: 2380,
        };
        let etcd = Etcd::new("etcd", &[peer]);
        let began_at = Instant::now();
        etcd.start(Start {
            wall_clock: Box::new(|| Duration::ZERO),
            monotonic: Box::new(move || began_at.elapsed()),
            seed: 1,
        });
        let own = etcd.clone();
        let run = async move {
            let nobody =
                |_, _| async { Err::<DuplexStream, io::Error>(io::ErrorKind::NotFound.into()) };
            match own.run(nobody).await {}
        };
        let member = tokio::spawn(run);
        etcd.ready().await;
        let env = Env::of(Arc::new(Near(etcd)));
        let simulated = etcd_wire_in(&env, "etcd:2379").await;
        let real = etcd_wire(address, ConnectOptions::new()).await;
        Pair {
            simulated: Side::new(simulated.expect("clients")).await,
            real: Side::new(real.expect("clients")).await,
            _member: member,
            last: VecDeque::new(),
            compared: 0,
            events: 0,
        }
    }

    /// Asks both the same, and returns the answer, in which only what differs between any two
    /// clusters may differ.
    pub async fn same(
        &mut self,
        what: impl Display,
        ask: impl AsyncFn(EtcdWire) -> Shown,
    ) -> Shown {
        self.last.push_back(what.to_string());
        while self.last.len() > 12 {
            self.last.pop_front();
        }
        let [simulated, real] = [&self.simulated, &self.real].map(|side| ask(side.wire.clone()));
        let both = timeout(DEADLINE, async { tokio::join!(simulated, real) }).await;
        let (simulated, real) = both.unwrap_or_else(|_| panic!("no answer to {:#?}", self.last));
        assert!(
            simulated == real,
            "{:#?}\nsimulated: {simulated:?}\nreal:      {real:?}",
            self.last
        );
        self.compared += 1;
        simulated
    }

    /// Begins a watch at both, with its own number.
    pub async fn watch(&mut self, key: &str, options: &WatchOptions) {
        self.last.push_back(format!("watch {key} {options:?}"));
        for side in [&mut self.simulated, &mut self.real] {
            let asked = side.watches.watch(key, Some(options.clone())).await;
            asked.expect("a stream");
        }
    }

    /// Ends a watch at both. What a real one has on its way to it would be lost, so there is to be
    /// nothing.
    pub async fn end_watch(&mut self, id: i64) {
        self.same_events().await;
        self.last.push_back(format!("end of watch {id}"));
        for side in [&mut self.simulated, &mut self.real] {
            side.watches.cancel(id).await.expect("a stream");
        }
    }

    /// Compares what the watches told up to now. One that has to catch up may be behind.
    pub async fn same_events(&mut self) {
        let put = async |wire: EtcdWire| {
            let mut kv = wire.kv;
            let put = kv.put(MARK, "", Some(PutOptions::new())).await;
            show(put.map(|put| put.header().map_or(0, |header| header.revision())))
        };
        let revision = self.same("the mark", put).await.expect("a revision");
        let revision = revision.parse().expect("a revision");
        for side in [&mut self.simulated, &mut self.real] {
            let reached = timeout(DEADLINE, side.listen_until(revision)).await;
            reached.unwrap_or_else(|_| panic!("no event of {revision}: {:#?}", self.last));
        }
        self.compare_events();
    }

    /// Compares the events that both have told.
    fn compare_events(&mut self) {
        for (id, simulated) in &mut self.simulated.told {
            let real = self.real.told.entry(*id).or_default();
            let both = simulated.len().min(real.len());
            let (simulated, real) = (simulated.drain(..both), real.drain(..both));
            let (simulated, real): (Vec<_>, Vec<_>) = (simulated.collect(), real.collect());
            assert_eq!(simulated, real, "watch {id}: {:#?}", self.last);
            self.events += both;
        }
    }

    /// Waits until the watches of both have told the same, and returns how many events that is.
    pub async fn all_events(&mut self) -> usize {
        self.same_events().await;
        let none_is_left = |side: &Side| side.told.values().all(Vec::is_empty);
        let caught_up = timeout(DEADLINE, async {
            while !none_is_left(&self.simulated) {
                self.real.listen().await;
                self.compare_events();
            }
        });
        let caught_up = caught_up.await.is_ok() && none_is_left(&self.real);
        assert!(
            caught_up,
            "{:#?} {:#?}",
            self.simulated.told, self.real.told
        );
        self.events
    }
}

impl Side {
    async fn new(mut wire: EtcdWire) -> Side {
        let options = WatchOptions::new().with_watch_id(MARK_WATCH);
        let watches = wire.watch.watch(MARK, Some(options)).await;
        Side {
            wire,
            watches: watches.expect("a stream"),
            told: BTreeMap::new(),
        }
    }

    async fn listen_until(&mut self, revision: i64) {
        loop {
            let answer = self.listen().await;
            let mut events = answer.events().iter().filter_map(|event| event.kv());
            if answer.watch_id() == MARK_WATCH && events.any(|kv| kv.mod_revision() == revision) {
                return;
            }
        }
    }

    async fn listen(&mut self) -> WatchResponse {
        let answer = self.watches.message().await.expect("a stream");
        let answer = answer.expect("the stream goes on");
        let told = self.told.entry(answer.watch_id()).or_default();
        if answer.created() || answer.canceled() {
            let (created, canceled) = (answer.created(), answer.canceled());
            let reason = answer.cancel_reason();
            told.push(format!("created {created} canceled {canceled} {reason}"));
        }
        let events = answer.events().iter();
        told.extend(events.map(|event| format!("{event:?}")));
        answer
    }
}

/// Shows an answer without the names of the cluster.
pub fn show<T: Debug>(answer: Result<T, Error>) -> Shown {
    match answer {
        Ok(answer) => {
            let mut text = format!("{answer:?}");
            for name in ["cluster_id: ", "member_id: ", "raft_term: "] {
                text = without_numbers(&text, name);
            }
            Ok(text)
        }
        Err(Error::GRpcStatus(status)) => Err(format!("{:?} {}", status.code(), status.message())),
        Err(other) => Err(other.to_string()),
    }
}

fn without_numbers(text: &str, name: &str) -> String {
    let mut parts = text.split(name);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        format!("{text}{name}_{rest}")
    })
}

/// The surroundings of a client that has a simulated member beside it.
struct Near(Etcd);

#[async_trait]
impl World for Near {
    fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }

    fn random(&self) -> u64 {
        0
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    async fn dial(&self, _: &str, _: u16) -> io::Result<Box<dyn ByteStream>> {
        let (ours, theirs) = duplex(1 << 16);
        let served = self.0.serve(theirs);
        tokio::spawn(async move { drop(served.await) });
        Ok(Box::new(ours))
    }
}
