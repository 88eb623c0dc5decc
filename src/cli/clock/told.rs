//! Describes the clocks of a process in words.

use crate::clock::{ClockName, ClockShift, ClockState, shift_of};

/// The largest step back that does not count: reading the clocks takes that long.
const NO_STEP_NS: i64 = 1_000_000;

pub fn process(pid: i32) -> String {
    match std::fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("process {pid} ({})", name.trim()),
        Err(_) => format!("process {pid}"),
    }
}

pub fn state(what: &str, state: ClockState) -> String {
    let clocks = ClockName::ALL.map(|clock| {
        let name = clock.to_string();
        format!("  {name:<9}  {}", shift(shift_of(&state, clock)))
    });
    format!("{what}\n{}", clocks.join("\n"))
}

fn shift(shift: ClockShift) -> String {
    let seconds = shift.offset_ns as f64 / 1e9;
    let offset = match shift.offset_ns {
        0 => "as the host's".to_owned(),
        1.. => format!("{seconds:.3} s ahead of the host's"),
        _ => format!("{:.3} s behind the host's", -seconds),
    };
    match shift.rate_ppm {
        0 => offset,
        rate @ 1.. => format!("{offset}, gaining {rate} ppm"),
        rate => format!("{offset}, losing {} ppm", -rate),
    }
}

/// Returns warnings for a person who has just changed clocks.
pub fn warnings(before: ClockState, after: ClockState) -> Vec<String> {
    let mut warnings = Vec::new();
    let back = before
        .monotonic
        .offset_ns
        .saturating_sub(after.monotonic.offset_ns);
    if back > NO_STEP_NS {
        let seconds = back as f64 / 1e9;
        warnings.push(format!(
            "the monotonic clock went back by {seconds:.3} s; timers of the process stand still for that long"
        ));
    }
    if before.is_untouched() && !after.is_untouched() {
        warnings.push(
            "raw system calls, rdtsc and deadlines inside the kernel do not follow, and exec or a restart ends it".to_owned(),
        );
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn monotonic(offset_ns: i64, rate_ppm: i64) -> ClockState {
        ClockState {
            monotonic: ClockShift {
                offset_ns,
                rate_ppm,
            },
            ..ClockState::default()
        }
    }

    #[test]
    fn a_state_is_told_with_its_direction() {
        assert_eq!(
            state("process 7", monotonic(-1_500_000_000, 20)),
            "process 7\n  realtime   as the host's\n  monotonic  1.500 s behind the host's, gaining 20 ppm"
        );
        let told = state("process 7", monotonic(15_000_000_000, -20));
        assert!(told.ends_with("15.000 s ahead of the host's, losing 20 ppm"));
    }

    #[test]
    fn a_monotonic_clock_that_goes_back_is_warned_of() {
        let (early, late) = (monotonic(0, 0), monotonic(15_000_000_000, 0));
        let undone = warnings(late, early);
        assert!(undone.len() == 1 && undone[0].contains("went back by 15.000 s"));
        let set = warnings(early, late);
        assert!(set.len() == 1 && set[0].contains("exec or a restart"));
        assert!(warnings(late, late).is_empty());
        assert_eq!(warnings(early, monotonic(-5_000_000_000, 0)).len(), 2);
    }
}
