//! How the clocks of a process differ from those of its host.

use crate::model::ClockName;
use serde::{Deserialize, Serialize};

/// How one clock differs from the host's, seen at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockShift {
    /// Ahead of the host's clock by this much; behind it, if negative.
    pub offset_ns: i64,
    /// Faster by this many millionths; slower, if negative. The offset grows by it.
    pub rate_ppm: i64,
}

/// Both clocks of a process; the default is untouched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockState {
    pub realtime: ClockShift,
    pub monotonic: ClockShift,
}

impl ClockState {
    pub fn of(&self, clock: ClockName) -> ClockShift {
        match clock {
            ClockName::Realtime => self.realtime,
            ClockName::Monotonic => self.monotonic,
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
        assert_eq!(
            json,
            r#"{"realtime":{"offset_ns":0,"rate_ppm":0},"monotonic":{"offset_ns":-15000000000,"rate_ppm":500}}"#
        );
        assert_eq!(serde_json::from_str::<ClockState>(&json).unwrap(), state);
        assert!(!state.is_untouched() && ClockState::default().is_untouched());
    }
}
