//! A value that many follow. Whoever waits for the next one is woken in the order in which they
//! began to wait, which tokio's `watch` leaves to chance: a simulation has to be the same each time.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

pub struct Announcer<T>(Arc<Shared<T>>);

struct Shared<T> {
    latest: Mutex<Latest<T>>,
    bell: Notify,
}

struct Latest<T> {
    value: T,
    version: u64,
    is_over: bool,
}

/// Nobody announces any more.
#[derive(Debug)]
pub struct Over;

impl<T: Clone + PartialEq> Announcer<T> {
    pub fn new(value: T) -> Announcer<T> {
        let latest = Mutex::new(Latest {
            value,
            version: 0,
            is_over: false,
        });
        let bell = Notify::new();
        Announcer(Arc::new(Shared { latest, bell }))
    }

    /// Announces a value, unless it is the latest already.
    pub fn announce(&self, value: T) {
        {
            let mut latest = self.0.latest.lock();
            if latest.value == value {
                return;
            }
            latest.value = value;
            latest.version += 1;
        }
        self.0.bell.notify_waiters();
    }

    pub fn follow(&self) -> Follower<T> {
        let shared = self.0.clone();
        let seen = shared.latest.lock().version;
        Follower { shared, seen }
    }
}

impl<T> Drop for Announcer<T> {
    fn drop(&mut self) {
        self.0.latest.lock().is_over = true;
        self.0.bell.notify_waiters();
    }
}

pub struct Follower<T> {
    shared: Arc<Shared<T>>,
    seen: u64,
}

impl<T: Clone> Follower<T> {
    /// Returns the latest value, which has been seen then.
    pub fn latest(&mut self) -> T {
        let latest = self.shared.latest.lock();
        self.seen = latest.version;
        latest.value.clone()
    }

    pub fn has_changed(&self) -> Result<bool, Over> {
        let latest = self.shared.latest.lock();
        match latest.is_over {
            true => Err(Over),
            false => Ok(latest.version != self.seen),
        }
    }

    /// Waits for a value that was not seen yet.
    pub async fn changed(&self) -> Result<(), Over> {
        loop {
            let mut rings = std::pin::pin!(self.shared.bell.notified());
            // What is announced from here on rings.
            rings.as_mut().enable();
            if self.has_changed()? {
                return Ok(());
            }
            rings.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    #[tokio::test]
    async fn followers_are_woken_in_the_order_in_which_they_wait() {
        let announcer = Announcer::new(0);
        let (send, mut woken) = mpsc::unbounded_channel();
        for number in 0..50 {
            let (mut follower, send) = (announcer.follow(), send.clone());
            tokio::spawn(async move {
                follower.changed().await.unwrap();
                assert_eq!(follower.latest(), 1);
                send.send(number).unwrap();
                assert!(follower.changed().await.is_err());
            });
        }
        tokio::task::yield_now().await;
        announcer.announce(1);
        drop(send);
        let mut order = Vec::new();
        while order.len() < 50 {
            order.push(woken.recv().await.unwrap());
        }
        assert_eq!(order, (0..50).collect::<Vec<_>>());
        drop(announcer);
        assert_eq!(woken.recv().await, None);
    }

    #[tokio::test]
    async fn the_same_value_again_is_no_news() {
        let announcer = Announcer::new(1);
        let follower = announcer.follow();
        announcer.announce(1);
        assert!(!follower.has_changed().unwrap());
        announcer.announce(2);
        assert!(follower.has_changed().unwrap());
    }
}
