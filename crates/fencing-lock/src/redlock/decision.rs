//! Conclusions of a client from the answers of some of the nodes. There is no I/O: the
//! backend runs these functions, and the model beside them explores the same ones in
//! every interleaving.

/// The source of a grant's token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenScheme {
    /// Tokens that only grow: see [`RedlockBackend`](super::RedlockBackend).
    #[default]
    Strict,
    #[cfg(feature = "unsafe-modes")]
    /// The highest of the counters that a quorum happened to answer with. It goes
    /// backwards without any fault: with three nodes and the quorums {1,2} {1,3} {1,2}
    /// {1,3} {2,3} the tokens are 1, 2, 3, 4, 3. It exists for the scenario that shows
    /// it.
    UnsafeMaxOfCounters,
}

/// One node's answer to a try, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    Waiting,
    /// Granted with its counter, or with the token that was written back to it since.
    Granted(u64),
    /// It refused or failed, or its answer is not awaited any more.
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    Wait,
    /// The lock is held with this token.
    Held(u64),
    /// A quorum granted the lock and does not agree on the token yet: it has to be
    /// written back to the nodes that are below it.
    WriteBack(u64),
    Impossible,
}

/// Decides as soon as the votes allow it: nobody waits for the slowest node.
pub(super) fn decide(
    votes: impl Iterator<Item = Vote> + Clone,
    quorum: usize,
    scheme: TokenScheme,
) -> Decision {
    let (mut granted, mut waiting, mut token) = (0, 0, 0);
    for vote in votes.clone() {
        match vote {
            Vote::Waiting => waiting += 1,
            Vote::Granted(counter) => {
                granted += 1;
                token = token.max(counter);
            }
            Vote::No => {}
        }
    }
    if granted + waiting < quorum {
        return Decision::Impossible;
    }
    if granted < quorum {
        return Decision::Wait;
    }
    let agreed = votes.filter(|vote| *vote == Vote::Granted(token)).count();
    match scheme {
        TokenScheme::Strict if agreed < quorum => Decision::WriteBack(token),
        TokenScheme::Strict => Decision::Held(token),
        #[cfg(feature = "unsafe-modes")]
        TokenScheme::UnsafeMaxOfCounters => Decision::Held(token),
    }
}

/// One node's answer to a renewal or a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeAnswer {
    Waiting,
    /// The lock was ours there, and the request was carried out.
    Ours,
    Expired,
    Superseded,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conclusion {
    Wait,
    /// A quorum carried the request out.
    Ours,
    /// So many nodes do not hold the lock for us that we cannot have a quorum.
    Expired,
    /// The same, and at least one of them holds it for somebody else. Another holder has
    /// a quorum, so at least one of the nodes that rule out ours is theirs; somebody
    /// whose try is still under way can look the same.
    Superseded,
    /// Too many nodes failed for a conclusion.
    Undecided,
}

pub(crate) fn conclude(
    standings: impl Iterator<Item = NodeAnswer>,
    nodes: usize,
    quorum: usize,
) -> Conclusion {
    let (mut ours, mut expired, mut superseded, mut waiting) = (0, 0, 0, 0);
    for standing in standings {
        match standing {
            NodeAnswer::Waiting => waiting += 1,
            NodeAnswer::Ours => ours += 1,
            NodeAnswer::Expired => expired += 1,
            NodeAnswer::Superseded => superseded += 1,
            NodeAnswer::Failed => {}
        }
    }
    let not_ours = expired + superseded;
    if ours >= quorum {
        Conclusion::Ours
    } else if not_ours > nodes - quorum && superseded > 0 {
        Conclusion::Superseded
    } else if not_ours > nodes - quorum {
        Conclusion::Expired
    } else if waiting > 0 {
        Conclusion::Wait
    } else {
        Conclusion::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Vote::{Granted, No, Waiting};

    fn strict(votes: &[Vote]) -> Decision {
        decide(votes.iter().copied(), 3, TokenScheme::Strict)
    }

    #[test]
    fn a_quorum_that_agrees_decides_whatever_the_others_do() {
        let votes = [Granted(7), Waiting, Granted(7), Granted(7), Waiting];
        assert_eq!(strict(&votes), Decision::Held(7));
        let votes = [Granted(7), No, Granted(7), Granted(7), Granted(6)];
        assert_eq!(strict(&votes), Decision::Held(7));
    }

    #[test]
    fn a_quorum_that_disagrees_has_to_be_written_back_to() {
        let votes = [Granted(7), Waiting, Granted(6), Granted(7), Waiting];
        assert_eq!(strict(&votes), Decision::WriteBack(7));
        // The highest counter may be on one node only: the others do not outvote it.
        let votes = [Granted(6), Granted(6), Granted(6), Granted(7), No];
        assert_eq!(strict(&votes), Decision::WriteBack(7));
    }

    #[test]
    fn a_quorum_that_cannot_come_is_not_waited_for() {
        assert_eq!(
            strict(&[No, No, Granted(1), Granted(1), Waiting]),
            Decision::Wait
        );
        assert_eq!(
            strict(&[No, No, Granted(1), No, Waiting]),
            Decision::Impossible
        );
    }

    #[test]
    fn the_naive_scheme_takes_the_highest_and_is_done() {
        let votes = [Granted(1), Granted(7), Granted(2), Waiting, Waiting];
        let decision = decide(votes.into_iter(), 3, TokenScheme::UnsafeMaxOfCounters);
        assert_eq!(decision, Decision::Held(7));
    }

    #[test]
    fn a_lock_is_over_when_no_quorum_can_be_ours_and_not_before() {
        use NodeAnswer::{Expired, Failed, Ours, Superseded, Waiting};
        let conclude = |standings: [NodeAnswer; 5]| conclude(standings.into_iter(), 5, 3);
        let both = [Ours, Ours, Ours, Waiting, Waiting];
        assert_eq!(conclude(both), Conclusion::Ours);
        let both = [Expired, Expired, Waiting, Waiting, Waiting];
        assert_eq!(conclude(both), Conclusion::Wait);
        let both = [Expired, Expired, Expired, Waiting, Ours];
        assert_eq!(conclude(both), Conclusion::Expired);
        let both = [Expired, Superseded, Expired, Waiting, Ours];
        assert_eq!(conclude(both), Conclusion::Superseded);
        let both = [Ours, Ours, Superseded, Failed, Failed];
        assert_eq!(conclude(both), Conclusion::Undecided);
    }
}
