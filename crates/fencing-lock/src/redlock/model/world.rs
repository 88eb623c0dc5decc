//! A world of nodes and tries in which one thing happens at a time: a message arrives, an
//! answer is heard or is not, a lock expires.

use crate::redlock::decision::{Decision, TokenScheme, Vote, decide};
use std::fmt;

/// The scheme to explore, and the mistake made in it on purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<const TRIES: usize> {
    pub(super) quorum: usize,
    pub(super) scheme: TokenScheme,
    pub(super) mutant: Option<Mutant>,
    pub(super) proposals: [u8; TRIES],
    /// Whether a try begins only when the one before it is over.
    pub(super) one_after_another: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutant {
    /// Raises the counter no matter who holds the lock by then.
    WriteBackUnconditional,
    /// Lets one node lose its counter and its lock, once.
    NodeForgets,
    /// Gives the last two tries the same owner.
    OwnerUsedTwice,
    /// Re-creates an expired lock, by an extension while the token is written back.
    ExtensionRevives,
}

/// The state of all nodes and tries. A lock may expire at any moment. Only a message that
/// arrives at its node can notice, so it expires just before an arrival or it does not. A
/// release is not a separate step either: on a node it does what the end of the TTL does.
///
/// An answer is heard at once or never. Hearing it later would only let the try complete
/// later, and with the same token: then fewer tries begin after it, and fewer orders are
/// demanded. An answer that a client gives up on is the same as one that it never hears.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World<const NODES: usize, const TRIES: usize> {
    nodes: [Node<TRIES>; NODES],
    tries: [Phase; TRIES],
    has_forgotten: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Node<const TRIES: usize> {
    counter: u8,
    holder: Option<u8>,
    messages: [Message; TRIES],
}

