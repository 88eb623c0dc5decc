mod acquire;
mod decision;
mod fan;
mod node;
mod nodes;
mod proposal;

#[cfg(all(test, feature = "unsafe-modes"))]
mod model;

pub use decision::TokenScheme;

#[cfg(all(debug_assertions, feature = "mutants"))]
use super::Mutant;
use super::redis::{Reply, ttl_ms};
use super::{Ask, Attempt, Env, LockBackend, LockError, LockProblem, RenewOutcome};
use crate::ReleaseOutcome;
use acquire::Try;
use async_trait::async_trait;
pub(crate) use decision::{Conclusion, NodeAnswer, conclude};
use nodes::{Nodes, Order};
use prometheus_client::metrics::counter::Counter;
use proposal::Proposals;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A lock on a majority of independent Redis nodes, with tokens that only grow.
///
/// All nodes are asked at once, and the lock is held when a quorum granted it and it has
/// not expired in the meantime. The slowest nodes are not waited for. Every node has to
/// keep its counter: with an append-only file that is always synced, or with a restart
/// that counts as a new node. All clients have to name the same nodes.
///
/// # Why the tokens only grow
///
/// The highest counter of a quorum is not a token: quorums overlap in one node, and that
/// one may have the lower counter (`TokenScheme::UnsafeMaxOfCounters`, of the feature
/// `unsafe-modes`, shows it). Here,
///
/// 1. a node that is free stores the owner and sets its counter to
///    `max(counter + 1, proposal)`, in one step, and answers with it;
/// 2. the token is the highest of the counters that were awaited, which are a
///    quorum or more. If a quorum has exactly that one, the lock is held;
/// 3. otherwise the token is written to the counters that are below it, each
///    only while its node still holds the lock for this owner, and the lock
///    is held when a quorum has it.
///
/// So each hold has a quorum whose counters reached its token while they held the lock
/// for it. Take two holds and a node that is in both quorums. It granted one of them
/// first, and it reached that one's token before it granted the other. So it answered the
/// other with a higher counter, and the other's token is at least as high as the counters
/// that it awaited. So the hold that got that node later has the higher token, and two
/// holds never have the same.
///
/// A node whose answer was not awaited is in neither quorum, and the argument does not
/// depend on what it holds: its grant can only raise its counter. That is why a
/// write-back goes to none of them. If it did, a node with a higher counter than the
/// token could confirm it.
///
/// A test explores all of that for three nodes, message by message, with the very
/// functions that run here. It also finds what goes wrong with a write-back without the
/// condition, a node that lost its counter, an owner that is used twice, or a lock that
/// is re-created.
///
/// ```no_run
/// use fencing_lock::{LockBackend, RedlockBackend, RedlockSettings};
///
/// # fn example() -> Result<(), fencing_lock::LockError> {
/// let servers = ["10.0.0.1:6379", "10.0.0.2:6379", "10.0.0.3:6379"];
/// let backend = RedlockBackend::new(&servers, RedlockSettings::default())?;
/// println!("two of {} hold a lock", backend.node());
/// # Ok(())
/// # }
/// ```
pub struct RedlockBackend {
    nodes: Arc<Nodes>,
    tokens: TokenScheme,
    proposals: Proposals,
    /// The owner of all attempts, for [`Mutant::ReuseNonce`].
    #[cfg(all(debug_assertions, feature = "mutants"))]
    nonce: Option<String>,
}

/// The time limits for nodes, and the number of nodes that have to agree.
///
/// ```
/// use fencing_lock::RedlockSettings;
///
/// let all_of_five = RedlockSettings { quorum: Some(5), ..RedlockSettings::default() };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RedlockSettings {
    /// Has to be more than half of the nodes; the smallest such number unless it is set.
    pub quorum: Option<usize>,
    pub tokens: TokenScheme,
    pub connect_timeout: Duration,
    /// Limits the wait for a node's answer. A try for a lock waits a tenth of the TTL at
    /// most.
    pub response_timeout: Duration,
    /// A mistake made on purpose, so that a test can prove that the mistake is detected.
    #[cfg(all(debug_assertions, feature = "mutants"))]
    pub mutant: Option<Mutant>,
}

impl Default for RedlockSettings {
    fn default() -> RedlockSettings {
        RedlockSettings {
            quorum: None,
            tokens: TokenScheme::default(),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            #[cfg(all(debug_assertions, feature = "mutants"))]
            mutant: None,
        }
    }
}

impl RedlockBackend {
    /// Does not connect before the first use, so an unreachable node is not an error
    /// here.
    ///
    /// The same address twice is refused, since that node would vote twice. Two names of
    /// one server cannot be distinguished from two servers.
    pub fn new(
        servers: &[impl AsRef<str>],
        settings: RedlockSettings,
    ) -> Result<RedlockBackend, LockError> {
        RedlockBackend::with_env(servers, settings, Env::default())
    }

