use super::failure::Failure;
use super::wire::{Wire, wire_in};
use crate::address::http_server;
use crate::{Env, LastWord, LockProblem};
use etcd_client::ResponseHeader;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit, watch};
use tokio::time::{sleep, timeout};

/// The members of one cluster, one of which is asked until it fails.
///
/// This is not a balancer, for three reasons. A request that goes through a follower
/// costs one more hop. A balancer would send every third request to a frozen member,
/// whose connections stay open without an answer. And a watch and the reads beside it
/// agree best if they come from one member. So all requests go to the leader, if it is
/// known, and to the next member after the first failure.
pub(super) struct Members {
    members: Vec<Member>,
    /// All addresses, for errors.
    node: String,
    /// The member that is asked. A change, even to the same member, means that watches
    /// and calls at the old one are not to be trusted any more.
    preferred: watch::Sender<usize>,
    /// The term of the last answer. A new term may mean a new leader.
    raft_term: AtomicU64,
    leader_may_be_another: AtomicBool,
    /// The failure of the last request, if no member answered it.
    silence: Mutex<Option<Failure>>,
    request_timeout: Duration,
    turns: Semaphore,
    requests: Counter,
    env: Env,
}

struct Member {
    address: String,
    wire: OnceCell<Wire>,
}

const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Enough to keep a cluster busy. If all requests of a burst were sent at once, most
/// would wait at the server for longer than their time limit, and each would be followed
/// by another.
const WRITES_AT_ONCE: usize = 64;

impl Members {
    pub(super) fn new(
        addresses: &[String],
        request_timeout: Duration,
        env: Env,
    ) -> Result<Members, LockProblem> {
        if addresses.is_empty() {
            let problem = "at least one etcd server is needed, and none is named";
            return Err(LockProblem::BadServers(problem.to_owned()));
        }
        for address in addresses {
            check_address(address)?;
        }
        let member = |address: &String| Member {
            address: address.clone(),
            wire: OnceCell::new(),
        };
        Ok(Members {
            members: addresses.iter().map(member).collect(),
            node: addresses.join(","),
            preferred: watch::Sender::new(0),
            raft_term: AtomicU64::new(0),
            leader_may_be_another: AtomicBool::new(true),
            silence: Mutex::default(),
            request_timeout,
            turns: Semaphore::new(WRITES_AT_ONCE),
            requests: Counter::default(),
            env,
        })
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Returns the count of requests; code that asks a member in another way counts here,
    /// too.
    pub(super) fn requests(&self) -> &Counter {
        &self.requests
    }

    pub(super) fn count(&self) -> usize {
        self.members.len()
    }

    /// Asks one member after the other until one of them has answered. Use it only for
    /// requests that may be carried out twice.
    pub(super) async fn ask<T, F>(&self, request: impl Fn(&Wire) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut first = None;
        for _ in &self.members {
            match self.ask_once(&request).await {
                Ok(answer) => return Ok(answer),
                Err(failure) if !failure.is_of_the_member() => return Err(failure),
                // A failure of a request that may have taken effect is the one to return.
                Err(failure) if failure.may_have_happened() => {
                    first = Some(failure);
                }
                Err(failure) => {
                    first.get_or_insert(failure);
                }
            }
        }
        let failure = first.expect("there is at least one member");
        *self.silence.lock() = Some(failure.clone());
        Err(failure)
    }

    /// Tells `last` at the end of a wait, also of one that is given up, if no member
    /// answered the last request: a watch or a call only waits then.
    pub(super) fn tell_silence_to<'a>(&'a self, last: &'a LastWord) -> impl Drop + 'a {
        TellSilence {
            members: self,
            last,
        }
    }

    /// Asks regularly, for as long as somebody waits, whether there is a majority: a watch
    /// or a call at a frozen or cut-off member is silent.
    pub(super) async fn probe(&self, somebody_waits: impl Fn() -> bool) -> Infallible {
        loop {
            sleep(PROBE_EVERY).await;
            if !somebody_waits() {
                continue;
            }
            // Any read that a majority has to confirm will do.
            let _told_by_the_members = self
                .ask(|wire| {
                    let mut kv = wire.kv.clone();
                    async move { kv.get("/", None).await }
                })
                .await;
        }
    }

    /// Asks only the preferred member; if it fails, the next one is preferred.
    pub(super) async fn ask_once<T, F>(&self, request: impl Fn(&Wire) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let index = *self.preferred.borrow();
        let member = &self.members[index];
        let answer = timeout(self.request_timeout, async {
            let wire = member.wire(&self.env).await?;
            self.requests.inc();
            request(wire).await.map_err(Failure::from)
        });
        let answer = answer.await;
        let answer = answer.unwrap_or_else(|_| Err(Failure::too_slow(self.request_timeout)));
        match &answer {
            Err(failure) if failure.is_of_the_member() => self.prefer_after(index),
            _ => *self.silence.lock() = None,
        }
        answer.map_err(|failure| failure.at(&member.address))
    }

    /// Returns the preferred member and a receiver that changes when it should not be
    /// used any more.
    pub(super) async fn preferred(&self) -> Result<(usize, Wire, watch::Receiver<usize>), Failure> {
        let mut changes = self.preferred.subscribe();
        let index = *changes.borrow_and_update();
        let wire = self.members[index].wire(&self.env).await?;
        Ok((index, wire.clone(), changes))
    }

    /// Waits for a turn to write. Requests that keep the session alive do not wait for
    /// one.
    pub(super) async fn turn(&self) -> SemaphorePermit<'_> {
        self.turns.acquire().await.expect("never closed")
    }

