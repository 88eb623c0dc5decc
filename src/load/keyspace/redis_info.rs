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
    let number = |dict: &InfoDict, name: &str| dict.get::<u64>(name).unwrap_or_default();
    let stale_percent: f64 = stats.get("expired_stale_perc").unwrap_or_default();
    Ok(Seen {
        used_memory: number(&memory, "used_memory"),
        used_memory_rss: number(&memory, "used_memory_rss"),
        keys,
        expired: expired(&stats),
        stale_share: stale_percent / 100.0,
        expire_cpu_ms: number(&stats, "expire_cycle_cpu_milliseconds"),
        time_cap_reached: number(&stats, "expired_time_cap_reached_count"),
        evicted: number(&stats, "evicted_keys"),
    })
}

/// Keys that ran out and were reclaimed, in whichever way.
pub(super) fn expired(stats: &InfoDict) -> u64 {
    stats.get("expired_keys").unwrap_or_default()
}
