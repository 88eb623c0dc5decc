use super::*;
use std::collections::BTreeMap;
use std::time::Instant;

/// The errors of one kind of server, counted by message, and whether anything still succeeds there.
#[derive(Default)]
pub(super) struct Health {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    errors: BTreeMap<String, u64>,
    /// Since when there were only errors.
    failing_since: Option<Instant>,
}

/// The most messages that are kept apart. Messages can differ in a number only, and a reader
/// wants to see kinds.
const KINDS_MAX: usize = 20;
const OTHERS: &str = "other errors";

impl Health {
    pub(super) fn went_right(&self) {
        self.state.lock().failing_since = None;
    }

    pub(super) fn went_wrong(&self, words: String) {
        let mut state = self.state.lock();
        state.failing_since.get_or_insert_with(Instant::now);
        let is_known = state.errors.contains_key(&words);
        let words = match is_known || state.errors.len() < KINDS_MAX {
            true => words,
            false => OTHERS.to_owned(),
        };
        *state.errors.entry(words).or_default() += 1;
    }

    pub(super) fn fails_for(&self, at_least: Duration) -> bool {
        let since = self.state.lock().failing_since;
        since.is_some_and(|since| since.elapsed() >= at_least)
    }

    pub(super) fn take_errors(&self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.state.lock().errors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_answer_ends_a_row_of_errors() {
        let health = Health::default();
        assert!(!health.fails_for(Duration::ZERO));
        health.went_wrong("OOM".to_owned());
        assert!(health.fails_for(Duration::ZERO));
        assert!(!health.fails_for(Duration::from_secs(3_600)));
        health.went_right();
        assert!(!health.fails_for(Duration::ZERO));
        assert_eq!(health.take_errors()["OOM"], 1, "the count stays");
    }

    #[test]
    fn the_kinds_of_errors_have_a_bound() {
        let health = Health::default();
        for number in 0..100 {
            health.went_wrong(format!("error {number}"));
        }
        health.went_wrong("error 3".to_owned());
        let errors = health.take_errors();
        assert_eq!(errors.len(), KINDS_MAX + 1);
        assert_eq!(errors["error 3"], 2);
        assert_eq!(errors[OTHERS], 80);
    }
}
