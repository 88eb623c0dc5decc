use super::RedisBackend;
use super::keys::lock_key;
use crate::ReleaseOutcome;
use crate::{LockBackend, LockError, UnsafeRelease};
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use redis::cmd;

#[async_trait]
impl UnsafeRelease for RedisBackend {
    async fn get_then_del(
        &self,
        key: &str,
        owner: &str,
        between: BoxFuture<'_, ()>,
    ) -> Result<ReleaseOutcome, LockError> {
        let name = lock_key(key);
        let error = |problem| self.error(key, problem);
        let holder: Option<String> = self
            .link
            .query(cmd("GET").arg(&name))
            .await
            .map_err(error)?;
        match holder {
            None => return Ok(ReleaseOutcome::Expired),
            Some(holder) if holder != owner => return Ok(ReleaseOutcome::Superseded),
            Some(_) => between.await,
        }
        // GETDEL is a DEL that also returns what it deleted: the mistake is the same, and
        // the outcome can be reported as it was.
        let deleted: Option<String> = self
            .link
            .query(cmd("GETDEL").arg(&name))
            .await
            .map_err(error)?;
        Ok(match deleted {
            None => ReleaseOutcome::Expired,
            Some(deleted) if deleted == owner => ReleaseOutcome::Released,
            Some(_another) => ReleaseOutcome::FreedAnother,
        })
    }
}
