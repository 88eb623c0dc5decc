#[cfg(any(feature = "postgres", feature = "redis"))]
use crate::{Attempt, Grant, LastWord, LockProblem};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
#[cfg(any(feature = "postgres", feature = "redis"))]
use std::time::Duration;
use tokio::sync::oneshot;
#[cfg(any(feature = "postgres", feature = "redis"))]
use tokio::time::timeout;

/// The waiters of this process for words from the server, on one connection.
///
/// A word has a name. What names and words mean is up to the backend: a hand-off to an
/// owner, or the news that a key was freed.
#[derive(Default)]
pub(super) struct Wakes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    expected: HashMap<String, VecDeque<Expected>>,
    /// The number of words expected so far.
    count: u64,
    /// Whether the connection is gone, so that no word will come any more.
    over: bool,
}

struct Expected {
    number: u64,
    word: oneshot::Sender<String>,
}

/// One word that somebody waits for. Dropping it ends the wait; if the word had come and
/// was not acted on, the next in line gets it instead.
pub(super) struct Wake {
    wakes: Arc<Wakes>,
    name: String,
    number: u64,
    word: oneshot::Receiver<String>,
    heard: Option<String>,
}

/// The connection ended before the word came.
#[derive(Debug)]
pub(super) struct ConnectionOver;

impl Wakes {
    /// Expects a word of this name: from now on it is not missed.
    pub(super) fn expect(self: &Arc<Wakes>, name: &str) -> Result<Wake, ConnectionOver> {
        let mut state = self.state.lock();
        if state.over {
            return Err(ConnectionOver);
        }
        state.count += 1;
        let number = state.count;
        let (sender, word) = oneshot::channel();
        let expected = Expected {
            number,
            word: sender,
        };
        let name = name.to_owned();
        state
            .expected
            .entry(name.clone())
            .or_default()
            .push_back(expected);
        Ok(Wake {
            wakes: self.clone(),
            name,
            number,
            word,
            heard: None,
        })
    }

    /// Gives the word to the longest waiter for this name, and to nobody else: only one
    /// can have the lock, and one that is woken in vain waits again. If nobody waits, the
    /// waiters gave up, and their leftovers are being undone.
    pub(super) fn told(&self, name: &str, word: &str) {
        let mut state = self.state.lock();
        let Some(expected) = state.expected.get_mut(name) else {
            return;
        };
        while let Some(first) = expected.pop_front() {
            if first.word.send(word.to_owned()).is_ok() {
                break;
            }
        }
        if expected.is_empty() {
            state.expected.remove(name);
        }
    }

    /// Makes all waiters learn that no word will come on this connection any more.
    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.over = true;
        let expected = state
            .expected
            .drain()
            .flat_map(|(_name, expected)| expected);
        let mut expected: Vec<Expected> = expected.collect();
        // Those who waited longest are told first.
        expected.sort_unstable_by_key(|one| one.number);
    }

    #[cfg(any(feature = "postgres", feature = "redis"))]
    pub(super) fn are_over(&self) -> bool {
        self.state.lock().over
    }

    fn forget(&self, name: &str, number: u64) {
        let mut state = self.state.lock();
        if let Some(expected) = state.expected.get_mut(name) {
            expected.retain(|expected| expected.number != number);
            if expected.is_empty() {
                state.expected.remove(name);
            }
        }
    }
}

impl Wake {
    pub(super) async fn word(&mut self) -> Result<&str, ConnectionOver> {
        let word = (&mut self.word).await.map_err(|_| ConnectionOver)?;
        Ok(self.heard.insert(word))
    }

    /// Notes that the word was acted on.
    pub(super) fn acted_on(mut self) {
        self.heard = None;
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.wakes.forget(&self.name, self.number);
        let heard = self.heard.take().or_else(|| self.word.try_recv().ok());
        if let Some(word) = heard {
            self.wakes.told(&self.name, &word);
        }
    }
}

/// After this time nobody relies on an announcement any more: the connection may have ended
/// unnoticed, and a pooler in between may keep announcements to itself.
#[cfg(any(feature = "postgres", feature = "redis"))]
const RETRY_IN_MAX: Duration = Duration::from_secs(5);

/// Tries until the lock is granted, each time when its release was announced or its hold has
/// expired. `expect` listens for the announcement; `None` if its connection ended meanwhile.
///
/// There is no order between processes: in each of them one waiter tries.
#[cfg(any(feature = "postgres", feature = "redis"))]
pub(super) async fn granted_when_freed<T, E>(
    last: &LastWord,
    try_once: impl Fn() -> T,
    expect: impl Fn() -> E,
) -> Result<Grant, LockProblem>
where
    T: Future<Output = Result<Attempt, LockProblem>>,
    E: Future<Output = Result<Option<Wake>, LockProblem>>,
{
    let mut woken: Option<Wake> = None;
    loop {
        // Listen, then try, then wait: in any other order a release can come in between,
        // and nobody learns of it.
        let Some(mut freed) = expect().await? else {
            continue;
        };
        let attempt = try_once().await?;
        // If we are cancelled before the answer, the wake-up is passed on to another
        // waiter.
        if let Some(woken) = woken.take() {
            woken.acted_on();
        }
        let retry_in = match attempt {
            Attempt::Granted(grant) => return Ok(grant),
            Attempt::Busy { retry_in } => retry_in,
        };
        last.is_busy();
        // Nobody announces a hold that expires. Whatever ended the wait, including the end of
        // the connection, the next step is to try again.
        let expires_in = retry_in.saturating_add(Duration::from_millis(1));
        let word = timeout(expires_in.min(RETRY_IN_MAX), freed.word()).await;
        woken = matches!(word, Ok(Ok(_))).then_some(freed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_word_reaches_who_waited_longest_and_nobody_else() {
        let wakes = Arc::new(Wakes::default());
        let mut a = wakes.expect("a").unwrap();
        let mut also_a = wakes.expect("a").unwrap();
        let mut b = wakes.expect("b").unwrap();
        wakes.told("a", "7");
        assert_eq!(a.word().await.unwrap(), "7");
        a.acted_on();
        assert!(also_a.word.try_recv().is_err());
        wakes.told("b", "8");
        assert_eq!(b.word().await.unwrap(), "8");
    }

    #[tokio::test]
    async fn a_word_that_nobody_acted_on_is_passed_on() {
        let wakes = Arc::new(Wakes::default());
        let mut heard = wakes.expect("a").unwrap();
        let unheard = wakes.expect("a").unwrap();
        let mut last = wakes.expect("a").unwrap();
        wakes.told("a", "7");
        assert_eq!(heard.word().await.unwrap(), "7");
        drop(heard);
        drop(unheard);
        assert_eq!(last.word().await.unwrap(), "7");
    }

    #[cfg(any(feature = "postgres", feature = "redis"))]
    #[tokio::test]
    async fn the_end_of_the_connection_reaches_everybody() {
        let wakes = Arc::new(Wakes::default());
        let mut a = wakes.expect("a").unwrap();
        wakes.end();
        assert!(a.word().await.is_err());
        assert!(wakes.expect("a").is_err());
    }

    #[test]
    fn who_gives_up_leaves_nothing() {
        let wakes = Arc::new(Wakes::default());
        let a = wakes.expect("a").unwrap();
        let also_a = wakes.expect("a").unwrap();
        drop(a);
        assert_eq!(wakes.state.lock().expected["a"].len(), 1);
        drop(also_a);
        assert!(wakes.state.lock().expected.is_empty());
    }
}
