//! The time axis of a drawing. Events within a millisecond must be distinguishable beside
//! pauses of seconds, so every moment gets some room, and only the rest of the width is divided
//! by the clock.

/// A moment, and the room that it needs after the previous one.
pub type Moment = (u64, f64);

pub struct Axis {
    /// Moments and their positions, both increasing.
    places: Vec<(u64, f64)>,
}

const LEAST_WIDTH: f64 = 760.0;
/// The least room for the clock, as a share of what the moments need.
const BY_THE_CLOCK: f64 = 0.4;
const LABEL: f64 = 52.0;

impl Axis {
    /// Makes an axis between two moments, with room for the moments between them.
    pub fn new(from_ns: u64, to_ns: u64, mut moments: Vec<Moment>, left: f64) -> Axis {
        let to_ns = to_ns.max(from_ns);
        moments.retain(|(at_ns, _)| (from_ns..=to_ns).contains(at_ns));
        moments.extend([(from_ns, 0.0), (to_ns, 12.0)]);
        moments.sort_by(|one, next| one.0.cmp(&next.0).then(next.1.total_cmp(&one.1)));
        moments.dedup_by_key(|moment| moment.0);
        let needed: f64 = moments.iter().map(|(_, room)| room).sum();
        let by_the_clock = (LEAST_WIDTH - needed).max(needed * BY_THE_CLOCK);
        let length_ns = (to_ns - from_ns).max(1) as f64;
        let mut places = Vec::with_capacity(moments.len());
        let (mut x, mut before_ns) = (left, from_ns);
        for (at_ns, room) in moments {
            x += room + (at_ns - before_ns) as f64 / length_ns * by_the_clock;
            places.push((at_ns, x));
            before_ns = at_ns;
        }
        Axis { places }
    }

    /// Returns the position of a moment; one that lies outside is at the edge.
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

    /// Returns round times since the start that have room for their labels.
    pub fn ticks(&self, start_ns: u64) -> Vec<(f64, String)> {
        let (Some((from_ns, _)), Some((to_ns, _))) = (self.places.first(), self.places.last())
        else {
            return Vec::new();
        };
        let step_ns = step_ns(to_ns - from_ns);
        let first_ns = from_ns.saturating_sub(start_ns);
        let first_ns = first_ns.checked_next_multiple_of(step_ns);
        let mut next_ns = first_ns.and_then(|first_ns| start_ns.checked_add(first_ns));
        let mut ticks: Vec<(f64, String)> = Vec::new();
        while let Some(at_ns) = next_ns.filter(|at_ns| at_ns <= to_ns) {
            let x = self.x(at_ns);
            let room = ticks.last().is_none_or(|(last, _)| x - last >= LABEL);
            if room && x <= self.end() - 12.0 {
                let seconds = (at_ns - start_ns) as f64 / 1e9;
                ticks.push((x, format!("{seconds} s")));
            }
            next_ns = at_ns.checked_add(step_ns);
        }
        ticks
    }
}

/// Returns the distance between labels: 1, 2, 5, 10 ms and so on, until there are few enough,
/// however long the drawing is.
fn step_ns(length_ns: u64) -> u64 {
    const MOST_STEPS: u64 = 12;
    let powers = (6..=18).map(|power| 10_u64.pow(power));
    let mut steps = powers.flat_map(|power| [power, 2 * power, 5 * power]);
    let few = steps.find(|step| length_ns / step <= MOST_STEPS);
    few.unwrap_or(u64::MAX)
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
    fn times_that_no_clock_shows_are_drawn_at_once() {
        let wall_ns = 1_794_000_000_000_000_000;
        let odd = [0, 1, 2_825_175_099_207, wall_ns, u64::MAX - 1, u64::MAX];
        for from_ns in odd {
            for to_ns in odd {
                for start_ns in odd {
                    let moments = odd.map(|at_ns| (at_ns, 20.0)).to_vec();
                    let axis = Axis::new(from_ns, to_ns, moments, 8.0);
                    assert!(axis.ticks(start_ns).len() <= 14);
                    assert!(odd.iter().all(|at_ns| axis.x(*at_ns).is_finite()));
                }
            }
        }
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
