//! The differences between the clocks of a process and those of its host.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Realtime,
    Monotonic,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::Realtime => "realtime",
            Clock::Monotonic => "monotonic",
        })
    }
}

/// The difference between one clock and the host's, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockShift {
    /// The clock is ahead of the host's by this much; behind it, if negative.
    pub offset_ns: i64,
    /// The clock runs faster by this many millionths; slower, if negative. The offset
    /// grows by it.
    pub rate_ppm: i64,
}

/// The shifts of both clocks of a process; the default is untouched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    pub realtime: ClockShift,
    pub monotonic: ClockShift,
}

impl ClockState {
    pub fn of(&self, clock: Clock) -> ClockShift {
        match clock {
            Clock::Realtime => self.realtime,
            Clock::Monotonic => self.monotonic,
        }
    }

    pub fn is_untouched(&self) -> bool {
        *self == ClockState::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_told_in_json_and_understood_again() {
        let state = ClockState {
            monotonic: ClockShift {
                offset_ns: -15_000_000_000,
                rate_ppm: 500,
            },
            ..ClockState::default()
        };
        let json = serde_json::to_string(&state).unwrap();
        let expected = r#"{"realtime":{"offset_ns":0,"rate_ppm":0},"monotonic":{"offset_ns":-15000000000,"rate_ppm":500}}"#;
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_str::<ClockState>(&json).unwrap(), state);
        assert!(!state.is_untouched() && ClockState::default().is_untouched());
    }
}