/// The state of the messages between one try and one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Message {
    Asked,
    /// The grant was heard. After a write-back, this is the token.
    Granted(u8),
    WritingBack,
    /// The request was refused or not heard, or is of no interest any more.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    NotBegun,
    /// `above` is the highest token of the locks that were held before it began.
    Asking {
        above: u8,
    },
    WritingBack {
        above: u8,
        token: u8,
    },
    Held {
        token: u8,
    },
    /// The token that it wrote back may still arrive.
    Failed {
        token: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Begin {
        attempt: usize,
    },
    Arrive {
        attempt: usize,
        node: usize,
        /// Whether the lock on the node expires before the arrival.
        run_out: bool,
        heard: bool,
    },
    Forget {
        node: usize,
    },
    Revive {
        attempt: usize,
        node: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// Two holds have the same token.
    Twice { token: u8 },
    /// A hold that began after another has the lower token.
    Backwards { from: u8, to: u8 },
}

impl<const NODES: usize, const TRIES: usize> World<NODES, TRIES> {
    pub(super) fn new() -> Self {
        let node = Node {
            counter: 0,
            holder: None,
            messages: [Message::Nothing; TRIES],
        };
        World {
            nodes: [node; NODES],
            tries: [Phase::NotBegun; TRIES],
            has_forgotten: false,
        }
    }

    /// Returns the tokens of the held locks, in the order in which the tries began.
    pub(super) fn tokens(&self) -> Vec<u8> {
        let held = self.tries.iter().filter_map(|phase| match phase {
            Phase::Held { token } => Some(*token),
            _ => None,
        });
        held.collect()
    }

    /// Maps worlds to the same world if they differ only in state that cannot matter any
    /// more, or in the names of their nodes.
    pub(super) fn simplified(mut self) -> Self {
        let all_begun = !self.tries.contains(&Phase::NotBegun);
        for node in &mut self.nodes {
            let under_way = |m: &Message| matches!(m, Message::Asked | Message::WritingBack);
            if all_begun && !node.messages.iter().any(under_way) {
                node.counter = 0;
                node.holder = None;
            }
        }
        for attempt in 0..TRIES {
            let writing = |n: &Node<TRIES>| n.messages[attempt] == Message::WritingBack;
            if let Phase::Failed { token } = &mut self.tries[attempt]
                && !self.nodes.iter().any(writing)
            {
                *token = 0;
            }
        }
        self.nodes.sort_unstable();
        self
    }

    pub(super) fn steps(&self, rules: &Rules<TRIES>, steps: &mut Vec<Step>) {
        steps.clear();
        let over = |phase: &Phase| matches!(phase, Phase::Held { .. } | Phase::Failed { .. });
        if self.tries.iter().all(over) {
            return;
        }
        // Tries that have not begun are alike, so they begin in order.
        let next = self.tries.iter().position(|t| *t == Phase::NotBegun);
        if let Some(attempt) = next
            && (!rules.one_after_another || self.tries[..attempt].iter().all(over))
        {
            steps.push(Step::Begin { attempt });
        }
        for (node, state) in self.nodes.iter().enumerate() {
            for (attempt, message) in state.messages.iter().enumerate() {
                if matches!(message, Message::Asked | Message::WritingBack) {
                    // Try both choices where they make a difference.
                    let run_out = if state.holder.is_some() { 2 } else { 1 };
                    let heard = if self.awaits(attempt, *message) { 2 } else { 1 };
                    for choice in 0..run_out * heard {
                        steps.push(Step::Arrive {
                            attempt,
                            node,
                            run_out: choice >= heard,
                            heard: choice % heard == 1,
                        });
                    }
                }
                if rules.mutant == Some(Mutant::ExtensionRevives)
                    && *message == Message::WritingBack
                    && state.holder != Some(owner(attempt, rules))
                {
                    steps.push(Step::Revive { attempt, node });
                }
            }
            if rules.mutant == Some(Mutant::NodeForgets) && !self.has_forgotten {
                steps.push(Step::Forget { node });
            }
        }
    }

    pub(super) fn take(&mut self, step: Step, rules: &Rules<TRIES>) -> Result<(), Violation> {
        match step {
            Step::Begin { attempt } => {
                let above = self.tokens().into_iter().max().unwrap_or(0);
                self.tries[attempt] = Phase::Asking { above };
                for node in &mut self.nodes {
                    node.messages[attempt] = Message::Asked;
                }
            }
            Step::Arrive {
                attempt,
                node,
                run_out,
                heard,
            } => {
                if run_out {
                    self.nodes[node].holder = None;
                }
                self.arrive(attempt, node, heard, rules);
                return self.conclude(attempt, rules);
            }
            Step::Forget { node } => {
                self.nodes[node].counter = 0;
                self.nodes[node].holder = None;
                self.has_forgotten = true;
            }
            Step::Revive { attempt, node } => {
                self.nodes[node].holder = Some(owner(attempt, rules));
            }
        }
        Ok(())
    }

    /// Returns whether the client still listens for the answer to this message.
    fn awaits(&self, attempt: usize, message: Message) -> bool {
        match self.tries[attempt] {
            Phase::Asking { .. } => true,
            Phase::WritingBack { .. } => message == Message::WritingBack,
            _ => false,
        }
    }

    /// Does what the scripts do.
    fn arrive(&mut self, attempt: usize, node: usize, heard: bool, rules: &Rules<TRIES>) {
        let node = &mut self.nodes[node];
        let owner = owner(attempt, rules);
        let answer = match (node.messages[attempt], self.tries[attempt]) {
            (Message::Asked, _) => {
                if node.holder.is_none() {
                    node.holder = Some(owner);
                    let proposal = match rules.scheme {
                        TokenScheme::Strict => rules.proposals[attempt],
                        TokenScheme::UnsafeMaxOfCounters => 0,
                    };
                    node.counter = (node.counter + 1).max(proposal);
                    Message::Granted(node.counter)
                } else {
                    Message::Nothing
                }
            }
            (
                Message::WritingBack,
                Phase::WritingBack { token, .. } | Phase::Held { token } | Phase::Failed { token },
            ) => {
                let ours = node.holder == Some(owner);
                if ours || rules.mutant == Some(Mutant::WriteBackUnconditional) {
                    node.counter = node.counter.max(token);
                    Message::Granted(token)
                } else {
                    Message::Nothing
                }
            }
            other => unreachable!("nothing to arrive: {other:?}"),
        };
        node.messages[attempt] = if heard { answer } else { Message::Nothing };
    }

    /// Does what the backend does with the answers heard so far.
    fn conclude(&mut self, attempt: usize, rules: &Rules<TRIES>) -> Result<(), Violation> {
        let (above, writing_back) = match self.tries[attempt] {
            Phase::Asking { above } => (above, None),
            Phase::WritingBack { above, token } => (above, Some(token)),
            _ => return Ok(()),
        };
        let votes = self.nodes.iter().map(|node| match node.messages[attempt] {
            // These are not awaited any more.
            Message::Asked if writing_back.is_some() => Vote::No,
            Message::Asked | Message::WritingBack => Vote::Waiting,
            Message::Granted(counter) => Vote::Granted(counter.into()),
            Message::Nothing => Vote::No,
        });
        match decide(votes, rules.quorum, rules.scheme) {
            Decision::Wait => Ok(()),
            Decision::WriteBack(token) => {
                let token = small(token);
                self.tries[attempt] = Phase::WritingBack { above, token };
                for node in &mut self.nodes {
                    if matches!(node.messages[attempt], Message::Granted(c) if c < token) {
                        node.messages[attempt] = Message::WritingBack;
                    }
                }
                Ok(())
            }
            Decision::Held(token) => {
                let token = small(token);
                let twice = self.tokens().contains(&token);
                self.end(attempt, Phase::Held { token });
                if token < above {
                    let (from, to) = (above, token);
                    return Err(Violation::Backwards { from, to });
                }
                if twice || token == above {
                    return Err(Violation::Twice { token });
                }
                Ok(())
            }
            Decision::Impossible => {
                let token = writing_back.unwrap_or(0);
                self.end(attempt, Phase::Failed { token });
                Ok(())
            }
        }
    }

    fn end(&mut self, attempt: usize, phase: Phase) {
        self.tries[attempt] = phase;
        for node in &mut self.nodes {
            if matches!(node.messages[attempt], Message::Granted(_)) {
                node.messages[attempt] = Message::Nothing;
            }
        }
    }
}

fn owner<const TRIES: usize>(attempt: usize, rules: &Rules<TRIES>) -> u8 {
    let reused = rules.mutant == Some(Mutant::OwnerUsedTwice) && attempt + 1 == TRIES;
    (attempt - usize::from(reused)) as u8
}

fn small(token: u64) -> u8 {
    u8::try_from(token).expect("a short story has small tokens")
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Begin { attempt } => write!(f, "try {attempt} begins"),
            Step::Arrive {
                attempt,
                node,
                run_out,
                heard,
            } => {
                let run_out = if *run_out {
                    ", after a lock ran out,"
                } else {
                    ""
                };
                let how = if *heard {
                    "is answered"
                } else {
                    "is not heard"
                };
                write!(f, "try {attempt} reaches node {node}{run_out} and {how}")
            }
            Step::Forget { node } => write!(f, "node {node} forgets everything"),
            Step::Revive { attempt, node } => write!(f, "try {attempt} revives node {node}"),
        }
    }
}
