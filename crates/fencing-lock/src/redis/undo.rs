use super::Lua;
use super::keys::gone_key;
use super::link::{Open, RedisLink};
use super::lua;
use super::reply::Reply;
use crate::LockProblem;
use crate::follow_through::FollowThrough;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use redis::{RedisError, Value};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// After this time, a waiter has found out in another way that it inherited a lock.
const PASSED_ON_WITHIN: Duration = Duration::from_secs(10);

/// Everything about owners whose last request was not answered, or left something at the
/// server: there is something to undo, and this is the connection that it was sent on. An
/// entry goes with the undo, or with an answer to the owner's release.
#[derive(Default)]
pub(super) struct Leftovers {
    by_owner: Mutex<BTreeMap<String, Leftover>>,
}

#[derive(Clone)]
struct Leftover {
    asked_on: Arc<Open>,
    request: Request,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// It can grant a lock, or stand in a line.
    Try,
    Release,
}

/// A request of an owner that is under way, or that left something at the server. Unless
/// it is settled, it is a leftover when it is dropped.
pub(super) struct Asked<'a> {
    leftovers: &'a Leftovers,
    owner: &'a str,
    /// Absent if nothing of it is left.
    leftover: Option<Leftover>,
}

/// A release, as a script that changes nothing if the owner holds nothing. So it can be
/// sent more than once.
#[derive(Clone)]
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

impl Leftovers {
    pub(super) fn asked<'a>(
        &'a self,
        owner: &'a str,
        asked_on: &Arc<Open>,
        request: Request,
    ) -> Asked<'a> {
        let asked_on = asked_on.clone();
        Asked {
            leftovers: self,
            owner,
            leftover: Some(Leftover { asked_on, request }),
        }
    }

    fn of(&self, owner: &str) -> Option<Leftover> {
        self.by_owner.lock().get(owner).cloned()
    }

    fn forget(&self, owner: &str) {
        self.by_owner.lock().remove(owner);
    }
}

impl Asked<'_> {
    /// Notes that the same is asked again on another connection.
    pub(super) fn moves_to(&mut self, open: &Arc<Open>) {
        if let Some(leftover) = &mut self.leftover {
            leftover.asked_on = open.clone();
        }
    }

    /// Notes that the answer came, and that nothing has to be undone.
    pub(super) fn settle(mut self) {
        self.leftover = None;
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(leftover) = self.leftover.take() {
            let mut by_owner = self.leftovers.by_owner.lock();
            // What a try may leave still counts when its release is not answered either.
            by_owner.entry(self.owner.to_owned()).or_insert(leftover);
        }
    }
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
        self.leftovers.by_owner.lock().contains_key(owner)
    }

    /// Releases what the owner holds.
    ///
    /// If the answer does not come, the whole script is sent behind the request, because
    /// it may have been called by a hash that the server does not know; and on another
    /// connection, if this one broke.
    pub(crate) async fn release(self: &Arc<Self>, release: Release) -> Result<Reply, LockProblem> {
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
    async fn pass_on(&self, open: &Arc<Open>, release: &Release) -> Result<Reply, LockProblem> {
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
    pub(crate) async fn abandon(&self, release: Release) -> Result<(), LockProblem> {
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
    async fn undo(&self, leftover: Leftover, release: &Release) -> Result<Reply, LockProblem> {
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
    async fn send(self, open: Arc<Open>, requests: Counter) -> Result<Reply, RedisError> {
        let arguments = self.arguments(&open.hand_offs);
        let mut connection = open.connection();
        let mut number = open.numbers.next();
        let by_hash = self.script.by_hash(&self.keys, &arguments, number);
        let mut answer: Result<Value, _> = by_hash.query_async(&mut *connection).await;
        if answer.as_ref().is_err_and(lua::is_unknown) {
            requests.inc();
            number = open.numbers.next();
            let whole = self.script.whole(&self.keys, &arguments, number);
            answer = whole.query_async(&mut *connection).await;
        }
        let reply = Reply::read(answer?, number)?;
        if let (Some(heir), Ok([token])) = (reply.text(), reply.numbers()) {
            open.wakes.told(heir, &token.to_string());
        }
        Ok(reply)
    }
}
