#![doc = include_str!("../README.md")]
//!
//! | | |
//! |---|---|
//! | [`LockClient`] | waiting, deadlines, cancelling, cleaning up |
//! | [`Lease`] | one grant: its token, how long to believe in it, renewal, release |
//! | [`keep_renewed`] | the watchdog, beside the work for as long as it is polled |
//! | [`ReentrantLocks`] | one owner takes its lock again |
//! | [`LockMetrics`] | what one process did with its locks, for Prometheus |
//! | [`LockBackend`], [`WaitLine`] | the seam: what a new kind of lock server has to answer |
//! | [`Env`], [`World`] | the other seam: clock, chance, tasks and connections, for a simulation |

mod address;
mod backend;
mod belief;
#[cfg(any(feature = "postgres", all(feature = "redis", feature = "servers")))]
mod bounded;
mod client;
#[cfg(feature = "consul")]
mod consul;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod env;
mod error;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(any(
    feature = "consul",
    feature = "etcd",
    feature = "redis",
    feature = "zookeeper"
))]
mod follow_through;
mod held;
#[cfg(any(feature = "consul", feature = "dynamodb"))]
mod http;
mod in_flight;
mod last_word;
mod lease;
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
mod leftovers;
#[cfg(feature = "mariadb")]
mod mariadb;
#[cfg(feature = "memory")]
mod memory;
mod metrics;
#[cfg(all(debug_assertions, feature = "mutants"))]
mod mutant;
#[cfg(all(feature = "redlock", feature = "unsafe-modes"))]
mod naive_majority;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod patience;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redlock")]
mod redlock;
mod reentrant;
mod requests;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
mod sessions;
#[cfg(any(
    feature = "etcd",
    feature = "mariadb",
    feature = "postgres",
    feature = "zookeeper"
))]
mod shared_belief;
#[cfg(feature = "backend")]
mod task;
mod wait;
#[cfg(any(feature = "dynamodb", feature = "postgres", feature = "redis"))]
mod wakes;
mod watchdog;
#[cfg(feature = "zookeeper")]
mod zookeeper;

#[cfg(feature = "consul")]
pub use self::consul::{ConsulBackend, ConsulSettings};
#[cfg(feature = "dynamodb")]
pub use self::dynamodb::{AwsCredentials, DynamoDbBackend, DynamoDbSettings};
#[cfg(feature = "etcd")]
pub use self::etcd::{EtcdBackend, EtcdLockApiBackend, EtcdSettings};
#[cfg(feature = "mariadb")]
pub use self::mariadb::{MariadbBackend, MariadbSettings};
#[cfg(feature = "postgres")]
pub use self::postgres::{PostgresAdvisoryBackend, PostgresLeaseBackend, PostgresSettings};
#[cfg(feature = "redis")]
pub use self::redis::{
    CohortSettings, FenceFloor, RedisBackend, RedisSettings, ShardedRedisBackend, WaitPolicy,
};
pub use address::without_password;
#[cfg(feature = "unsafe-modes")]
pub use backend::UnsafeRelease;
pub use backend::{Ask, Attempt, Grant, LockBackend, ReleaseOutcome, RenewOutcome, Term, WaitLine};
pub use belief::{Belief, LostReason};
pub use client::{LockClient, LockSettings, MAX_KEY_BYTES, MAX_TTL};
#[cfg(feature = "dials")]
pub use env::Dialed;
pub use env::{ByteStream, Env, World};
pub use error::{LockError, LockProblem};
pub use fencing_token::FencingToken;
pub use held::HeldLeases;
pub use last_word::LastWord;
pub use lease::{Lease, RenewError};
#[cfg(feature = "memory")]
pub use memory::MemoryBackend;
pub use metrics::LockMetrics;
#[cfg(all(debug_assertions, feature = "mutants"))]
pub use mutant::Mutant;
#[cfg(all(feature = "redlock", feature = "unsafe-modes"))]
pub use naive_majority::NaiveMajority;
#[cfg(feature = "redlock")]
pub use redlock::{RedlockBackend, RedlockSettings, TokenScheme};
pub use reentrant::{Hold, ReentrantLocks, Released};
pub use requests::Requests;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
pub use sessions::SessionBackend;
pub use watchdog::keep_renewed;
#[cfg(feature = "zookeeper")]
pub use zookeeper::{ZookeeperBackend, ZookeeperSettings};

/// Connections to the servers and the names of their keys, for code that watches or fills
/// the servers without the locks.
#[cfg(feature = "servers")]
pub mod servers {
    #[cfg(feature = "consul")]
    pub use super::consul::{
        Agent as ConsulAgent, Entry as ConsulEntry, lock_of as lock_of_consul_key,
    };
    #[cfg(feature = "dynamodb")]
    pub use super::dynamodb::{
        DynamoDbApi, DynamoDbHold, DynamoDbRecord, SignatureScope, aws_timestamp, hmac_sha256,
        new_table as new_dynamodb_table,
    };
    #[cfg(feature = "etcd")]
    pub use super::etcd::{
        Failure as EtcdFailure, Wire as EtcdWire, check_address as check_etcd_address,
        line_prefix as etcd_line_prefix, lock_of as lock_of_etcd_place, wire as etcd_wire,
        wire_in as etcd_wire_in,
    };
    #[cfg(feature = "mariadb")]
    pub use super::mariadb::{
        CREATE as CREATE_MARIADB_TOKENS, MariadbConnection, connect as connect_mariadb,
        problem_of as mariadb_problem,
    };
    #[cfg(feature = "memory")]
    pub use super::memory::MemoryServer;
    #[cfg(feature = "postgres")]
    pub use super::postgres::{
        CREATE_LEASES as CREATE_POSTGRES_LEASES, PostgresConnection,
        check_schema as check_postgres_schema, connect as connect_postgres,
        problem_of as postgres_problem,
    };
    #[cfg(feature = "redis")]
    pub use super::redis::{
        Lua, bounded as bounded_redis, client as redis_client,
        connect_problem_of as redis_connect_problem, fence_key as redis_fence_key,
        lock_key as redis_lock_key, lock_of as lock_of_redis_name, problem_of as redis_problem,
    };
    #[cfg(feature = "zookeeper")]
    pub use super::zookeeper::{
        LOCKS as ZOOKEEPER_LOCKS, SESSIONS as ZOOKEEPER_SESSIONS,
        check_address as check_zookeeper_address, lock_and_place as lock_and_place_of_zookeeper,
        owner_and_number as owner_of_zookeeper_place,
    };
    #[cfg(feature = "memory")]
    pub use memory_lock_server::{Answer as MemoryAnswer, Request as MemoryRequest};
}
