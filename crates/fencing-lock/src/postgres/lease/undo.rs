use super::{PostgresLeaseBackend, PostgresLink, read, text};
use crate::leftovers::Request;
use crate::{LockProblem, ReleaseOutcome};
use std::sync::Arc;

/// A release changes nothing if the owner holds nothing, so it can be sent more than once.
const RELEASE: &str = include_str!("release.sql");
const LEAVE: &str = include_str!("leave.sql");

impl PostgresLeaseBackend {
    /// Releases what the owner holds. If the answer does not come, it is sent again.
    pub(super) async fn release_once(
        &self,
        key: &str,
        owner: &str,
    ) -> Result<ReleaseOutcome, LockProblem> {
        let leftovers = &self.link.leftovers;
        let open = self.link.open().await?;
        let asked = leftovers.asked(owner, &open, Request::Release);
        let parameters = [text(&key), text(&owner)];
        let answer = self.link.run_on(&open, RELEASE, &parameters).await;
        if let Err(LockProblem::NoAnswer(_) | LockProblem::BadAnswer(_)) = answer {
            drop(asked);
            let (link, key, owner) = (self.link.clone(), key.to_owned(), owner.to_owned());
            self.link.env().in_background(async move {
                let _unknown = undo(&link, &key, &owner).await;
            });
        } else {
            asked.settle();
            leftovers.forget(owner);
        }
        match read::<i32>(answer?.first())? {
            1 => Ok(ReleaseOutcome::Released),
            0 => Ok(ReleaseOutcome::Expired),
            -1 => Ok(ReleaseOutcome::Superseded),
            other => Err(LockProblem::BadAnswer(other.to_string())),
        }
    }
}

/// Undoes what a request of the owner left or may leave, if there was one.
///
/// Sends the release behind the request, on the same connection, even if that was given up:
/// what was sent there is still carried out when the server reads it. If no answer comes,
/// the release is sent on another connection too, and may come before the request. So it
/// leaves a mark that makes the request refuse itself.
pub(super) async fn undo(link: &PostgresLink, key: &str, owner: &str) -> Result<(), LockProblem> {
    let Some(leftover) = link.leftovers.of(owner) else {
        return Ok(());
    };
    let parameters = [text(&key), text(&owner)];
    let behind = link.run_on(&leftover.asked_on, RELEASE, &parameters);
    let mut answer = behind.await;
    if let Err(LockProblem::NoAnswer(_)) = answer {
        // A server that finds its client gone reads no more of what came from it.
        link.env()
            .in_background(leftover.asked_on.clone().stay_open());
        let other = link.open().await;
        if let Some(other) = other
            .ok()
            .filter(|other| !Arc::ptr_eq(other, &leftover.asked_on))
        {
            let statement = match leftover.request {
                Request::Try => LEAVE,
                Request::Release => RELEASE,
            };
            answer = link.run_on(&other, statement, &parameters).await;
        }
    }
    // Not earlier: a caller that drops this future before tries again.
    link.leftovers.forget(owner);
    answer.map(drop)
}
