use crate::load::generate::said;
use redis::aio::MultiplexedConnection;
use redis::{InfoDict, RedisResult, pipe};

/// The state that a Redis reports at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RedisInfo {
    pub(super) used_memory: u64,
    pub(super) used_memory_rss: u64,
    /// All keys of the database, including expired ones.
    pub(super) keys: u64,
    pub(super) expired: u64,
    /// The server's estimate of the share of expired keys among all with a TTL.
    pub(super) stale_share: f64,
    pub(super) expire_cpu_ms: u64,
    pub(super) time_cap_reached: u64,
    pub(super) evicted: u64,
}

pub(super) async fn look(asking: &mut MultiplexedConnection) -> RedisResult<RedisInfo> {
    let mut asked = pipe();
    asked.cmd("INFO").arg("memory");
    asked.cmd("INFO").arg("stats");
    asked.cmd("DBSIZE");
    let (memory, stats, keys): (InfoDict, InfoDict, u64) = asked.query_async(asking).await?;
    let stale_percent: f64 = said(&stats, "expired_stale_perc")?;
    Ok(RedisInfo {
        used_memory: said(&memory, "used_memory")?,
        used_memory_rss: said(&memory, "used_memory_rss")?,
        keys,
        expired: expired(&stats)?,
        stale_share: stale_percent / 100.0,
        expire_cpu_ms: said(&stats, "expire_cycle_cpu_milliseconds")?,
        time_cap_reached: said(&stats, "expired_time_cap_reached_count")?,
        evicted: said(&stats, "evicted_keys")?,
    })
}

/// Returns the number of keys that expired and were reclaimed, in whichever way.
pub(super) fn expired(stats: &InfoDict) -> RedisResult<u64> {
    said(stats, "expired_keys")
}
