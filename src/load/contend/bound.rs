use super::*;

/// At this share of the offered rate, arrivals are the limit.
const KEEPS_UP: f64 = 0.95;

/// Returns the most acquisitions per second that the keys allow: one turn after the other on
/// each key.
///
/// A turn lasts from a grant until the release is sent, and from there until the next grant.
/// The release itself is part of that hand-off and is not counted twice. Returns `None` if
/// there are more keys than contenders, who then cannot keep all keys busy.
fn ceiling_per_s(step: &ContendStep, keys: u64) -> Option<f64> {
    let turn_us: f64 = parts_us(step).iter().map(|(_, us)| us).sum();
    let can_be_filled = keys <= u64::from(step.contenders);
    (can_be_filled && turn_us > 0.0).then(|| keys as f64 * 1_000_000.0 / turn_us)
}

/// Says what bounds a step that is measured otherwise. Where holds overlapped, turns mean nothing.
pub(super) fn set_bound(step: &mut ContendStep, overlapped: bool, keys: u64) {
    if overlapped {
        step.bound_by =
            "nothing: somebody was granted a lock while another still held it".to_owned();
    } else {
        step.ceiling_per_s = ceiling_per_s(step, keys);
        step.bound_by = bound_by(step);
    }
}

/// Returns what would have to change for a higher throughput, in words.
fn bound_by(step: &ContendStep) -> String {
    if step.generator.bottleneck.is_some() {
        return "the generator".to_owned();
    }
    if step.acquisitions == 0 {
        return "nothing was acquired".to_owned();
    }
    let keeps_up = |offered: f64| step.throughput_per_s >= KEEPS_UP * offered;
    if step.offered_per_s.is_some_and(keeps_up) {
        return "the offered rate".to_owned();
    }
    let parts = parts_us(step);
    let turn_us: f64 = parts.iter().map(|(_, us)| us).sum();
    let most = parts.into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
    match most {
        Some((what, us)) if turn_us > 0.0 => {
            format!("{what} ({:.0} % of a turn)", 100.0 * us / turn_us)
        }
        _ => "nothing that was measured".to_owned(),
    }
}

fn parts_us(step: &ContendStep) -> [(&'static str, f64); 3] {
    let mean = |latency: &Latency| latency.mean_us;
    let (write_us, release_us) = (mean(&step.write), mean(&step.release));
    let work_us = (mean(&step.held) - write_us - release_us).max(0.0);
    let lock_us = match step.hand_off.count {
        // Nobody waited: one contender releases the lock, and later another asks for it.
        0 => release_us + mean(&step.ask),
        _ => mean(&step.hand_off),
    };
    [
        ("the work", work_us),
        ("the write to the resource", write_us),
        ("the lock's round trips", lock_us),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mean_ms: f64) -> Latency {
        Latency {
            count: 100,
            mean_us: mean_ms * 1_000.0,
            ..Latency::default()
        }
    }

    /// Returns a step with 50 ms of work, 3 ms for the write, 1 for the release, 6 to the next
    /// grant.
    fn saturated() -> ContendStep {
        ContendStep {
            contenders: 50,
            offered_per_s: Some(50.0),
            throughput_per_s: 16.9,
            acquisitions: 100,
            held: of(54.0),
            write: of(3.0),
            release: of(1.0),
            hand_off: of(6.0),
            ask: of(900.0),
            ..ContendStep::default()
        }
    }

    #[test]
    fn a_turn_is_work_and_write_and_hand_off() {
        let per_key = 1_000.0 / 59.0;
        let near = |a: Option<f64>, b: f64| a.is_some_and(|a| (a - b).abs() < 1e-9);
        assert!(near(ceiling_per_s(&saturated(), 1), per_key));
        assert!(near(ceiling_per_s(&saturated(), 50), 50.0 * per_key));
        assert_eq!(ceiling_per_s(&saturated(), 51), None);
        assert_eq!(ceiling_per_s(&ContendStep::default(), 1), None);
    }

    #[test]
    fn nobody_who_waited_means_a_release_and_an_acquire_between_two_holds() {
        let alone = ContendStep {
            hand_off: Latency::default(),
            ask: of(2.0),
            ..saturated()
        };
        let ceiling = ceiling_per_s(&alone, 1).unwrap();
        assert!((ceiling - 1_000.0 / 56.0).abs() < 1e-9, "{ceiling}");
    }

    #[test]
    fn the_largest_part_of_a_turn_bounds_it() {
        assert_eq!(bound_by(&saturated()), "the work (85 % of a turn)");
        let step = ContendStep {
            held: of(4.0),
            ..saturated()
        };
        assert_eq!(bound_by(&step), "the lock's round trips (67 % of a turn)");
        let step = ContendStep {
            held: of(34.0),
            write: of(33.0),
            ..saturated()
        };
        let expected = "the write to the resource (85 % of a turn)";
        assert_eq!(bound_by(&step), expected);
    }

    #[test]
    fn what_keeps_up_is_bound_by_its_arrivals_unless_the_generator_is_to_blame() {
        let mut step = ContendStep {
            offered_per_s: Some(17.0),
            ..saturated()
        };
        assert_eq!(bound_by(&step), "the offered rate");
        step.generator.bottleneck = Some("it is late".to_owned());
        assert_eq!(bound_by(&step), "the generator");
        assert_eq!(bound_by(&ContendStep::default()), "nothing was acquired");
    }
}
