//! Locks in a table of DynamoDB, or of a server that speaks its protocol.
//!
//! There is no TLS yet, and nothing of AWS's own libraries: they would be most of a build.

mod api;
mod failure;
mod line;
mod record;
mod settings;
mod sigv4;
mod undo;
mod watched;

#[cfg(feature = "servers")]
pub use api::DynamoDbApi;
#[cfg(feature = "servers")]
pub use record::{DynamoDbHold, DynamoDbRecord, new_table};
pub use settings::{AwsCredentials, DynamoDbSettings};
#[cfg(feature = "servers")]
pub use sigv4::{Scope as SignatureScope, hmac as hmac_sha256, timestamp as aws_timestamp};

#[cfg(not(feature = "servers"))]
use api::DynamoDbApi;
#[cfg(not(feature = "servers"))]
use record::DynamoDbRecord;

use crate::leftovers::{Leftovers, Request};
use crate::wakes::Wakes;
use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LockBackend, LockError, ReleaseOutcome, RenewOutcome,
    Term, WaitLine,
};
use async_trait::async_trait;
use failure::Failure;
use prometheus_client::metrics::counter::Counter;
use record::Seen;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use watched::{Outlook, Watched};

/// A lock that is an item of a table in DynamoDB.
///
/// One conditional write grants it and increments its fence, which is never deleted. The
/// server has no leases: whoever wants the lock watches the version of its item, and takes
/// over a hold whose version did not change for the whole lease. So no clock of a server
/// matters, and no wall clock: only how fast the monotonic clocks of the clients run.
#[derive(Clone)]
pub struct DynamoDbBackend {
    shared: Arc<Shared>,
}

struct Shared {
    api: DynamoDbApi,
    watched: Watched,
    /// The tries that may be carried out later, with what each of them demands.
    leftovers: Leftovers<Seen>,
    /// Wakes waiters of this process for what it has freed itself.
    wakes: Arc<Wakes>,
}

const NAME: &str = "dynamodb";
/// A try begins with what was seen last. If that is old, the answer says what is there now.
const TRIES_MAX: u32 = 3;

impl DynamoDbBackend {
    /// Takes `host:port` or `http://host:port`. It does not connect before the first use, so
    /// an unreachable server is not an error here.
    pub fn new(address: &str, settings: DynamoDbSettings) -> Result<DynamoDbBackend, LockError> {
        DynamoDbBackend::with_env(address, settings, Env::default())
    }

    /// Does the same in surroundings that somebody plays.
    pub fn with_env(
        address: &str,
        settings: DynamoDbSettings,
        env: Env,
    ) -> Result<DynamoDbBackend, LockError> {
        let api = DynamoDbApi::new(address, settings, env);
        let api = api.map_err(|problem| {
            LockError::new(NAME, crate::without_password(address), "", problem)
        })?;
        let shared = Arc::new(Shared {
            api,
            watched: Watched::default(),
            leftovers: Leftovers::default(),
            wakes: Arc::default(),
        });
        Ok(DynamoDbBackend { shared })
    }

    /// Tries until the answer is not that the item had changed since it was seen.
    async fn try_now(&self, ask: Ask<'_>) -> Result<Attempt, Failure> {
        let watched = &self.shared.watched;
        let mut retry_in = Duration::ZERO;
        for _try in 0..TRIES_MAX {
            if let Outlook::Held { .. } = watched.outlook(ask.key) {
                let record = self.look(ask.key).await?;
                watched.note(ask.key, record);
            }
            match watched.outlook(ask.key) {
                Outlook::Open(seen) => {
                    if let Some(grant) = self.try_at(ask, seen).await? {
                        return Ok(Attempt::Granted(grant));
                    }
                }
                Outlook::Held { until } => {
                    retry_in = until.saturating_duration_since(Instant::now());
                    break;
                }
            }
        }
        Ok(Attempt::Busy { retry_in })
    }

