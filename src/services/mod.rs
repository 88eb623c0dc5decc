//! The lock services. Each has a folder with everything that is particular to it: its servers, how a
//! lock on it is opened, what it promises, how an observer watches it.

mod consul;
mod dynamodb;
mod etcd;
mod floor;
mod guest;
mod key_template;
mod mariadb;
mod memory;
#[cfg(debug_assertions)]
mod mutant;
mod observe;
mod options;
mod postgres;
mod questions;
mod recorded;
mod redis;
mod redlock;
mod zookeeper;

pub use etcd::EtcdBystander;
pub use floor::{BareWrites, Floor};
pub use guest::{Guest, Sighting, Visit};
pub use key_template::KeyTemplate;
#[cfg(debug_assertions)]
pub use mutant::changes;
pub use observe::Watch;
pub use options::{LockOptions, OnLost, ReleaseStyle};
pub use postgres::PostgresServer;
pub use questions::{HttpServer, Questions, Reached, Sign, unix_s};
pub use recorded::{outcome, valid_until_ns};
pub use redis::RedisBystander;

use observe::Layout;

use crate::model::{ServicePlan, joined, not_one_of};
use fencing_lock::{Env, LockBackend, LockError, LockProblem};
use futures_util::future::BoxFuture;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use strum::{Display, EnumString, VariantArray};

/// The lock service that guards a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Display, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case", parse_err_ty = String, parse_err_fn = not_one_of::<Backend>)]
pub enum Backend {
    /// One Redis.
    #[default]
    Redis,
    /// A majority of independent Redis nodes, with tokens that only grow.
    Redlock,
    /// The same, with the highest of the nodes' own counters as the token. That token goes
    /// backwards even without any fault.
    RedlockUnsafeTokens,
    /// Several independent Redis servers, of which each key has one, with its lock and its counter.
    RedisSharded,
    /// A lease and a queue in the order of revisions.
    Etcd,
    /// The lock that the etcd server itself offers.
    EtcdLockApi,
    /// A row of a table in one Postgres.
    PostgresLease,
    /// An advisory lock of one Postgres, held by a session.
    PostgresAdvisory,
    /// The same, without a check that no other client shares the session. Behind a pooler, two
    /// clients hold the lock even without any fault.
    PostgresAdvisoryUnchecked,
    /// A lock of one MariaDB, held by a session.
    Mariadb,
    /// The same, without a look at the session while the lock is held. A server that ends silent
    /// sessions frees the lock under its holder even without any fault.
    MariadbWithoutPing,
    /// A line of numbered nodes in a ZooKeeper ensemble.
    Zookeeper,
    /// A key of one Consul, held by a session.
    Consul,
    /// An item of a table in DynamoDB, or in a server that speaks its protocol.
    #[strum(serialize = "dynamodb")]
    DynamoDb,
    /// One lock server in memory, in the simulation only.
    Memory,
    /// A majority of lock servers in memory, with the highest of their tokens, in the simulation
    /// only. That token goes backwards even without any fault.
    MemoryMajority,
}

impl Backend {
    pub const ALL: &[Backend] = Backend::VARIANTS;

    /// Returns everything that is particular to it.
    pub fn service(self) -> &'static Service {
        match self {
            Backend::Redis => &redis::ONE_REDIS,
            Backend::Redlock => &redlock::REDLOCK,
            Backend::RedlockUnsafeTokens => &redlock::UNSAFE_TOKENS,
            Backend::RedisSharded => &redis::SHARDED,
            Backend::Etcd => &etcd::ETCD,
            Backend::EtcdLockApi => &etcd::LOCK_API,
            Backend::PostgresLease => &postgres::LEASE,
            Backend::PostgresAdvisory => &postgres::ADVISORY,
            Backend::PostgresAdvisoryUnchecked => &postgres::ADVISORY_UNCHECKED,
            Backend::Mariadb => &mariadb::MARIADB,
            Backend::MariadbWithoutPing => &mariadb::WITHOUT_PING,
            Backend::Zookeeper => &zookeeper::ZOOKEEPER,
            Backend::Consul => &consul::CONSUL,
            Backend::DynamoDb => &dynamodb::DYNAMODB,
            Backend::Memory => &memory::ONE_SERVER,
            Backend::MemoryMajority => &memory::MAJORITY,
        }
    }

    pub fn servers(self) -> LockServers {
        self.service().servers
    }

    /// Returns why a lock of this backend cannot have this TTL, in words.
    pub fn ttl_conflict(self, ttl: Duration) -> Option<&'static str> {
        (self.service().ttl_conflict)(ttl)
    }

    /// Returns the one of these that uses this backend's kind of servers; the first if none does.
    pub fn choose<T>(self, from: &[T], speaks: impl Fn(&T) -> Option<Backend>) -> Option<&T> {
        let fits = |one: &&T| speaks(one).map(Backend::servers) == Some(self.servers());
        from.iter().find(fits).or(from.first())
    }
}

pub struct Service {
    /// Workers of one group and one key exclude each other.
    pub group: &'static str,
    pub servers: LockServers,
    /// `wait`, `release` and `fence_floor` can be chosen.
    pub has_choices: bool,
    /// `lock_delay` can be chosen.
    pub has_lock_delay: bool,
    /// The way in which the cost of a great many keys is measured on it, if it can be.
    pub keyspace: Option<Keyspace>,
    /// Returns whether grants follow the order of arrivals.
    pub in_order: fn(&LockOptions) -> bool,
    /// The facts about it that a judge needs.
    pub plan: ServicePlan,
    /// Where its tokens come from, in a few words.
    pub tokens: &'static str,
    /// The writes that a comparison of services sets its locks beside.
    pub floor: Floor,
    /// Returns why a lock cannot have this TTL, in words.
    pub ttl_conflict: fn(Duration) -> Option<&'static str>,
    open: fn(&LockOptions, &[String], Option<Defect>, Env) -> Opened,
}