    /// Does the same in surroundings that may be simulated.
    pub fn with_env(
        servers: &[impl AsRef<str>],
        settings: RedlockSettings,
        env: Env,
    ) -> Result<RedlockBackend, LockError> {
        #[cfg(all(debug_assertions, feature = "mutants"))]
        let reuses_nonce = settings.mutant == Some(Mutant::ReuseNonce);
        Ok(RedlockBackend {
            #[cfg(all(debug_assertions, feature = "mutants"))]
            nonce: reuses_nonce.then(|| env.uuid().to_string()),
            nodes: Arc::new(Nodes::new(servers, &settings, env)?),
            tokens: settings.tokens,
            proposals: Proposals::default(),
        })
    }

    /// Sends the request to all nodes and concludes from the first answers that allow it.
    /// The other nodes still carry it out in the background.
    async fn conclude(&self, order: Order) -> Result<Conclusion, LockProblem> {
        let nodes = &self.nodes;
        let mut fan = nodes.ask(order, |_| true);
        let mut standings = vec![NodeAnswer::Waiting; nodes.all.len()];
        let mut failures = Vec::new();
        while let Some((node, answer)) = fan.next().await {
            standings[node] = match answer.and_then(|reply| standing(&reply)) {
                Ok(standing) => standing,
                Err(problem) => {
                    failures.push((node, problem));
                    NodeAnswer::Failed
                }
            };
            let heard = standings.iter().copied();
            match conclude(heard, nodes.all.len(), nodes.quorum) {
                Conclusion::Wait | Conclusion::Undecided => {}
                conclusion => {
                    fan.leave_to_background(&nodes.env);
                    return Ok(conclusion);
                }
            }
        }
        let answered = nodes.all.len() - failures.len();
        failures.sort_by_key(|(node, _)| *node);
        let failures = failures.iter().map(|(node, problem)| (*node, problem));
        Err(nodes.no_quorum(answered, failures))
    }
}

#[async_trait]
impl LockBackend for RedlockBackend {
    fn name(&self) -> &'static str {
        name_of(self.tokens)
    }

    fn node(&self) -> &str {
        &self.nodes.names
    }

    fn requests(&self) -> Counter {
        self.nodes.requests.clone()
    }

    fn env(&self) -> &Env {
        &self.nodes.env
    }

    #[cfg(all(debug_assertions, feature = "mutants"))]
    fn new_owner(&self) -> String {
        let nonce = self.nonce.clone();
        nonce.unwrap_or_else(|| self.env().uuid().to_string())
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = Try::new(&self.nodes, ask, self.tokens);
        let answer = attempt.run(&self.proposals).await;
        answer.map_err(|problem| self.error(ask.key, problem))
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let error = |problem| self.error(ask.key, problem);
        let valid_for = validity(ask.ttl).map_err(error)?;
        let until = Instant::now() + valid_for;
        let order = Order::renew(ask.key, ask.owner, ttl_ms(ask.ttl));
        match self.conclude(order).await.map_err(error)? {
            Conclusion::Expired => Ok(RenewOutcome::Expired),
            Conclusion::Superseded => Ok(RenewOutcome::Superseded),
            _ => Ok(RenewOutcome::Renewed { until }),
        }
    }

    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let conclusion = self.conclude(self.nodes.release(key, owner)).await;
        match conclusion.map_err(|problem| self.error(key, problem))? {
            Conclusion::Expired => Ok(ReleaseOutcome::Expired),
            Conclusion::Superseded => Ok(ReleaseOutcome::Superseded),
            _ => Ok(ReleaseOutcome::Released),
        }
    }

    /// Releases on all nodes, on the connections on which the grants were requested, and
    /// so after them. Nobody has to wait for the answers.
    async fn abandon(&self, key: &str, owner: &str) -> Result<(), LockError> {
        let mut releases = self.nodes.ask(self.nodes.release(key, owner), |_| true);
        releases.send().await;
        releases.leave_to_background(&self.nodes.env);
        Ok(())
    }
}

fn name_of(tokens: TokenScheme) -> &'static str {
    match tokens {
        TokenScheme::Strict => "redlock",
        #[cfg(feature = "unsafe-modes")]
        TokenScheme::UnsafeMaxOfCounters => "redlock-unsafe-tokens",
    }
}

/// Returns how long a lock with this TTL may be believed in, counted from before it was
/// requested: the clocks of the nodes may run a little faster than ours.
fn validity(ttl: Duration) -> Result<Duration, LockProblem> {
    let drift = ttl / 100 + Duration::from_millis(2);
    let rest = ttl.checked_sub(drift).filter(|rest| !rest.is_zero());
    rest.ok_or(LockProblem::TtlWithinDrift { ttl, drift })
}

/// Reads the answer of the scripts for a renewal and a release.
fn standing(reply: &Reply) -> Result<NodeAnswer, LockProblem> {
    match reply.code {
        0 => Ok(NodeAnswer::Expired),
        1 => Ok(NodeAnswer::Ours),
        2 => Ok(NodeAnswer::Superseded),
        _ => Err(reply.is_strange()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_that_the_drift_eats_is_refused() {
        let ms = Duration::from_millis;
        assert_eq!(validity(ms(2_000)), Ok(ms(1_978)));
        assert_eq!(validity(ms(3)), Ok(Duration::from_micros(970)));
        for ttl in [ms(1), ms(2)] {
            let problem = validity(ttl).unwrap_err();
            assert!(problem.is_final(), "waiting would not help: {problem}");
        }
    }
}
