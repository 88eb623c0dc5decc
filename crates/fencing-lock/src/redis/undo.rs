use super::Lua;
use super::keys::gone_key;
use super::link::{Open, RedisLink};
use super::lua;
use super::reply::Reply;
use crate::LockProblem;
use crate::follow_through::FollowThrough;
use crate::leftovers::{Leftover, Request};
use prometheus_client::metrics::counter::Counter;
use redis::RedisError;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// After this time, a waiter has found out in another way that it inherited a lock.
const PASSED_ON_WITHIN: Duration = Duration::from_secs(10);

/// A release, as a script that changes nothing if the owner holds nothing. So it can be
/// sent more than once.
pub(crate) struct Release {
    pub(crate) script: Lua,
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) keys: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) heir: Heir,
}

/// Whether the script can hand the lock to a waiter on the connection of the release.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heir {
    /// No, or the server sends a message to every waiter.
    IsTold,
    /// Yes: given the channel of that connection as one more argument, the script answers
    /// who it is, and with which token, instead of a message.
    MayBeHere,
}

impl RedisLink {
    /// Runs a script that can grant the lock to this owner, and leaves nothing if it
    /// answers anything else.
    #[cfg(feature = "redlock")]
    pub(crate) async fn run_try(
        &self,
        owner: &str,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<Reply, LockProblem> {
        let open = self.open().await?;
        let asked = self.leftovers.asked(owner, &open, Request::Try);
        let answer = self.run_on(&open, script, keys, arguments).await?;
        asked.settle();
        Ok(answer)
    }

    /// Returns whether a request of the owner left something that has to be undone.
    #[cfg(feature = "redlock")]
    pub(crate) fn has_left(&self, owner: &str) -> bool {
        self.leftovers.of(owner).is_some()
    }

    /// Releases what the owner holds.
    ///
    /// If the answer does not come, the whole script is sent behind the request, because
    /// it may have been called by a hash that the server does not know; and on another
    /// connection, if this one broke.
    pub(crate) async fn release(
        self: &Arc<Self>,
        release: Arc<Release>,
    ) -> Result<Reply, LockProblem> {
        let leftover = self.leftovers.of(&release.owner);
        let open = match leftover {
            Some(leftover) if leftover.asked_on.is_given_up() => {
                return self.undo(leftover, &release).await;
            }
            Some(leftover) => leftover.asked_on,
            None => self.open().await?,
        };
        let asked = self
            .leftovers
            .asked(&release.owner, &open, Request::Release);
        let answer = match release.heir {
            Heir::IsTold => {
                let arguments = release.arguments("");
                let (script, keys) = (&release.script, &release.keys);
                self.run_on(&open, script, keys, &arguments).await
            }
            Heir::MayBeHere => self.pass_on(&open, &release).await,
        };
        if let Err(LockProblem::NoAnswer(_) | LockProblem::BadAnswer(_)) = answer {
            drop(asked);
            let link = self.clone();
            self.env().in_background(async move {
                let _unknown = link.abandon(release).await;
            });
        } else {
            asked.settle();
            self.leftovers.forget(&release.owner);
        }
        answer
    }

    /// Releases by a script whose answer can be the word that a waiter waits for. That one
    /// hears of it even if nobody waits for the release any more.
    async fn pass_on(
        &self,
        open: &Arc<Open>,
        release: &Arc<Release>,
    ) -> Result<Reply, LockProblem> {
        let sending = release.clone().send(open.clone(), self.requests());
        let sending = FollowThrough::new(self.env(), timeout(PASSED_ON_WITHIN, sending));
        let answered = async {
            let too_late = |_| Err(io::Error::from(io::ErrorKind::TimedOut).into());
            sending.await.unwrap_or_else(too_late)
        };
        let answer = self.heard(open, answered).await;
        self.learned(open, answer)
    }

    /// Undoes what a request of the owner left or may leave, if there was one.
    pub(crate) async fn abandon(&self, release: Arc<Release>) -> Result<(), LockProblem> {
        match self.leftovers.of(&release.owner) {
            Some(leftover) => self.undo(leftover, &release).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends the release behind the request that it undoes, on the same connection, even
    /// if that was given up: what was sent there is still carried out when the server
    /// reads it. If no answer comes, the release is sent on another connection too, and
    /// may come before the request. So it leaves a mark that makes the request refuse
    /// itself.
    async fn undo(
        &self,
        leftover: Leftover<Open>,
        release: &Release,
    ) -> Result<Reply, LockProblem> {
        let Leftover { asked_on, request } = leftover;
        let (script, keys) = (&release.script, &release.keys);
        // Whoever inherits the lock is told by a message: this future may be dropped.
        let arguments = release.arguments("");
        let mut answer = self.run_whole_on(&asked_on, script, keys, &arguments).await;
        if let Err(LockProblem::NoAnswer(_) | LockProblem::BadAnswer(_)) = answer {
            let other = self.open().await;
            if let Some(other) = other.ok().filter(|other| !Arc::ptr_eq(other, &asked_on)) {
                let mut keys = keys.clone();
                if request == Request::Try {
                    keys.push(gone_key(&release.key, &release.owner));
                }
                answer = self.run_whole_on(&other, script, &keys, &arguments).await;
            }
        }
        // Not earlier: a caller that drops this future before tries again.
        self.leftovers.forget(&release.owner);
        answer
    }
}

impl Release {
    /// `channel` is that of the waiters who learn from the answer that they inherit.
    fn arguments<'a>(&'a self, channel: &'a str) -> Vec<&'a str> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        if self.heir == Heir::MayBeHere {
            arguments.push(channel);
        }
        arguments
    }

    /// Sends the release, and tells its heir if that one waits on the same connection.
    async fn send(
        self: Arc<Self>,
        open: Arc<Open>,
        requests: Counter,
    ) -> Result<Reply, RedisError> {
        let arguments = self.arguments(&open.hand_offs);
        let mut number = open.numbers.next();
        let by_hash = self.script.by_hash(&self.keys, &arguments, number);
        let mut answer = open.wire.ask(&by_hash).await;
        if answer.as_ref().is_err_and(lua::is_unknown) {
            requests.inc();
            number = open.numbers.next();
            let whole = self.script.whole(&self.keys, &arguments, number);
            answer = open.wire.ask(&whole).await;
        }
        let reply = Reply::read(answer?, number)?;
        if let (Some(heir), Ok([token])) = (reply.text(), reply.numbers()) {
            open.wakes.told(heir, &token.to_string());
        }
        Ok(reply)
    }
}
