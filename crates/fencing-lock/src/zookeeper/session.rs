use super::failure::Failure;
use super::names::{LOCKS, SESSIONS, session_mark};
use super::servers::Servers;
use crate::shared_belief::SharedBelief;
use crate::task::Task;
use crate::{Belief, LostReason};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, SessionState};

/// A session at the ensemble, and what this process may believe about it.
///
/// Nodes that the session made are deleted with it. The client library keeps it alive and
/// moves it from server to server, for as long as this object lives or until the belief
/// ends. Then the session is closed, so that its nodes do not block others.
///
/// The pings of the client library prove nothing. A follower answers them by itself,
/// also if its leader, who counts the time, does not hear of them any more. So a session
/// counts as confirmed only by a write, which takes the leader and a majority. Even then
/// the leader may not have heard of *this* request: a follower reports who was there only
/// once in half a tick. A write proves that the reports before it came, because both go
/// over one connection. So the belief counts from the confirmation before the last one,
/// and two of them are at least a quarter of the timeout apart. No session is shorter than
/// two ticks, so a report lies between them.
pub(super) struct Session {
    shared: Arc<Shared>,
    _beats: Task,
}

struct Shared {
    servers: Arc<Servers>,
    /// Absent once the session is over: the library closes it with the last of its clients.
    client: Mutex<Option<Client>>,
    id: i64,
    mark: String,
    ttl: Duration,
    belief: SharedBelief,
    confirmed: Mutex<Confirmed>,
}

/// The last two requests that prove that the session was there.
#[derive(Clone, Copy, Debug)]
struct Confirmed {
    /// The belief counts from here.
    reported: Instant,
    sent: Instant,
    heard: Instant,
}

impl Confirmed {
    /// Takes in another confirmation. It proves nothing new if it was sent too soon after
    /// the last one.
    fn again(&mut self, sent: Instant, heard: Instant, apart: Duration) {
        if sent >= self.heard + apart {
            *self = Confirmed {
                reported: self.sent,
                sent,
                heard,
            };
        }
    }
}

const OPEN: Acls<'static> = Acls::anyone_all();
const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(OPEN);
const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(OPEN);

impl Session {
    pub(super) async fn open(servers: Arc<Servers>, ttl: Duration) -> Result<Session, Failure> {
        let asked_at = Instant::now();
        let client = servers.connect(ttl).await?;
        let heard = Instant::now();
        let kept = client.session_timeout();
        if kept != ttl {
            return Err(Failure::TtlNotKept { ttl, kept });
        }
        let env = servers.env().clone();
        let shared = Arc::new(Shared {
            id: client.session_id().0,
            mark: session_mark(&env),
            ttl,
            belief: SharedBelief::until(asked_at + ttl),
            confirmed: Mutex::new(Confirmed {
                reported: asked_at,
                sent: asked_at,
                heard,
            }),
            client: Mutex::new(Some(client)),
            servers,
        });
        shared.make_mark().await?;
        Ok(Session {
            _beats: env.spawn(beat(shared.clone())),
            shared,
        })
    }

    pub(super) fn id(&self) -> i64 {
        self.shared.id
    }

    pub(super) fn ttl(&self) -> Duration {
        self.shared.ttl
    }

    pub(super) fn belief(&self) -> watch::Receiver<Belief> {
        self.shared.belief.subscribe()
    }

    pub(super) fn deadline(&self) -> Instant {
        self.shared.belief.deadline()
    }

    pub(super) fn is_over(&self) -> bool {
        self.shared.belief.is_over()
    }

    /// Completes when the session is over, by its deadline at the latest.
    pub(super) async fn over(&self) {
        self.shared.belief.over().await;
    }

    /// Ends the session here, and at the ensemble as soon as it can be reached.
    pub(super) fn close(&self) {
        self.shared.end(LostReason::SessionOver);
    }

    /// Returns the client once it is connected. Requests of a client that is not would lie
    /// in a queue, and be sent when nobody wants them any more.
    pub(super) async fn client(&self) -> Result<Client, Failure> {
        self.shared.connected().await
    }

    /// Takes the answer to a request, and learns from it whether the session is over.
    pub(super) fn learned<T>(
        &self,
        answer: Result<T, zookeeper_client::Error>,
    ) -> Result<T, Failure> {
        self.shared.learned(answer)
    }

