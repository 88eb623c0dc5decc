use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// With etcd's own heartbeats and elections.
const SHORTEST_ETCD_LEASE: Duration = Duration::from_secs(2);

/// Whether the resource compares tokens. Off is the unsafe baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fence {
    On,
    Off,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fence::On => "on",
            Fence::Off => "off",
        })
    }
}

impl Fence {
    pub const ALL: [Fence; 2] = [Fence::On, Fence::Off];
}

/// What a worker does once it knows that its lease is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLost {
    /// Write nothing more in this round: what users should do.
    #[default]
    Stop,
    /// Go on as if nothing had happened.
    Ignore,
}

impl OnLost {
    pub const ALL: [OnLost; 2] = [OnLost::Stop, OnLost::Ignore];
}

impl fmt::Display for OnLost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnLost::Stop => "stop",
            OnLost::Ignore => "ignore",
        })
    }
}

/// The lock that workers use: which service, and how they wait for it and give
/// it back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockOptions {
    pub backend: Backend,
    pub wait: WaitPolicy,
    pub release: ReleaseStyle,
    pub fence_floor: FenceFloor,
}

impl LockOptions {
    /// What does not go together, in words, with the word that is wrong.
    pub fn conflict(&self) -> Option<(&'static str, String)> {
        let backend = self.backend;
        if self.wait != WaitPolicy::default() && backend != Backend::Redis {
            let reason = format!("`wait` is a choice of the redis backend; {backend} has one way");
            return Some(("wait", reason));
        }
        if self.release != ReleaseStyle::default() && backend != Backend::Redis {
            let reason = format!("only the redis backend has an unsafe release, not {backend}");
            return Some(("release", reason));
        }
        if self.release != ReleaseStyle::default() && self.wait == WaitPolicy::Queue {
            let reason = "a release that only deletes hands over to nobody: use `wait: spin`";
            return Some(("release", reason.to_owned()));
        }
        if self.fence_floor != FenceFloor::default() && backend != Backend::Redis {
            let reason =
                format!("`fence_floor` is a choice of the redis backend, not of {backend}");
            return Some(("fence_floor", reason));
        }
        None
    }
}

/// Which lock service guards the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backend {
    /// One Redis.
    #[default]
    Redis,
    /// A majority of independent Redis nodes, with tokens that only grow.
    Redlock,
    /// The same with the highest of the nodes' own counters as the token, which
    /// runs backwards even without any fault.
    RedlockUnsafeTokens,
    /// A lease and a queue in the order of revisions.
    Etcd,
    /// The lock that the etcd server itself offers.
    EtcdLockApi,
}

impl Backend {
    pub const ALL: [Backend; 5] = [
        Backend::Redis,
        Backend::Redlock,
        Backend::RedlockUnsafeTokens,
        Backend::Etcd,
        Backend::EtcdLockApi,
    ];

    pub fn servers(self) -> LockServers {
        match self {
            Backend::Redis => LockServers::OneRedis,
            Backend::Redlock | Backend::RedlockUnsafeTokens => LockServers::RedisNodes,
            Backend::Etcd | Backend::EtcdLockApi => LockServers::Etcd,
        }
    }

    /// Why a lock of this backend cannot have this TTL, in words.
    pub fn ttl_conflict(self, ttl: Duration) -> Option<&'static str> {
        let counted_otherwise = ttl < SHORTEST_ETCD_LEASE || ttl.subsec_nanos() > 0;
        // The cluster would grant more than was counted on.
        (self.servers() == LockServers::Etcd && counted_otherwise)
            .then_some("etcd counts leases in whole seconds, and grants at least 2s")
    }

    /// The one of these that speaks to this backend's kind of servers; the first
    /// where none does.
    pub fn choose<T>(self, from: &[T], speaks: impl Fn(&T) -> Option<Backend>) -> Option<&T> {
        let fits = |one: &&T| speaks(one).map(Backend::servers) == Some(self.servers());
        from.iter().find(fits).or(from.first())
    }
}

/// The servers that a backend talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockServers {
    OneRedis,
    RedisNodes,
    Etcd,
}

impl fmt::Display for LockServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockServers::OneRedis => "one Redis",
            LockServers::RedisNodes => "several independent Redis nodes",
            LockServers::Etcd => "an etcd cluster",
        })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Redis => "redis",
            Backend::Redlock => "redlock",
            Backend::RedlockUnsafeTokens => "redlock-unsafe-tokens",
            Backend::Etcd => "etcd",
            Backend::EtcdLockApi => "etcd-lock-api",
        })
    }
}

/// How somebody waits for a lock on one Redis that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WaitPolicy {
    /// Sleep a random while and try again: the unfair baseline.
    #[default]
    Spin,
    /// Sleep until the release is announced, and try again with all the others.
    Notify,
    /// Stand in a line at the server, which hands the lock to exactly one.
    Queue,
}

impl WaitPolicy {
    pub const ALL: [WaitPolicy; 3] = [WaitPolicy::Spin, WaitPolicy::Notify, WaitPolicy::Queue];
}

impl fmt::Display for WaitPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WaitPolicy::Spin => "spin",
            WaitPolicy::Notify => "notify",
            WaitPolicy::Queue => "queue",
        })
    }
}

/// How a holder gives a lock back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReleaseStyle {
    /// In one step at the server: nothing but one's own lock can be deleted.
    #[default]
    CompareAndDelete,
    /// In two steps, between which the lock may have become somebody else's.
    UnsafeGetThenDel,
}

impl ReleaseStyle {
    pub const ALL: [ReleaseStyle; 2] = [
        ReleaseStyle::CompareAndDelete,
        ReleaseStyle::UnsafeGetThenDel,
    ];
}

impl fmt::Display for ReleaseStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReleaseStyle::CompareAndDelete => "compare-and-delete",
            ReleaseStyle::UnsafeGetThenDel => "unsafe-get-then-del",
        })
    }
}

/// What the next token is at least, besides one more than the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FenceFloor {
    /// Nothing: a counter that was forgotten starts again at 1.
    #[default]
    None,
    /// The server's clock in microseconds: tokens go on growing after the
    /// counter was forgotten, as long as that clock does not run backwards.
    ServerClock,
}

impl FenceFloor {
    pub const ALL: [FenceFloor; 2] = [FenceFloor::None, FenceFloor::ServerClock];

    /// As files and scripts call it.
    pub fn word(self) -> &'static str {
        match self {
            FenceFloor::None => "none",
            FenceFloor::ServerClock => "server-clock",
        }
    }
}

impl fmt::Display for FenceFloor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// Reads one of a few words, as its `Display` writes it.
fn one_of<T: Copy + fmt::Display>(text: &str, all: &[T]) -> Result<T, String> {
    let found = all.iter().find(|one| one.to_string() == text);
    found.copied().ok_or_else(|| {
        let words: Vec<String> = all.iter().map(T::to_string).collect();
        format!("not one of: {}", words.join(", "))
    })
}

macro_rules! read_from_its_words {
    ($($kind:ident),*) => {$(
        impl FromStr for $kind {
            type Err = String;
            fn from_str(text: &str) -> Result<$kind, String> {
                one_of(text, &$kind::ALL)
            }
        }
    )*};
}

read_from_its_words!(Fence, OnLost, Backend, WaitPolicy, ReleaseStyle, FenceFloor);
