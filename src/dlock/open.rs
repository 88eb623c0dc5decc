use super::{
    EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockBackend, LockError, LockProblem,
    RedisBackend, RedisSettings,
};
use crate::model::{Backend, LockOptions};
use std::sync::Arc;

/// The backend that these options name, at these servers (`host:port`).
///
/// Nothing is connected yet: a server that is not there shows when a lock is
/// asked for.
pub fn open(options: &LockOptions, servers: &[String]) -> Result<Arc<dyn LockBackend>, LockError> {
    match options.backend {
        Backend::Redis => {
            let server = only_server(servers)?;
            let settings = RedisSettings {
                wait: options.wait,
                fence_floor: options.fence_floor,
                ..RedisSettings::default()
            };
            Ok(Arc::new(RedisBackend::new(server, settings)?))
        }
        Backend::Redlock | Backend::RedlockUnsafeTokens => todo!("redlock"),
        Backend::Etcd => {
            let settings = EtcdSettings::default();
            Ok(Arc::new(EtcdBackend::new(servers, settings)?))
        }
        Backend::EtcdLockApi => {
            let settings = EtcdSettings::default();
            Ok(Arc::new(EtcdLockApiBackend::new(servers, settings)?))
        }
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
