use super::decision::{Decision, TokenScheme, Vote, decide};
use super::fan::Fan;
use super::nodes::{Nodes, Order};
use super::proposal::Proposals;
use super::validity;
use crate::FencingToken;
use crate::redis::{Reply, ttl_ms};
use crate::{Ask, Attempt, Grant, LockProblem, Term};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// The share of the TTL that a node without an answer may take. Nobody waits for it if
/// the others are a quorum.
const SHARE_OF_TTL: u32 = 10;
const PATIENCE_MIN: Duration = Duration::from_millis(20);

/// One try: it asks all nodes for a grant, and writes the token back if the quorum does
/// not agree on it.
pub(super) struct Try<'a> {
    nodes: &'a Arc<Nodes>,
    ask: Ask<'a>,
    scheme: TokenScheme,
    answers: Vec<Answer>,
}

/// The state of one node's answer.
enum Answer {
    Waiting,
    Granted(u64),
    Busy { left: Duration },
    Failed(LockProblem),
}

impl<'a> Try<'a> {
    pub(super) fn new(nodes: &'a Arc<Nodes>, ask: Ask<'a>, scheme: TokenScheme) -> Try<'a> {
        let answers = nodes.all.iter().map(|_| Answer::Waiting).collect();
        Try {
            nodes,
            ask,
            scheme,
            answers,
        }
    }

    /// Runs the try. After an error, the caller has to release what the nodes may have
    /// granted; if the lock is busy, it is released already.
    pub(super) async fn run(mut self, proposals: &Proposals) -> Result<Attempt, LockProblem> {
        let ttl = self.ask.ttl;
        // The drift is subtracted first, so that a lock that can never be held is an
        // error and not a lock that seems busy for ever.
        let valid_for = validity(ttl)?;
        // This is from before the first request was sent: the nodes count from later, so
        // the holder gives up first.
        let asked_at = Instant::now();
        let patience = (ttl / SHARE_OF_TTL).max(PATIENCE_MIN);
        let decision = match timeout_at(asked_at + patience, self.decide(proposals)).await {
            Ok(decision) => decision,
            Err(_) => {
                self.give_up_waiting(&format!("nothing within {} ms", patience.as_millis()));
                Decision::Impossible
            }
        };
        let Decision::Held(token) = decision else {
            return self.not_held().await;
        };
        proposals.saw(token);
        let term = Term::Until(asked_at + valid_for);
        Grant::new(FencingToken(token), asked_at, ttl, term).map(Attempt::Granted)
    }

    async fn decide(&mut self, proposals: &Proposals) -> Decision {
        let Ask { key, owner, ttl } = self.ask;
        let proposal = match self.scheme {
            TokenScheme::Strict => proposals.next(self.nodes.env.wall_clock()),
            #[cfg(feature = "unsafe-modes")]
            TokenScheme::UnsafeMaxOfCounters => 0,
        };
        let order = Order::acquire(key, owner, ttl_ms(ttl), proposal);
        let grants = self.nodes.ask(order, |_| true);
        let read = |reply: &Reply| read_grant(reply, proposal);
        let decision = self.hear(grants, read).await;
        let Decision::WriteBack(token) = decision else {
            return decision;
        };
        // Nodes that are not awaited any more have no vote, whatever their counters are;
        // those below the token vote again once they have it.
        self.give_up_waiting("the others were quicker");
        for answer in &mut self.answers {
            if matches!(answer, Answer::Granted(counter) if *counter < token) {
                *answer = Answer::Waiting;
            }
        }
        let order = Order::write_back(key, owner, token);
        let below = |node: usize| matches!(self.answers[node], Answer::Waiting);
        let acknowledgements = self.nodes.ask(order, below);
        self.hear(acknowledgements, |written| {
            if written.code == 1 {
                return Ok(Answer::Granted(token));
            }
            let reason = "its grant was over before the token was written back";
            Err(LockProblem::Refused(reason.to_owned()))
        })
        .await
    }

    /// Listens until the votes decide. The requests without an answer are dropped then: a
    /// grant must not be under way any more when its release is sent.
    async fn hear(
        &mut self,
        mut fan: Fan,
        read: impl Fn(&Reply) -> Result<Answer, LockProblem>,
    ) -> Decision {
        loop {
            let votes = self.answers.iter().map(Answer::vote);
            let decision = decide(votes, self.nodes.quorum, self.scheme);
            if decision != Decision::Wait {
                return decision;
            }
            let Some((node, answer)) = fan.next().await else {
                return Decision::Impossible;
            };
            let answer = answer.and_then(|reply| read(&reply));
            self.answers[node] = answer.unwrap_or_else(Answer::Failed);
        }
    }

    fn give_up_waiting(&mut self, reason: &str) {
        for answer in &mut self.answers {
            if matches!(answer, Answer::Waiting) {
                *answer = Answer::Failed(LockProblem::NoAnswer(reason.to_owned()));
            }
        }
    }

    /// Returns that the lock is busy, or an error if so many nodes failed that nobody
    /// could have held it.
    async fn not_held(self) -> Result<Attempt, LockProblem> {
        let failures = self.answers.iter().enumerate();
        let failures = failures.filter_map(|(node, answer)| match answer {
            Answer::Failed(problem) => Some((node, problem)),
            _ => None,
        });
        if failures.clone().count() > self.answers.len() - self.nodes.quorum {
            let answered =
                |answer: &&Answer| matches!(answer, Answer::Granted(_) | Answer::Busy { .. });
            let answered = self.answers.iter().filter(answered).count();
            return Err(self.nodes.no_quorum(answered, failures));
        }
        // A node that said "busy" holds nothing of ours. All others do, or may later. The
        // releases are sent before this returns, so that the next try comes after them.
        let order = self.nodes.release(self.ask.key, self.ask.owner);
        let may_hold = |node: usize| !matches!(self.answers[node], Answer::Busy { .. });
        let mut releases = self.nodes.ask(order, may_hold);
        releases.send().await;
        releases.leave_to_background(&self.nodes.env);
        let retry_in = retry_in(&self.answers, self.nodes.quorum);
        Ok(Attempt::Busy { retry_in })
    }
}

