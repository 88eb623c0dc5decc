//! Slots for work that is done at the same time. Work with more weight takes more slots.

use futures_util::stream::{FuturesUnordered, StreamExt};
use std::pin::Pin;

type Work<'a, T> = Pin<Box<dyn Future<Output = (u32, T)> + 'a>>;

pub struct Slots<'a, T> {
    all: u32,
    free: u32,
    under_way: FuturesUnordered<Work<'a, T>>,
}

impl<'a, T: 'a> Slots<'a, T> {
    pub fn new(all: u32) -> Slots<'a, T> {
        Slots {
            all,
            free: all,
            under_way: FuturesUnordered::new(),
        }
    }

    pub fn has_room(&self, weight: u32) -> bool {
        self.taken_by(weight) <= self.free
    }

    /// Adds work for which there is room. It begins with the next call of [`next`](Slots::next).
    pub fn begin(&mut self, weight: u32, work: impl Future<Output = T> + 'a) {
        let taken = self.taken_by(weight);
        self.free = self.free.saturating_sub(taken);
        let work = async move { (taken, work.await) };
        self.under_way.push(Box::pin(work));
    }

    /// Returns what ends next, whichever began first; None if nothing is under way.
    pub async fn next(&mut self) -> Option<T> {
        let (taken, ended) = self.under_way.next().await?;
        self.free += taken;
        Some(ended)
    }

    /// Returns the slots that work takes. Work that weighs more than all slots runs alone.
    fn taken_by(&self, weight: u32) -> u32 {
        weight.clamp(1, self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::sleep;

    async fn takes(seconds: u64) -> u64 {
        sleep(Duration::from_secs(seconds)).await;
        seconds
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_are_under_way_at_once_and_no_more() {
        let mut slots = Slots::new(2);
        slots.begin(1, takes(3));
        assert!(slots.has_room(1));
        slots.begin(1, takes(1));
        assert!(!slots.has_room(1));
        assert_eq!(slots.next().await, Some(1));
        assert!(slots.has_room(1));
        slots.begin(1, takes(1));
        assert_eq!(slots.next().await, Some(1), "it ends before the first");
        assert_eq!(slots.next().await, Some(3));
        assert_eq!(slots.next().await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_heavy_takes_several_and_never_waits_forever() {
        let mut slots = Slots::new(4);
        slots.begin(3, takes(1));
        assert!(slots.has_room(1) && !slots.has_room(2));
        assert_eq!(slots.next().await, Some(1));
        assert!(slots.has_room(100), "alone");
        slots.begin(100, takes(2));
        assert!(!slots.has_room(1));
        assert_eq!(slots.next().await, Some(2));
        assert!(slots.has_room(4));
    }
}
