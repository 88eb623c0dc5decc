use super::redis_info::expired;
use redis::aio::MultiplexedConnection;
use redis::{InfoDict, RedisResult, pipe};

/// A walk over all keys, which reclaims the expired ones that it meets.
///
/// Redis counts all expired keys in one number, however they were found. But the server's own
/// cycle runs between commands and never within a transaction. So if the number grows between
/// two readings in one transaction with a SCAN, that SCAN reclaimed the keys.
#[derive(Debug, Default)]
pub(super) struct Scan {
    cursor: u64,
    pub(super) is_over: bool,
    /// Keys that it found expired and reclaimed.
    pub(super) reclaimed: u64,
    pub(super) found: u64,
}

const AT_ONCE: u64 = 1000;

impl Scan {
    pub(super) async fn step(&mut self, asking: &mut MultiplexedConnection) -> RedisResult<()> {
        let mut step = pipe();
        step.atomic();
        step.cmd("INFO").arg("stats");
        step.cmd("SCAN").arg(self.cursor).arg("COUNT").arg(AT_ONCE);
        step.cmd("INFO").arg("stats");
        let (before, (cursor, keys), after): (InfoDict, (u64, Vec<Vec<u8>>), InfoDict) =
            step.query_async(asking).await?;
        self.reclaimed += expired(&after)?.saturating_sub(expired(&before)?);
        self.found += keys.len() as u64;
        self.cursor = cursor;
        self.is_over = cursor == 0;
        Ok(())
    }
}
