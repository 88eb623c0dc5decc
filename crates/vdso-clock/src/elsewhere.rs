//! The functions for platforms on which clocks cannot be skewed: all of them fail.

use super::{Clock, ClockState, SkewError, SkewResult};

const NOT_HERE: SkewError = SkewError::NotLinuxX86 {
    os: std::env::consts::OS,
    architecture: std::env::consts::ARCH,
};

pub fn can_skew(_pid: i32) -> SkewResult {
    Err(NOT_HERE)
}

pub fn show(_pid: i32) -> SkewResult<ClockState> {
    Err(NOT_HERE)
}

pub fn set(_pid: i32, _clock: Clock, _offset_ns: i64) -> SkewResult<ClockState> {
    Err(NOT_HERE)
}

pub fn drift(_pid: i32, _clock: Clock, _ppm: i64) -> SkewResult<ClockState> {
    Err(NOT_HERE)
}

pub fn undo(_pid: i32) -> SkewResult<ClockState> {
    Err(NOT_HERE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_architecture() {
        let refused = can_skew(1).unwrap_err();
        assert!(refused.is_impossible_here());
        assert!(refused.to_string().contains(std::env::consts::ARCH));
    }
}
