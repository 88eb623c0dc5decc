#[cfg(debug_assertions)]
use super::Mutant;
use super::{
    EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockBackend, LockError, LockProblem,
    RedisBackend, RedisSettings, RedlockBackend, RedlockSettings, TokenScheme,
};
use crate::model::{Backend, LockOptions};
use std::sync::Arc;

/// The backend that these options name, at these servers (`host:port`).
///
/// Nothing is connected yet: a server that is not there shows when a lock is
/// asked for.
pub fn open(options: &LockOptions, servers: &[String]) -> Result<Arc<dyn LockBackend>, LockError> {
    let (redis, redlock) = (RedisSettings::default(), RedlockSettings::default());
    open_with(options, servers, redis, redlock, EtcdSettings::default())
}

/// The same with a mistake made on purpose.
#[cfg(debug_assertions)]
pub fn open_misbehaving(
    options: &LockOptions,
    servers: &[String],
    mutant: Mutant,
) -> Result<Arc<dyn LockBackend>, LockError> {
    let mutant = Some(mutant);
    let redis = RedisSettings {
        mutant,
        ..RedisSettings::default()
    };
    let redlock = RedlockSettings {
        mutant,
        ..RedlockSettings::default()
    };
    let etcd = EtcdSettings {
        mutant,
        ..EtcdSettings::default()
    };
    open_with(options, servers, redis, redlock, etcd)
}

fn open_with(
    options: &LockOptions,
    servers: &[String],
    redis: RedisSettings,
    redlock: RedlockSettings,
    etcd: EtcdSettings,
) -> Result<Arc<dyn LockBackend>, LockError> {
    let redlock = |tokens| {
        let settings = RedlockSettings { tokens, ..redlock };
        RedlockBackend::new(servers, settings)
    };
    match options.backend {
        Backend::Redis => {
            let server = only_server(servers)?;
            let settings = RedisSettings {
                wait: options.wait,
                fence_floor: options.fence_floor,
                ..redis
            };
            Ok(Arc::new(RedisBackend::new(server, settings)?))
        }
        Backend::Redlock => Ok(Arc::new(redlock(TokenScheme::Strict)?)),
        Backend::RedlockUnsafeTokens => Ok(Arc::new(redlock(TokenScheme::UnsafeMaxOfCounters)?)),
        Backend::Etcd => Ok(Arc::new(EtcdBackend::new(servers, etcd)?)),
        Backend::EtcdLockApi => Ok(Arc::new(EtcdLockApiBackend::new(servers, etcd)?)),
    }
}

fn only_server(servers: &[String]) -> Result<&str, LockError> {
    match servers {
        [server] => Ok(server),
        _ => {
            let problem = format!("one server is needed, and {} are named", servers.len());
            Err(LockError {
                backend: "redis",
                node: servers.join(","),
                key: String::new(),
                problem: LockProblem::BadServers(problem),
            })
        }
    }
}
