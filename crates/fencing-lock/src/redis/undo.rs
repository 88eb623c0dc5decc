use super::Lua;
use super::keys::gone_key;
use super::link::{Open, RedisLink};
use crate::LockProblem;
use parking_lot::Mutex;
use redis::{FromRedisValue, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

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
pub(crate) struct Release {
    pub(crate) script: Lua,
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) keys: Vec<String>,
    pub(crate) arguments: Vec<String>,
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
    pub(crate) async fn run_try<T: FromRedisValue>(
        &self,
        owner: &str,
        script: &Lua,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, LockProblem> {
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
    pub(crate) async fn release<T: FromRedisValue>(
        self: &Arc<Self>,
        release: Release,
    ) -> Result<T, LockProblem> {
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
        let arguments = release.arguments();
        let (script, keys) = (&release.script, &release.keys);
        let answer = self.run_on(&open, script, keys, &arguments).await;
        if let Err(LockProblem::NoAnswer(_)) = answer {
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

    /// Undoes what a request of the owner left or may leave, if there was one.
    pub(crate) async fn abandon(&self, release: Release) -> Result<(), LockProblem> {
        match self.leftovers.of(&release.owner) {
            Some(leftover) => self.undo::<Value>(leftover, &release).await.map(|_| ()),
            None => Ok(()),
        }
    }

    /// Sends the release behind the request that it undoes, on the same connection, even
    /// if that was given up: what was sent there is still carried out when the server
    /// reads it. If no answer comes, the release is sent on another connection too, and
    /// may come before the request. So it leaves a mark that makes the request refuse
    /// itself.
    async fn undo<T: FromRedisValue>(
        &self,
        leftover: Leftover,
        release: &Release,
    ) -> Result<T, LockProblem> {
        let Leftover { asked_on, request } = leftover;
        let arguments = release.arguments();
        let whole = release.script.whole(&release.keys, &arguments);
        let mut answer = self.query_on(&asked_on, &whole).await;
        if let Err(LockProblem::NoAnswer(_)) = answer {
            let other = self.open().await;
            if let Some(other) = other.ok().filter(|other| !Arc::ptr_eq(other, &asked_on)) {
                let mut keys = release.keys.clone();
                if request == Request::Try {
                    keys.push(gone_key(&release.key, &release.owner));
                }
                let whole = release.script.whole(&keys, &arguments);
                answer = self.query_on(&other, &whole).await;
            }
        }
        // Not earlier: a caller that drops this future before tries again.
        self.leftovers.forget(&release.owner);
        answer
    }
}

impl Release {
    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }
}
