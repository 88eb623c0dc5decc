use super::LockProblem;
use parking_lot::Mutex;
use std::time::Duration;

/// This is longer than a backend takes to find out that a server does not answer.
const A_MOMENT: Duration = Duration::from_secs(2);

/// What the servers said last to somebody who waits, for the error at its deadline.
#[derive(Debug, Default)]
pub struct LastWord {
    said: Mutex<Option<Said>>,
}

#[derive(Debug)]
enum Said {
    Busy,
    Problem(LockProblem),
}

impl LastWord {
    /// Notes that a server said that somebody else holds the lock.
    pub fn is_busy(&self) {
        *self.said.lock() = Some(Said::Busy);
    }

    pub fn is_problem(&self, problem: LockProblem) {
        *self.said.lock() = Some(Said::Problem(problem));
    }

    /// Returns the last problem after a wait of this length, or `None` if the lock was
    /// busy at last. A short wait in which nobody said anything shows no problem.
    pub(super) fn into_problem(self, waited: Duration) -> Option<LockProblem> {
        match self.said.into_inner() {
            Some(Said::Busy) => None,
            Some(Said::Problem(problem)) => Some(problem),
            None if waited < A_MOMENT => None,
            None => Some(LockProblem::NoAnswer("the deadline came first".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_comes_at_once_accuses_no_server() {
        let after = |waited| LastWord::default().into_problem(waited);
        assert_eq!(after(Duration::ZERO), None);
        assert!(after(A_MOMENT).is_some());
        let last = LastWord::default();
        last.is_problem(LockProblem::NoAnswer("not within 500 ms".to_owned()));
        assert!(last.into_problem(Duration::ZERO).is_some());
    }
}
