//! A great many keys on real servers: the same ones from the same seed, resumed after a
//! kill, and gone at the end.

mod generating;
mod keyspace;
mod mishaps;

use crate::support::connection_to;
use redis::cmd;

async fn database_size(address: &str) -> u64 {
    let mut redis = connection_to(address).await;
    cmd("DBSIZE").query_async(&mut redis).await.unwrap()
}

async fn configure(address: &str, name: &str, value: &str) {
    let mut redis = connection_to(address).await;
    let mut set = cmd("CONFIG");
    set.arg("SET").arg(name).arg(value);
    set.query_async::<()>(&mut redis).await.unwrap();
}

/// What the server has, and hardly more.
async fn leave_no_memory(address: &str, more_bytes: u64) {
    let mut redis = connection_to(address).await;
    let memory: redis::InfoDict = cmd("INFO")
        .arg("memory")
        .query_async(&mut redis)
        .await
        .unwrap();
    let used: u64 = memory.get("used_memory").unwrap();
    configure(address, "maxmemory", &(used + more_bytes).to_string()).await;
}
