use super::peer::{self, Line, Lines};
use async_trait::async_trait;
use fencing_lock::{ByteStream, Env, World};
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::io::{DuplexStream, duplex};
use tokio::time::Instant;

/// The start of the world by its wall clock, in seconds since 1970.
pub const EPOCH_S: u64 = 1_700_000_000;

/// A world with a seed, and a peer for each server that somebody dials.
pub struct Seeded {
    pub seed: u64,
    random: Mutex<fastrand::Rng>,
    began_at: Instant,
    /// The peers' lines, by the host. A host without lines is silent.
    lines: Mutex<BTreeMap<String, Lines>>,
    /// The members of etcd, by the host.
    #[cfg(feature = "etcd")]
    members: Mutex<BTreeMap<String, simulated_etcd::Etcd>>,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Seeded {
    pub fn new(seed: u64) -> Seeded {
        Seeded {
            seed,
            random: Mutex::new(fastrand::Rng::with_seed(seed)),
            began_at: Instant::now(),
            lines: Mutex::default(),
            #[cfg(feature = "etcd")]
            members: Mutex::default(),
            sent: Arc::default(),
        }
    }

    pub fn env(self: &Arc<Seeded>) -> Env {
        Env::of(self.clone())
    }

    /// Gives the peer at this host its lines.
    pub fn host(&self, name: &str, lines: impl IntoIterator<Item = Line>) {
        let lines = Arc::new(Mutex::new(lines.into_iter().collect()));
        self.lines.lock().unwrap().insert(name.to_owned(), lines);
    }

    /// Lets a member of an etcd serve at this host.
    #[cfg(feature = "etcd")]
    pub fn host_etcd(&self, name: &str, member: &simulated_etcd::Etcd) {
        let mut members = self.members.lock().unwrap();
        members.insert(name.to_owned(), member.clone());
    }

    /// Returns everything that was sent so far, with the time and the server.
    pub fn sent(&self) -> Vec<String> {
        self.sent.lock().unwrap().clone()
    }

    fn connect(&self, server: &str, lines: Option<Lines>) -> DuplexStream {
        let (ours, theirs) = duplex(1 << 16);
        let (sent, began_at) = (self.sent.clone(), self.began_at);
        let server = server.to_owned();
        let name = server.clone();
        let note = move |what: &str| {
            let at_us = began_at.elapsed().as_micros();
            let line = format!("{at_us} {name} {what}");
            sent.lock().unwrap().push(line);
        };
        #[cfg(feature = "etcd")]
        if let Some(member) = self.members.lock().unwrap().get(&server) {
            let (near, far) = duplex(1 << 16);
            tokio::spawn(member.serve(far));
            tokio::spawn(peer::heard(theirs, near, note));
            return ours;
        }
        match lines {
            Some(lines) => tokio::spawn(peer::redis(theirs, lines, note)),
            None => tokio::spawn(peer::silent(theirs, note)),
        };
        ours
    }
}

#[async_trait]
impl World for Seeded {
    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_S) + self.began_at.elapsed()
    }

    fn random(&self) -> u64 {
        self.random.lock().unwrap().u64(..)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    async fn dial(&self, host: &str, _port: u16) -> io::Result<Box<dyn ByteStream>> {
        let lines = self.lines.lock().unwrap().get(host).cloned();
        Ok(Box::new(self.connect(host, lines)))
    }
}
