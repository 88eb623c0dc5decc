//! Operations on the clocks of a process, done here or by a helper, and the notation that a
//! person writes them in.

mod deed;
mod played;
mod words;

pub use deed::Deed;
pub use played::{
    ClocksAhead, PlayedClock, as_process, own_clocks_ns, raw_monotonic_ns, stand_still,
    wall_clock_ns,
};
pub use vdso_clock::{ClockShift, ClockState, SkewError, can_skew};
pub use words::{Offset, Rate};

pub use crate::model::ClockName;

fn of_a_process(clock: ClockName) -> vdso_clock::Clock {
    match clock {
        ClockName::Realtime => vdso_clock::Clock::Realtime,
        ClockName::Monotonic => vdso_clock::Clock::Monotonic,
    }
}

pub fn shift_of(state: &ClockState, clock: ClockName) -> ClockShift {
    state.of(of_a_process(clock))
}
