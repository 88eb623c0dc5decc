use super::failure::Failure;
use super::record::{self, DynamoDbRecord};
use super::{DynamoDbBackend, Shared};
use crate::LockBackend;
use crate::ReleaseOutcome;
use serde_json::Value;

/// The effect of a conditional write.
enum Changed {
    Done,
    /// The condition was false, because of this item.
    Not {
        record: Option<DynamoDbRecord>,
        /// See [`Failure::Condition`].
        sent_before: bool,
    },
}

impl DynamoDbBackend {
    /// Frees what the owner holds. If no answer comes, it is sent again in the background.
    pub(super) async fn release_now(
        &self,
        key: &str,
        owner: &str,
    ) -> Result<ReleaseOutcome, Failure> {
        let api = &self.shared.api;
        let version = api.env().uuid().to_string();
        let request = record::release(api.table(), key, owner, &version);
        let released = self.release_by(key, &request, &version).await;
        if released.as_ref().is_err_and(Failure::may_have_happened) {
            let (this, key) = (self.clone(), key.to_owned());
            self.env().in_background(async move {
                let _unknown = this.release_by(&key, &request, &version).await;
            });
        }
        released
    }

    async fn release_by(
        &self,
        key: &str,
        request: &Value,
        version: &str,
    ) -> Result<ReleaseOutcome, Failure> {
        Ok(match self.change(key, request).await? {
            Changed::Done => ReleaseOutcome::Released,
            // A request that was sent again finds the effect of the first one.
            Changed::Not { record, .. }
                if record.as_ref().is_some_and(|it| it.version == version) =>
            {
                ReleaseOutcome::Released
            }
            // Or what others have done since, which does not show whose hold they found.
            Changed::Not {
                sent_before: true, ..
            } => ReleaseOutcome::Unknown,
            Changed::Not { record, .. } => match record.is_some_and(|it| it.hold.is_some()) {
                true => ReleaseOutcome::Superseded,
                false => ReleaseOutcome::Expired,
            },
        })
    }

    /// Undoes what a try of the owner left or may leave, if there was one.
    pub(super) async fn undo(&self, key: &str, owner: &str) -> Result<(), Failure> {
        let Shared { api, leftovers, .. } = &*self.shared;
        let Some(leftover) = leftovers.of(owner) else {
            return Ok(());
        };
        let version = api.env().uuid().to_string();
        let seen = &leftover.asked_on;
        let request = record::undo(api.table(), key, seen, owner, &version);
        let undone = self.change(key, &request).await;
        // Not earlier: a caller that drops this future before tries again.
        leftovers.forget(owner);
        // If the condition was false, the item is neither ours nor as the try demands.
        undone.map(drop)
    }

    /// Changes the item if its condition is true. Either way the item is noted, and if the lock
    /// is free now, a waiter of this process learns of it.
    async fn change(&self, key: &str, request: &Value) -> Result<Changed, Failure> {
        let Shared {
            api,
            watched,
            wakes,
            ..
        } = &*self.shared;
        let (record, changed) = match api.insist("UpdateItem", || request.clone(), None).await {
            Ok(answer) => (DynamoDbRecord::read(&answer["Attributes"])?, Changed::Done),
            Err(Failure::Condition { item, sent_before }) => {
                let record = self.now(key, item).await?;
                let not = Changed::Not {
                    record: record.clone(),
                    sent_before,
                };
                (record, not)
            }
            Err(failure) => return Err(failure),
        };
        let is_free = record.as_ref().is_some_and(|record| record.hold.is_none());
        watched.note(key, record);
        if is_free {
            wakes.told(key, "");
        }
        Ok(changed)
    }
}
