use crate::redlock::{Conclusion, NodeAnswer, conclude};
use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LockBackend, LockError, LockProblem, ReleaseOutcome,
    RenewOutcome, Term,
};
use async_trait::async_trait;
use futures_util::future::{BoxFuture, join_all};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A lock that a majority of independent locks grants, with the highest of their tokens. It
/// exists for the scenarios that show what is wrong with it:
///
/// - two majorities may share one member only, and the others' counters are behind, so the
///   highest token of a later majority may be lower, without any fault;
/// - a member that forgets its grants, or ends one too early, completes a second majority
///   while the first still holds.
pub struct NaiveMajority {
    name: &'static str,
    members: Vec<Box<dyn LockBackend>>,
    /// All names joined, for errors.
    nodes: String,
    env: Env,
}

/// The share of the TTL that a member without an answer may take.
const SHARE_OF_TTL: u32 = 10;
const PATIENCE_MIN: Duration = Duration::from_millis(20);
const RELEASE_WITHIN: Duration = Duration::from_secs(1);

type Request<'a, T> = BoxFuture<'a, Result<T, LockError>>;

impl NaiveMajority {
    pub fn new(name: &'static str, members: Vec<Box<dyn LockBackend>>, env: Env) -> NaiveMajority {
        let nodes: Vec<&str> = members.iter().map(|member| member.node()).collect();
        NaiveMajority {
            name,
            nodes: nodes.join(","),
            members,
            env,
        }
    }

    fn quorum(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Asks all members at once and waits for all answers, but not for long.
    async fn ask<'a, T>(
        &'a self,
        limit: Duration,
        request: impl Fn(&'a dyn LockBackend) -> Request<'a, T>,
    ) -> Vec<Result<T, LockProblem>> {
        let requests = self.members.iter().map(|member| request(&**member));
        let requests: Vec<_> = requests.map(|request| timeout(limit, request)).collect();
        let answers = join_all(requests).await.into_iter();
        let nothing = |_| format!("nothing within {} ms", limit.as_millis());
        let answers = answers.map(|answer| match answer.map_err(nothing) {
            Ok(answer) => answer.map_err(|error| error.problem),
            Err(problem) => Err(LockProblem::NoAnswer(problem)),
        });
        answers.collect()
    }

    fn conclude<T>(
        &self,
        key: &str,
        answers: &[Result<T, LockProblem>],
        read: impl Fn(&T) -> NodeAnswer,
    ) -> Result<Conclusion, LockError> {
        let heard = answers.iter().map(|answer| match answer {
            Ok(answer) => read(answer),
            Err(_) => NodeAnswer::Failed,
        });
        match conclude(heard, self.members.len(), self.quorum()) {
            Conclusion::Wait | Conclusion::Undecided => Err(self.no_quorum(key, answers)),
            conclusion => Ok(conclusion),
        }
    }

    fn no_quorum<T>(&self, key: &str, answers: &[Result<T, LockProblem>]) -> LockError {
        let named = self.members.iter().zip(answers);
        let failures: Vec<String> = named
            .filter_map(|(member, answer)| {
                let problem = answer.as_ref().err()?;
                Some(format!("{}: {problem}", member.node()))
            })
            .collect();
        let problem = LockProblem::NoQuorum {
            answered: self.members.len() - failures.len(),
            quorum: self.quorum(),
            nodes: self.members.len(),
            failures: failures.join("; "),
        };
        self.error(key, problem)
    }
}

fn patience(ttl: Duration) -> Duration {
    (ttl / SHARE_OF_TTL).max(PATIENCE_MIN)
}

#[async_trait]
impl LockBackend for NaiveMajority {
    fn name(&self) -> &'static str {
        self.name
    }

    fn node(&self) -> &str {
        &self.nodes
    }

    fn env(&self) -> &Env {
        &self.env
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let asked_at = Instant::now();
        let limit = patience(ask.ttl);
        let answers = self.ask(limit, |member| member.try_acquire(ask)).await;
        let tokens = answers.iter().filter_map(|answer| match answer {
            Ok(Attempt::Granted(grant)) => Some(grant.token()),
            Ok(Attempt::Busy { .. }) | Err(_) => None,
        });
        let (granted, highest) = (tokens.clone().count(), tokens.max());
        if granted >= self.quorum() {
            let token = highest.unwrap_or(FencingToken(0));
            let term = Term::Until(asked_at + ask.ttl);
            let grant = Grant::new(token, asked_at, ask.ttl, term);
            let attempt = grant.map(Attempt::Granted);
            return attempt.map_err(|problem| self.error(ask.key, problem));
        }
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        if failed > self.members.len() - self.quorum() {
            return Err(self.no_quorum(ask.key, &answers));
        }
        self.abandon(ask.key, ask.owner).await?;
        let retry_in = Duration::MAX;
        Ok(Attempt::Busy { retry_in })
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let until = Instant::now() + ask.ttl;
        let limit = patience(ask.ttl);
        let answers = self.ask(limit, |member| member.renew(ask)).await;
        let concluded = self.conclude(ask.key, &answers, |outcome| match outcome {
            RenewOutcome::Renewed { .. } => NodeAnswer::Ours,
            RenewOutcome::Expired => NodeAnswer::Expired,
            RenewOutcome::Superseded => NodeAnswer::Superseded,
        });
        Ok(match concluded? {
            Conclusion::Expired => RenewOutcome::Expired,
            Conclusion::Superseded => RenewOutcome::Superseded,
            _ => RenewOutcome::Renewed { until },
        })
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let answers = self.ask(RELEASE_WITHIN, |member| member.release(key, owner));
        let answers = answers.await;
        let concluded = self.conclude(key, &answers, |outcome| match outcome {
            ReleaseOutcome::Released => NodeAnswer::Ours,
            ReleaseOutcome::Expired => NodeAnswer::Expired,
            ReleaseOutcome::Superseded | ReleaseOutcome::FreedAnother => NodeAnswer::Superseded,
            ReleaseOutcome::Unknown => NodeAnswer::Failed,
        });
        Ok(match concluded? {
            Conclusion::Expired => ReleaseOutcome::Expired,
            Conclusion::Superseded => ReleaseOutcome::Superseded,
            _ => ReleaseOutcome::Released,
        })
    }

    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        // A member that cannot be reached frees it when its lease is over.
        self.ask(RELEASE_WITHIN, |member| member.abandon(key, owner))
            .await;
        Ok(())
    }
}