/// Returns the time until so many of the present holds have expired that a quorum could
/// be free.
fn retry_in(answers: &[Answer], quorum: usize) -> Duration {
    let free_in = answers.iter().map(|answer| match answer {
        Answer::Busy { left } => *left,
        Answer::Granted(_) | Answer::Waiting => Duration::ZERO,
        Answer::Failed(_) => Duration::MAX,
    });
    let mut free_in: Vec<Duration> = free_in.collect();
    free_in.sort_unstable();
    free_in[quorum - 1]
}

impl Answer {
    fn vote(&self) -> Vote {
        match self {
            Answer::Waiting => Vote::Waiting,
            Answer::Granted(counter) => Vote::Granted(*counter),
            Answer::Busy { .. } | Answer::Failed(_) => Vote::No,
        }
    }
}

/// Reads what scripts/acquire.lua answers and explains.
fn read_grant(reply: &Reply, proposal: u64) -> Result<Answer, LockProblem> {
    if reply.code == 3 && proposal > 0 {
        return Ok(Answer::Granted(proposal));
    }
    let [number] = reply.numbers()?;
    match (reply.code, u64::try_from(number)) {
        (1, Ok(counter @ 1..)) => Ok(Answer::Granted(counter)),
        (2, left_ms) => Ok(Answer::Busy {
            // It is negative if the lock has no end.
            left: left_ms.map_or(Duration::MAX, Duration::from_millis),
        }),
        _ => Err(reply.is_strange()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_positive_number_is_a_grant() {
        let read = |code, number| read_grant(&Reply::of(code, &[number]), 9);
        assert!(matches!(read(1, 7), Ok(Answer::Granted(7))));
        let ms = Duration::from_millis;
        assert!(matches!(read(2, 20), Ok(Answer::Busy { left }) if left == ms(20)));
        assert!(matches!(read(2, -1), Ok(Answer::Busy { left }) if left == Duration::MAX));
        assert!(matches!(read(3, 0), Ok(Answer::Granted(9))));
        for (code, number) in [(1, 0), (1, -7), (0, 7), (4, 7)] {
            assert!(read(code, number).is_err(), "{code} {number}");
        }
        assert!(read_grant(&Reply::of(1, &[]), 9).is_err());
        assert!(read_grant(&Reply::of(3, &[]), 0).is_err());
    }

    #[test]
    fn the_next_try_makes_sense_when_a_quorum_could_be_free() {
        let ms = Duration::from_millis;
        let busy = |left_ms| Answer::Busy { left: ms(left_ms) };
        let answers = [
            busy(30),
            busy(10),
            busy(20),
            Answer::Granted(1),
            Answer::Waiting,
        ];
        assert_eq!(retry_in(&answers, 3), ms(10));
        assert_eq!(retry_in(&answers, 5), ms(30));
        let failed = Answer::Failed(LockProblem::NoAnswer(String::new()));
        let answers = [busy(10), failed, busy(20)];
        assert_eq!(retry_in(&answers, 2), ms(20));
    }
}