    /// Tries on the condition that the item is still as it was seen. Returns `None` if it is
    /// not.
    async fn try_at(&self, ask: Ask<'_>, seen: Seen) -> Result<Option<Grant>, Failure> {
        let Shared { api, watched, .. } = &*self.shared;
        let version = api.env().uuid().to_string();
        let request = record::grant(api.table(), ask.key, &seen, ask.owner, &version, ask.ttl);
        let leftovers = &self.shared.leftovers;
        let asked = leftovers.asked(ask.owner, &Arc::new(seen), Request::Try);
        // The lease counts from before the request was sent for the first time. Nobody else
        // begins to watch its version before that.
        let asked_at = Instant::now();
        let until = asked_at + ask.ttl;
        let record = match api
            .insist("UpdateItem", || request.clone(), Some(until))
            .await
        {
            Ok(answer) => DynamoDbRecord::read(&answer["Attributes"])?,
            Err(Failure::Condition { item, .. }) => self.now(ask.key, item).await?,
            Err(failure) => {
                if !failure.may_have_happened() {
                    asked.settle();
                }
                return Err(failure);
            }
        };
        watched.note(ask.key, record.clone());
        // A request that was sent again finds the effect of the first one.
        let Some(record) = record.filter(|record| record.owner() == Some(ask.owner)) else {
            asked.settle();
            return Ok(None);
        };
        let token = FencingToken(record.fence);
        let grant = Grant::new(token, asked_at, ask.ttl, Term::Until(until))?;
        asked.settle();
        Ok(Some(grant))
    }

    /// Returns the item that made a condition false. A server that does not say it with its
    /// answer is asked.
    async fn now(&self, key: &str, item: Option<Value>) -> Result<Option<DynamoDbRecord>, Failure> {
        match item {
            Some(item) => Ok(DynamoDbRecord::read(&item)?),
            None => self.look(key).await,
        }
    }

    /// Reads the item as it is after every write that was answered.
    async fn look(&self, key: &str) -> Result<Option<DynamoDbRecord>, Failure> {
        let api = &self.shared.api;
        let request = record::look(api.table(), key);
        let answer = api.insist("GetItem", || request.clone(), None).await?;
        Ok(DynamoDbRecord::read(&answer["Item"])?)
    }

    async fn renew_now(&self, ask: Ask<'_>) -> Result<RenewOutcome, Failure> {
        let Shared { api, watched, .. } = &*self.shared;
        // Each send has a version of its own. One that comes late would bring back a version
        // that a watcher has seen, and the watcher would take the holder for dead.
        let request = || {
            let version = api.env().uuid().to_string();
            record::renew(api.table(), ask.key, ask.owner, &version, ask.ttl)
        };
        let until = Instant::now() + ask.ttl;
        let (outcome, record) = match api.insist("UpdateItem", request, Some(until)).await {
            Ok(answer) => {
                let record = DynamoDbRecord::read(&answer["Attributes"])?;
                (RenewOutcome::Renewed { until }, record)
            }
            Err(Failure::Condition { item, .. }) => {
                let record = self.now(ask.key, item).await?;
                match record.as_ref().and_then(DynamoDbRecord::owner) {
                    None => (RenewOutcome::Expired, record),
                    Some(_) => (RenewOutcome::Superseded, record),
                }
            }
            Err(failure) => return Err(failure),
        };
        watched.note(ask.key, record);
        Ok(outcome)
    }
}

#[async_trait]
impl LockBackend for DynamoDbBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        self.shared.api.node()
    }

    fn requests(&self) -> Counter {
        self.shared.api.requests()
    }

    fn env(&self) -> &Env {
        self.shared.api.env()
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.try_now(ask).await;
        attempt.map_err(|failure| self.error(ask.key, failure.into()))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let renewed = self.renew_now(ask).await;
        renewed.map_err(|failure| self.error(ask.key, failure.into()))
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let released = self.release_now(key, owner).await;
        released.map_err(|failure| self.error(key, failure.into()))
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let undone = self.undo(key, owner).await;
        undone.map_err(|failure| self.error(key, failure.into()))
    }
}