    /// Prefers the member after `failed`. Others may have seen the same failure, which
    /// must not skip the next member.
    pub(super) fn prefer_after(&self, failed: usize) {
        self.leader_may_be_another.store(true, Ordering::Relaxed);
        self.preferred.send_if_modified(|preferred| {
            let is_news = *preferred == failed;
            if is_news {
                *preferred = (failed + 1) % self.members.len();
            }
            is_news
        });
    }

    /// Learns from an answer whether there was an election.
    pub(super) fn heard(&self, header: Option<&ResponseHeader>) {
        let term = header.map_or(0, ResponseHeader::raft_term);
        if self.raft_term.fetch_max(term, Ordering::Relaxed) < term {
            self.leader_may_be_another.store(true, Ordering::Relaxed);
        }
    }

    /// Prefers the leader from now on, unless it is known already or does not answer in
    /// time.
    pub(super) async fn prefer_leader(&self) {
        if self.members.len() == 1 || !self.leader_may_be_another.swap(false, Ordering::Relaxed) {
            return;
        }
        let asked = self
            .members
            .iter()
            .enumerate()
            .map(|(index, member)| async move {
                let mut maintenance = member.wire(&self.env).await.ok()?.maintenance.clone();
                self.requests.inc();
                let status = maintenance.status().await.ok()?;
                let id = status.header()?.member_id();
                (status.leader() == id).then_some(index)
            });
        let mut answers = asked.collect::<FuturesUnordered<_>>();
        let leader = async {
            while let Some(answer) = answers.next().await {
                if answer.is_some() {
                    return answer;
                }
            }
            None
        };
        let Ok(Some(leader)) = timeout(self.request_timeout, leader).await else {
            self.leader_may_be_another.store(true, Ordering::Relaxed);
            return;
        };
        self.preferred.send_if_modified(|preferred| {
            let is_news = *preferred != leader;
            *preferred = leader;
            is_news
        });
    }

    pub(super) fn request_timeout(&self) -> Duration {
        self.request_timeout
    }
}

struct TellSilence<'a> {
    members: &'a Members,
    last: &'a LastWord,
}

impl Drop for TellSilence<'_> {
    fn drop(&mut self) {
        if let Some(failure) = self.members.silence.lock().clone() {
            self.last.is_problem(failure.into());
        }
    }
}

impl Member {
    async fn wire(&self, env: &Env) -> Result<&Wire, Failure> {
        let connect = || wire_in(env, &self.address);
        self.wire.get_or_try_init(connect).await
    }
}

/// Checks that this can be the address of an etcd which this library can reach.
pub fn check_address(address: &str) -> Result<(), LockProblem> {
    http_server(address, None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_who_saw_one_failure_move_on_by_one_member() {
        let addresses = ["a:1", "b:1", "c:1"].map(str::to_owned);
        let members = Members::new(&addresses, Duration::from_secs(1), Env::default()).unwrap();
        members.prefer_after(0);
        members.prefer_after(0);
        assert_eq!(*members.preferred.borrow(), 1);
        members.prefer_after(1);
        members.prefer_after(2);
        assert_eq!(*members.preferred.borrow(), 0);
    }
}
