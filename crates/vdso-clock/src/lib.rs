#![doc = include_str!("../README.md")]

mod error;
mod shift;
#[cfg_attr(
    not(all(target_os = "linux", target_arch = "x86_64")),
    path = "elsewhere.rs"
)]
mod skew;

pub use error::{SkewError, SkewResult};
use nix::time::{ClockId, clock_gettime};
pub use shift::{Clock, ClockShift, ClockState};
pub use skew::{can_skew, drift, set, show, undo};

/// Returns CLOCK_MONOTONIC in nanoseconds, by the raw system call.
///
/// This bypasses the vDSO on purpose: skewing a process's clock means patching its vDSO,
/// and the times in the evidence must not follow that. All containers of one host share
/// this clock, so their events can be compared.
pub fn raw_monotonic_ns() -> u64 {
    raw_ns(libc::CLOCK_MONOTONIC) as u64
}

/// Returns either clock as the kernel has it; fits until the year 2262.
fn raw_ns(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec through a pointer to a live, writable one.
    let result = unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &mut time) };
    assert_eq!(result, 0, "clock {clock} exists on every Linux");
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Returns both clocks as this process sees them, the realtime clock first: through the
/// vDSO, and so with every skew.
pub fn own_clocks_ns() -> (i64, i64) {
    let read = |clock: ClockId| {
        let time = clock_gettime(clock).expect("both clocks exist on every Linux");
        time.tv_sec() * 1_000_000_000 + time.tv_nsec()
    };
    (
        read(ClockId::CLOCK_REALTIME),
        read(ClockId::CLOCK_MONOTONIC),
    )
}