pub type Opened = Result<Arc<dyn LockBackend>, LockError>;

/// A mistake to make on purpose; there is none in release builds.
#[cfg(debug_assertions)]
pub type Defect = fencing_lock::Mutant;
#[cfg(not(debug_assertions))]
pub type Defect = std::convert::Infallible;

/// The servers of a service: the program that they run, and their number.
#[derive(Clone, Copy)]
pub struct LockServers {
    pub program: &'static Program,
    pub at_least: usize,
    pub at_most: Option<usize>,
    /// The words for them: `one Redis`, `an etcd cluster`.
    pub words: &'static str,
    /// The topology of this project that has them in containers.
    pub topology: &'static str,
}

impl PartialEq for LockServers {
    fn eq(&self, other: &LockServers) -> bool {
        self.words == other.words
    }
}

impl fmt::Display for LockServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)
    }
}

pub struct Program {
    /// The name of its servers in options: `--redis`.
    pub name: &'static str,
    /// What these options name, for a help text.
    pub about: &'static str,
    /// The prefix of the keys of this project's own locks.
    pub own_keys: &'static str,
    /// Its servers are one cluster: they have to ask each other, and one of them leads.
    pub is_cluster: bool,
    /// A lock is a line of places below its key, separated from it by a `/`.
    pub has_places: bool,
    /// The questions that its servers answer about themselves.
    pub answers: &'static dyn Questions,
    /// Returns a command by which a person can look at this server.
    look: fn(&SocketAddr) -> String,
    /// How servers of somebody else's are used; None if it is not known how nothing of a run is
    /// left there.
    pub guest: Option<&'static Guest>,
    observe: for<'a> fn(Watch<'a>, Layout) -> Observation<'a>,
}

type Observation<'a> = BoxFuture<'a, Result<(), LockProblem>>;

impl PartialEq for Program {
    fn eq(&self, other: &Program) -> bool {
        self.name == other.name
    }
}

impl Program {
    /// Returns commands that a person can run on these servers.
    pub fn hints(&self, servers: &[SocketAddr]) -> Vec<String> {
        let (name, all) = (self.name, joined(servers, ","));
        let contend = format!("fencepost contend --{name} {all} --duration 5s");
        let look = servers.first().map(self.look);
        look.into_iter().chain([contend]).collect()
    }

    /// Returns every program that some service runs on, once each, without those that are only
    /// simulated.
    pub fn all() -> Vec<&'static Program> {
        let mut all: Vec<&Program> = Vec::new();
        for backend in Backend::ALL {
            let program = backend.servers().program;
            if !program.is_only_simulated() && !all.contains(&program) {
                all.push(program);
            }
        }
        all
    }

    /// Returns whether it runs in no container and on no machine.
    pub fn is_only_simulated(&self) -> bool {
        *self == memory::PROGRAM
    }

    /// Returns the service that is meant if somebody names this many of its servers and no service.
    pub fn usual_backend(&self, servers: usize) -> Option<Backend> {
        let on_it = || {
            Backend::ALL
                .iter()
                .filter(|it| it.servers().program == self)
        };
        let may_have = |most: Option<usize>| most.is_none_or(|most| servers <= most);
        let fits = on_it().find(|it| may_have(it.servers().at_most));
        fits.or_else(|| on_it().next()).copied()
    }

    /// Watches a server as an observer and sends what it held, for `locks.jsonl`.
    pub async fn observe(&self, watch: Watch<'_>) -> Result<(), LockError> {
        let layout = Layout::new(self.own_keys, watch.keys);
        self.observe_in(watch, layout).await
    }

    /// Does the same at a server of somebody else's, for keys that begin so. It only reads there.
    pub async fn observe_as_guest(&self, watch: Watch<'_>, prefix: &str) -> Result<(), LockError> {
        let layout = Layout::new(self.own_keys, watch.keys).within(prefix);
        self.observe_in(watch, layout).await
    }

    async fn observe_in(&self, watch: Watch<'_>, layout: Layout) -> Result<(), LockError> {
        let (node, keys) = (watch.node, layout.shown());
        let observed = (self.observe)(watch, layout).await;
        observed.map_err(|problem| LockError::new(self.name, node, keys, problem))
    }
}

/// The way in which the cost of a great many keys is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keyspace {
    Redis,
    Etcd,
}

/// Returns the one server that a backend needs.
fn only<'a>(backend: &'static str, servers: &'a [String]) -> Result<&'a str, LockError> {
    let [server] = servers else {
        let problem = format!("one server is needed, and {} are named", servers.len());
        let problem = LockProblem::BadServers(problem);
        return Err(LockError::new(backend, servers.join(","), "", problem));
    };
    Ok(server)
}

/// Opens the backend that these options name, at these servers (`host:port`).
///
/// Nothing is connected yet: a missing server shows when a lock is asked for.
///
/// Only the locks of a Redis and of an etcd, and those in memory, can be in simulated surroundings; the
/// others are always in the real ones.
pub fn open(options: &LockOptions, servers: &[String], defect: Option<Defect>, env: Env) -> Opened {
    (options.backend.service().open)(options, servers, defect, env)
}
