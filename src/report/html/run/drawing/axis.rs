//! Time along a drawing. What happens within a millisecond has to be told apart
//! beside pauses of seconds, so every moment gets room of its own, and only the
//! rest of the width is shared out by the clock.

/// A moment with the room that it needs after the one before.
pub type Moment = (u64, f64);

pub struct Axis {
    /// Moments and their places, both growing.
    places: Vec<(u64, f64)>,
}

const LEAST_WIDTH: f64 = 760.0;
/// What the clock gets at least, as a part of what the moments need.
const BY_THE_CLOCK: f64 = 0.4;
/// Between labels.
const LABEL: f64 = 52.0;

impl Axis {
    /// From one moment to another, with room for what happens in between.
    pub fn new(from_ns: u64, to_ns: u64, mut moments: Vec<Moment>, left: f64) -> Axis {
        moments.retain(|(at_ns, _)| (from_ns..=to_ns).contains(at_ns));
        moments.extend([(from_ns, 0.0), (to_ns, 12.0)]);
        moments.sort_by(|one, next| one.0.cmp(&next.0).then(next.1.total_cmp(&one.1)));
        moments.dedup_by_key(|moment| moment.0);
        let needed: f64 = moments.iter().map(|(_, room)| room).sum();
        let by_the_clock = (LEAST_WIDTH - needed).max(needed * BY_THE_CLOCK);
        let length_ns = to_ns.saturating_sub(from_ns).max(1) as f64;
        let mut places = Vec::with_capacity(moments.len());
        let (mut x, mut before_ns) = (left, from_ns);
        for (at_ns, room) in moments {
            x += room + (at_ns - before_ns) as f64 / length_ns * by_the_clock;
            places.push((at_ns, x));
            before_ns = at_ns;
        }
        Axis { places }
    }

    /// Where a moment is; what lies outside is at the edge.
    pub fn x(&self, at_ns: u64) -> f64 {
        let next = self
            .places
            .partition_point(|(known_ns, _)| *known_ns < at_ns);
        let before = next
            .checked_sub(1)
            .and_then(|before| self.places.get(before));
        match (before, self.places.get(next)) {
            (Some((from_ns, from)), Some((to_ns, to))) => {
                let part = (at_ns - from_ns) as f64 / (to_ns - from_ns).max(1) as f64;
                from + (to - from) * part
            }
            (Some((_, edge)), None) | (None, Some((_, edge))) => *edge,
            (None, None) => 0.0,
        }
    }

    pub fn end(&self) -> f64 {
        self.places.last().map_or(0.0, |(_, x)| *x)
    }

    /// Round times since the start that have room for their labels.
    pub fn ticks(&self, start_ns: u64) -> Vec<(f64, String)> {
        let (Some((from_ns, _)), Some((to_ns, _))) = (self.places.first(), self.places.last())
        else {
            return Vec::new();
        };
        let length_ms = (to_ns - from_ns) / 1_000_000;
        const STEPS_MS: [u64; 13] = [
            1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000,
        ];
        let step_ms = STEPS_MS.into_iter().find(|step| length_ms / step <= 12);
        let step_ns = step_ms.unwrap_or(60_000) * 1_000_000;
        let mut at_ns = start_ns + from_ns.saturating_sub(start_ns).next_multiple_of(step_ns);
        let mut ticks: Vec<(f64, String)> = Vec::new();
        while at_ns <= *to_ns && ticks.len() < 400 {
            let x = self.x(at_ns);
            let room = ticks.last().is_none_or(|(last, _)| x - last >= LABEL);
            if room && x <= self.end() - 12.0 {
                let seconds = (at_ns - start_ns) as f64 / 1e9;
                ticks.push((x, format!("{seconds} s")));
            }
            at_ns += step_ns;
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_keep_their_order_and_their_room() {
        let second = 1_000_000_000;
        let moments = vec![(second, 20.0), (second + 1, 20.0), (5 * second, 20.0)];
        let axis = Axis::new(0, 6 * second, moments, 8.0);
        assert_eq!(axis.x(0), 8.0);
        assert!(axis.x(second + 1) - axis.x(second) >= 20.0);
        assert!(axis.x(3 * second) > axis.x(second + 1));
        assert!(axis.x(3 * second) < axis.x(5 * second));
        assert_eq!(axis.x(9 * second), axis.end());
        assert!(axis.end() >= LEAST_WIDTH);
    }

    #[test]
    fn a_single_moment_is_a_drawing_too() {
        let axis = Axis::new(5, 5, vec![(5, 20.0)], 0.0);
        assert!(axis.x(5).is_finite() && axis.end().is_finite());
        assert!(axis.ticks(5).len() <= 1);
    }

    #[test]
    fn labels_stand_apart() {
        let ms = 1_000_000;
        let axis = Axis::new(0, 4_000 * ms, vec![(1_000 * ms, 300.0)], 0.0);
        let ticks = axis.ticks(0);
        assert!(ticks.len() > 3, "{ticks:?}");
        assert!(ticks.windows(2).all(|two| two[1].0 - two[0].0 >= LABEL));
        assert_eq!(ticks[0].1, "0 s");
    }
}
