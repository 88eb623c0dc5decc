use crate::load::generate::said;
use redis::aio::MultiplexedConnection;
use redis::{InfoDict, RedisResult, pipe};

/// What a Redis says about itself at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    pub(super) used_memory: u64,
    pub(super) used_memory_rss: u64,
    /// Keys of the database, dead ones included.
    pub(super) keys: u64,
    pub(super) expired: u64,
    /// What the server thinks is dead and still there, of all with a TTL.
    pub(super) stale_share: f64,
    pub(super) expire_cpu_ms: u64,
    pub(super) time_cap_reached: u64,
    pub(super) evicted: u64,
}

pub(super) async fn look(asking: &mut MultiplexedConnection) -> RedisResult<Seen> {
    let mut asked = pipe();
    asked.cmd("INFO").arg("memory");
    asked.cmd("INFO").arg("stats");
    asked.cmd("DBSIZE");
    let (memory, stats, keys): (InfoDict, InfoDict, u64) = asked.query_async(asking).await?;
    let stale_percent: f64 = said(&stats, "expired_stale_perc")?;
    Ok(Seen {
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

/// Keys that ran out and were reclaimed, in whichever way.
pub(super) fn expired(stats: &InfoDict) -> RedisResult<u64> {
    said(stats, "expired_keys")
}
