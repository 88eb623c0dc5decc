use std::time::Duration;

/// How many keys were made when, and thus how many of them have not expired yet.
#[derive(Clone, Debug)]
pub(super) struct MadeOverTime {
    ttl_ms: u64,
    /// The milliseconds, and how many keys had been made by then; both only grow.
    points: Vec<(u64, u64)>,
}

impl MadeOverTime {
    pub(super) fn new(ttl: Duration) -> MadeOverTime {
        MadeOverTime {
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            points: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, at_ms: u64, made: u64) {
        match self.points.as_slice() {
            // For a time in which nothing was made, its two ends are enough.
            [.., (_, one), (last, two)] if *one == made && *two == made && *last <= at_ms => {
                self.points.pop();
            }
            _ => {}
        }
        self.points.push((at_ms, made));
    }

    pub(super) fn total(&self) -> u64 {
        self.points.last().map_or(0, |(_, made)| *made)
    }

    pub(super) fn alive(&self, now_ms: u64) -> u64 {
        let died = match now_ms.checked_sub(self.ttl_ms) {
            Some(born_ms) => self.made_until(born_ms),
            None => 0,
        };
        self.made_until(now_ms) - died
    }

    /// Returns when the last of the keys made so far expires.
    pub(super) fn last_death_ms(&self) -> Option<u64> {
        let total = self.total();
        let last = self.points.iter().find(|(_, made)| *made == total);
        last.map(|(at_ms, _)| at_ms.saturating_add(self.ttl_ms))
    }

    /// Assumes a constant rate between two notes.
    fn made_until(&self, at_ms: u64) -> u64 {
        let after = self.points.partition_point(|(at, _)| *at <= at_ms);
        let before = after.checked_sub(1).map(|index| self.points[index]);
        match (before, self.points.get(after)) {
            (None, _) => 0,
            (Some((_, made)), None) => made,
            (Some((from_ms, from)), Some((to_ms, to))) => {
                let share = u128::from(at_ms - from_ms) * u128::from(to - from);
                from + (share / u128::from(to_ms - from_ms)) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(points: &[(u64, u64)]) -> MadeOverTime {
        let mut made = MadeOverTime::new(Duration::from_secs(1));
        for (at_ms, count) in points {
            made.note(*at_ms, *count);
        }
        made
    }

    #[test]
    fn who_was_made_a_ttl_ago_is_over() {
        let made = made(&[(0, 0), (100, 100), (200, 300)]);
        assert_eq!(made.alive(0), 0);
        assert_eq!(made.alive(50), 50);
        assert_eq!(made.alive(200), 300);
        assert_eq!(made.alive(999), 300, "nobody is a second old");
        assert_eq!(made.alive(1_050), 250);
        assert_eq!(made.alive(1_150), 100);
        assert_eq!(made.alive(1_200), 0);
        assert_eq!(made.alive(99_999), 0);
        assert_eq!(made.last_death_ms(), Some(1_200));
    }

    #[test]
    fn notes_without_news_change_nothing_and_cost_nothing() {
        let mut made = made(&[(0, 0), (100, 100)]);
        for at_ms in 101..5_000 {
            made.note(at_ms, 100);
        }
        assert!(made.points.len() <= 4, "{:?}", made.points);
        assert_eq!(made.alive(1_050), 50);
        assert_eq!(made.last_death_ms(), Some(1_100));
        assert_eq!(made.alive(1_100), 0);
        made.note(6_000, 200);
        assert_eq!(made.alive(5_500), 50);
    }

    #[test]
    fn nothing_made_is_nothing_alive() {
        let made = made(&[]);
        let expected = (0, 0, None);
        assert_eq!(
            (made.total(), made.alive(7), made.last_death_ms()),
            expected
        );
    }
}
