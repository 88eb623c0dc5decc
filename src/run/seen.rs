use crate::scenario::Trigger;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// The events that have come so far, for steps that wait for one.
#[derive(Clone)]
pub struct Seen(Arc<watch::Sender<EventCounts>>);

#[derive(Default)]
struct EventCounts {
    /// The number of times that each event has come, by source and event.
    counts: HashMap<(String, String), u32>,
    awaited: Vec<Trigger>,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen(Arc::new(watch::Sender::new(EventCounts::default())))
    }
}

impl Seen {
    pub fn note(&self, source: &str, event: &str) {
        self.0.send_modify(|known| {
            let name = (source.to_owned(), event.to_owned());
            *known.counts.entry(name).or_default() += 1;
        });
    }

    /// Returns once the event has come, at once if it has come already. Its deadline is that of the
    /// case, which names what is awaited.
    pub async fn wait_for(&self, event: &Trigger) {
        self.0
            .send_modify(|known| known.awaited.push(event.clone()));
        let mut known = self.0.subscribe();
        // This cannot fail, because `self` holds the sender.
        let _ = known.wait_for(|known| known.has(event)).await;
        self.0.send_modify(|known| known.forget(event));
    }

    /// Returns the events that steps wait for.
    pub fn awaited(&self) -> Vec<Trigger> {
        self.0.borrow().awaited.clone()
    }
}

impl EventCounts {
    fn has(&self, event: &Trigger) -> bool {
        let name = (event.source.clone(), event.event.clone());
        let count = self.counts.get(&name).copied();
        count.unwrap_or_default() >= event.occurrence
    }

    /// Removes one wait only, because two steps may wait for the same event.
    fn forget(&mut self, event: &Trigger) {
        if let Some(at) = self.awaited.iter().position(|known| known == event) {
            self.awaited.remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn an_event_that_has_come_is_not_waited_for() {
        let seen = Seen::default();
        let second = Trigger::parse("a.acquired#2").unwrap();
        seen.note("a", "acquired");
        let mut waiting = Box::pin(seen.wait_for(&second));
        assert!(waiting.as_mut().now_or_never().is_none());
        assert_eq!(seen.awaited(), std::slice::from_ref(&second));
        seen.note("b", "acquired");
        assert!(waiting.as_mut().now_or_never().is_none());
        seen.note("a", "acquired");
        waiting.await;
        assert_eq!(seen.awaited(), []);
        seen.wait_for(&second).await;
    }
}
