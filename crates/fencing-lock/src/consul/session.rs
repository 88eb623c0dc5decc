use super::agent::Agent;
use crate::LockProblem;
use hyper::StatusCode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The sessions of this process: one for each lock that is held, and some that wait for their
/// next lock.
///
/// A session holds one lock at a time. So the end of a session that was given up ends nothing
/// else, and whatever was asked in its name is refused from then on, however late it comes.
pub(super) struct Sessions {
    agent: Arc<Agent>,
    idle: Mutex<Vec<Arc<Session>>>,
}

pub(super) struct Session {
    pub(super) id: String,
    pub(super) ttl: Duration,
    /// When the last request was sent that made or prolonged it.
    confirmed_at: Mutex<Instant>,
}

const IDLE_MAX: usize = 8;
/// The pause before a session is ended again because nobody answered.
const PAUSE: Duration = Duration::from_millis(100);

impl Session {
    pub(super) fn confirmed_at(&self) -> Instant {
        *self.confirmed_at.lock()
    }

    /// Returns until when the server certainly keeps it.
    pub(super) fn deadline(&self) -> Instant {
        self.confirmed_at() + self.ttl
    }

    fn confirm(&self, sent_at: Instant) {
        let mut confirmed_at = self.confirmed_at.lock();
        *confirmed_at = sent_at.max(*confirmed_at);
    }
}

impl Sessions {
    pub(super) fn new(agent: Arc<Agent>) -> Sessions {
        Sessions {
            agent,
            idle: Mutex::default(),
        }
    }

    /// Returns a session that holds nothing, with most of its time before it.
    pub(super) async fn one(&self, ttl: Duration) -> Result<Arc<Session>, LockProblem> {
        while let Some(session) = self.pop(ttl) {
            let is_young = session.confirmed_at().elapsed() < ttl / 10;
            if is_young || self.renew(&session).await? {
                return Ok(session);
            }
        }
        self.create(ttl).await
    }

    fn pop(&self, ttl: Duration) -> Option<Arc<Session>> {
        let mut idle = self.idle.lock();
        // What is over here is forgotten at the server before long.
        idle.retain(|session| session.deadline() > Instant::now());
        let at = idle.iter().rposition(|session| session.ttl == ttl)?;
        Some(idle.remove(at))
    }

    /// A session whose creation is not answered holds nothing, and expires.
    async fn create(&self, ttl: Duration) -> Result<Arc<Session>, LockProblem> {
        let ms = |span: Duration| format!("{}ms", span.as_millis());
        let wanted = json!({
            "Name": "fencing-lock",
            "TTL": ms(ttl),
            "LockDelay": ms(self.agent.settings().lock_delay),
            "Behavior": "release",
            // By default a session ends with its agent's health as well. The lock would be
            // free, and its holder would not know.
            "NodeChecks": [],
        });
        let sent_at = Instant::now();
        let answer = self.agent.put("/v1/session/create", &wanted).await?;
        let created = answer.json().map_err(|problem| not_kept(ttl, problem))?;
        let id = created["ID"].as_str();
        let id = id.ok_or_else(|| LockProblem::BadAnswer("a session without an ID".to_owned()))?;
        Ok(Arc::new(Session {
            id: id.to_owned(),
            ttl,
            confirmed_at: Mutex::new(sent_at),
        }))
    }

    /// Prolongs a session, and returns whether it was still there.
    pub(super) async fn renew(&self, session: &Session) -> Result<bool, LockProblem> {
        let sent_at = Instant::now();
        let path = format!("/v1/session/renew/{}", session.id);
        let answer = self.agent.put(&path, &Value::Null).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(false);
        }
        answer.json()?;
        session.confirm(sent_at);
        Ok(true)
    }

    /// Keeps a session that holds nothing, and in whose name nothing is under way.
    pub(super) fn put_back(&self, session: Arc<Session>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(session);
            return;
        }
        drop(idle);
        self.end_later(session);
    }

    /// Ends a session. Nothing that was asked in its name has an effect after that.
    pub(super) async fn end(&self, session: Arc<Session>) -> Result<(), LockProblem> {
        let ended = destroy(&self.agent, &session).await;
        if ended.is_err() {
            self.end_later(session);
        }
        ended
    }

    /// Ends a session as soon as the server answers, unless it has expired by then.
    pub(super) fn end_later(&self, session: Arc<Session>) {
        let agent = self.agent.clone();
        let env = agent.env().clone();
        env.in_background(async move {
            // The server keeps a session for up to twice its TTL.
            let expired_at = session.deadline() + session.ttl;
            while destroy(&agent, &session).await.is_err() && Instant::now() < expired_at {
                sleep(PAUSE).await;
            }
        });
    }
}

async fn destroy(agent: &Agent, session: &Session) -> Result<(), LockProblem> {
    let path = format!("/v1/session/destroy/{}", session.id);
    agent.put(&path, &Value::Null).await?.json().map(drop)
}

#[cfg(feature = "servers")]
impl Agent {
    /// Returns whether a session is there.
    pub async fn has_session(&self, id: &str) -> Result<bool, LockProblem> {
        let path = format!("/v1/session/info/{id}?consistent");
        let sessions = self.get(&path, Duration::ZERO).await?.json()?;
        Ok(sessions.as_array().is_some_and(|all| !all.is_empty()))
    }
}

/// A server says in words that it does not keep a session for so long.
fn not_kept(ttl: Duration, problem: LockProblem) -> LockProblem {
    match problem {
        LockProblem::Refused(said) if said.contains("Invalid Session TTL") => {
            let said = format!("{said}; choose another TTL, or set session_ttl_min of the servers");
            LockProblem::TtlNotKept { ttl, said }
        }
        problem => problem,
    }
}