    /// Has a majority confirm that the session is there. All requests that it sent before
    /// were carried out then, or never will be.
    pub(super) async fn confirm(&self) -> Result<(), Failure> {
        self.shared.confirm().await
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn end(&self, reason: LostReason) {
        self.belief.end(reason);
        self.client.lock().take();
    }

    async fn connected(&self) -> Result<Client, Failure> {
        let states = self.client.lock().as_ref().map(Client::state_watcher);
        let mut states = states.ok_or(Failure::SessionOver)?;
        loop {
            match states.peek_state() {
                SessionState::SyncConnected => break,
                state if state.is_terminated() => {
                    self.end(LostReason::Expired);
                    return Err(Failure::SessionOver);
                }
                _ => {}
            }
            tokio::select! {
                biased;
                () = self.belief.over() => return Err(Failure::SessionOver),
                _ = states.changed() => {}
            }
        }
        self.client.lock().clone().ok_or(Failure::SessionOver)
    }

    fn learned<T>(&self, answer: Result<T, zookeeper_client::Error>) -> Result<T, Failure> {
        let answer = answer.map_err(Failure::from);
        if let Err(Failure::SessionOver) = &answer {
            self.end(LostReason::Expired);
        }
        answer
    }

    /// Makes the mark, and the parents of everything if nobody has before.
    async fn make_mark(&self) -> Result<(), Failure> {
        let client = self.connected().await?;
        let making = async {
            self.servers.requests().inc();
            match client.create(&self.mark, b"", &EPHEMERAL).await {
                Err(zookeeper_client::Error::NoNode) => {}
                made => return made.map(drop),
            }
            self.servers.requests().inc_by(3);
            client.mkdir(LOCKS, &PERSISTENT).await?;
            client.mkdir(SESSIONS, &PERSISTENT).await?;
            client.create(&self.mark, b"", &EPHEMERAL).await.map(drop)
        };
        match timeout(self.servers.limit(), making).await {
            Ok(made) => self.learned(made),
            Err(_) => Err(self.servers.silent()),
        }
    }

    async fn confirm(&self) -> Result<(), Failure> {
        let client = self.connected().await?;
        let sent = Instant::now();
        self.servers.requests().inc();
        let answer = client.set_data(&self.mark, b"", None).await;
        drop(client);
        match self.learned(answer) {
            Ok(_written) => self.prolong(sent),
            Err(Failure::NoNode) => {
                // Only the end of the session deletes it, or somebody who wants that.
                self.end(LostReason::Expired);
                Err(Failure::SessionOver)
            }
            Err(failure) => Err(failure),
        }
    }

    fn prolong(&self, sent: Instant) -> Result<(), Failure> {
        let mut confirmed = self.confirmed.lock();
        confirmed.again(sent, Instant::now(), self.apart());
        let until = confirmed.reported + self.ttl;
        drop(confirmed);
        self.belief.prolong(until).map_err(|reason| {
            self.end(reason);
            Failure::SessionOver
        })
    }

    /// Returns how far apart two confirmations have to be.
    fn apart(&self) -> Duration {
        self.ttl / 4
    }
}

/// Confirms the session until it is over, and closes it then.
async fn beat(shared: Arc<Shared>) {
    let soon = shared.ttl / 20;
    loop {
        let next = shared.confirmed.lock().heard + shared.apart();
        let mut next = next.max(Instant::now());
        loop {
            let confirm = async {
                sleep_until(next).await;
                shared.confirm().await
            };
            let confirmed = tokio::select! {
                // What is over is not prolonged, also where both come at once.
                biased;
                () = shared.belief.over() => return shared.end(LostReason::SessionOver),
                confirmed = confirm => confirmed,
            };
            match confirmed {
                Ok(()) => break,
                // The session may still be saved before the deadline.
                Err(_) => next = Instant::now() + soon,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_belief_counts_from_the_confirmation_before_the_last() {
        let second = Duration::from_secs(1);
        let start = Instant::now();
        let at = |seconds: u32| start + second * seconds;
        let mut confirmed = Confirmed {
            reported: at(0),
            sent: at(0),
            heard: at(1),
        };
        confirmed.again(at(2), at(3), 2 * second);
        assert_eq!(confirmed.reported, at(0), "too soon to prove a report");
        confirmed.again(at(3), at(4), 2 * second);
        assert_eq!((confirmed.reported, confirmed.sent), (at(0), at(3)));
        confirmed.again(at(6), at(9), 2 * second);
        assert_eq!(confirmed.reported, at(3));
        // Its answer came late, so the report may not have come before.
        confirmed.again(at(10), at(11), 2 * second);
        assert_eq!(confirmed.reported, at(3));
    }
}
