//! Where clocks cannot be skewed, everything says so.

use super::{ClockName, ClockState, SkewError};

const NOT_HERE: SkewError = SkewError::NotLinuxX86 {
    os: std::env::consts::OS,
    architecture: std::env::consts::ARCH,
};

pub fn can_skew(_pid: i32) -> Result<(), SkewError> {
    Err(NOT_HERE)
}

pub fn show(_pid: i32) -> Result<ClockState, SkewError> {
    Err(NOT_HERE)
}

pub fn set(_pid: i32, _clock: ClockName, _offset_ns: i64) -> Result<ClockState, SkewError> {
    Err(NOT_HERE)
}

pub fn drift(_pid: i32, _clock: ClockName, _ppm: i64) -> Result<ClockState, SkewError> {
    Err(NOT_HERE)
}

pub fn undo(_pid: i32) -> Result<ClockState, SkewError> {
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
