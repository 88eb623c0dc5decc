//! Skews the clocks of one running process, from outside.
//!
//! Programs read the time through the vDSO, code that the kernel maps into each of them.
//! Its pages are private: a process that is written to gets its own copy, and nobody
//! else's time changes. The three functions that return the time become jumps into a blob
//! at the end of the mapping, which asks the kernel and shifts the answer. All of it can
//! be found again and undone with only the data in the target.

mod blob;
mod blob_bytes;
mod elf;
mod memory;
#[cfg(debug_assertions)]
mod mutant;
mod process;
mod ptrace;
mod target;
mod threads;

use super::{Clock, ClockShift, ClockState, SkewError, SkewResult, raw_ns};
use blob::{Shift, Shifts};
use std::ops::RangeInclusive;
use std::time::Duration;
use target::Target;
use threads::Stopped;

/// A hundred years: no sum of this and the present time exceeds 64 bits.
const MOST_OFFSET_NS: i64 = 100 * 366 * 86_400 * 1_000_000_000;
/// The rates from a stopped clock to one twice as fast.
const RATES_PPM: RangeInclusive<i64> = -1_000_000..=1_000_000;
/// The number of tries, so that a signal handler that interrupted a thread at the wrong
/// moment has time to return.
const STOP_TRIES: u32 = 200;
const STOP_PAUSE: Duration = Duration::from_millis(5);

/// Checks that the clocks of this process can be skewed from here. It changes nothing.
pub fn can_skew(pid: i32) -> SkewResult {
    Target::open(pid)?;
    process::check_untraced(pid)
}

/// Returns the present shifts of the process's clocks.
pub fn show(pid: i32) -> SkewResult<ClockState> {
    Ok(state_now(Target::open(pid)?.shifts()))
}

/// Sets a clock ahead of the host's by this much, or behind it. Its rate stays.
pub fn set(pid: i32, clock: Clock, offset_ns: i64) -> SkewResult<ClockState> {
    check_offset(clock, offset_ns)?;
    change(pid, clock, move |shift, now| Shift {
        base_ns: now,
        offset_ns,
        rate_ppm: shift.rate_ppm,
    })
}

/// Lets a clock run faster than the host's by this many millionths, or slower, from its
/// present time: it does not jump.
pub fn drift(pid: i32, clock: Clock, ppm: i64) -> SkewResult<ClockState> {
    if !RATES_PPM.contains(&ppm) {
        return Err(SkewError::OutOfRange {
            what: format!("a rate of {ppm} ppm"),
            range: "from -1000000 (it stands still) to 1000000 (twice as fast)".to_owned(),
        });
    }
    change(pid, clock, move |shift, now| Shift {
        base_ns: now,
        offset_ns: shift.at(now),
        rate_ppm: ppm,
    })
}

/// Gives the process its own functions back, byte for byte. A process that was never
/// changed is left alone.
pub fn undo(pid: i32) -> SkewResult<ClockState> {
    on_a_thread_of_its_own(pid, move || {
        let target = Target::open(pid)?;
        if let Some(mut blob) = target.blob.clone()
            && target.is_patched()
        {
            let _stopped = stop(&target)?;
            // A thread may be inside the blob, so the blob stays; it has to return the
            // true time.
            target.write_pieces(&blob.turn_to(Shifts::default()))?;
            target.restore_functions(&blob)?;
        }
        let left = Target::open(pid)?;
        match left.is_patched() {
            false => Ok(ClockState::default()),
            true => Err(SkewError::ReadBack {
                pid,
                what: "its own clock".to_owned(),
                found: format!("{:?}", left.shifts()),
            }),
        }
    })
}

fn change(
    pid: i32,
    clock: Clock,
    changed: impl FnOnce(Shift, i64) -> Shift + Send + 'static,
) -> SkewResult<ClockState> {
    on_a_thread_of_its_own(pid, move || {
        let target = Target::open(pid)?;
        let mut shifts = target.shifts();
        let shift = shifts.of(clock);
        *shift = changed(*shift, raw_ns(id_of(clock)));
        // Changing numbers needs no stop, if the kernel lets us write without one.
        if !(target.is_patched_throughout() && update(&target, shifts).is_ok()) {
            patch(&target, shifts)?;
        }
        let found = Target::open(pid)?.shifts();
        match found == shifts {
            true => Ok(state_now(found)),
            false => Err(SkewError::ReadBack {
                pid,
                what: format!("{shifts:?}"),
                found: format!("{found:?}"),
            }),
        }
    })
}

fn update(target: &Target, shifts: Shifts) -> SkewResult {
    match target.blob.clone() {
        Some(mut blob) => target.write_pieces(&blob.turn_to(shifts)),
        None => patch(target, shifts),
    }
}

fn patch(target: &Target, shifts: Shifts) -> SkewResult {
    let blob = target.blob_for(shifts);
    let _stopped = stop(target)?;
    target.write_blob(&blob)?;
    target.write_jumps(&blob)
}

/// Stops all threads, none of them at bytes that are about to change.
fn stop(target: &Target) -> SkewResult<Stopped> {
    let windows = target.windows();
    for _ in 0..STOP_TRIES {
        let mut stopped = Stopped::all_of(target.pid)?;
        stopped.step_out_of(&windows)?;
        if !stopped.goes_on_in(&windows, |bytes, address| target.read(bytes, address)) {
            target.check_unchanged()?;
            return Ok(stopped);
        }
        drop(stopped);
        std::thread::sleep(STOP_PAUSE);
    }
    Err(SkewError::Timeout {
        pid: target.pid,
        what: "a signal handler to return from inside of a clock function".to_owned(),
        after: STOP_PAUSE * STOP_TRIES,
    })
}

/// Runs `work` on a separate thread. The tracer is a thread, not a process: the threads
/// that it holds are released, at the latest, when it ends.
fn on_a_thread_of_its_own(
    pid: i32,
    work: impl FnOnce() -> SkewResult<ClockState> + Send + 'static,
) -> SkewResult<ClockState> {
    let thread = std::thread::Builder::new().name("clock".to_owned());
    let thread = thread.spawn(work).map_err(|source| SkewError::System {
        pid,
        what: "start a thread to trace it".to_owned(),
        source,
    })?;
    let done = thread.join();
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn check_offset(clock: Clock, offset_ns: i64) -> SkewResult {
    let now = raw_ns(id_of(clock));
    let range = -now.min(MOST_OFFSET_NS)..=MOST_OFFSET_NS;
    match range.contains(&offset_ns) {
        true => Ok(()),
        false => Err(SkewError::OutOfRange {
            what: format!("an offset of {} s for {clock}", offset_ns as f64 / 1e9),
            range: format!(
                "from {:.0} s (the clock would be below zero) to a hundred years",
                *range.start() as f64 / 1e9
            ),
        }),
    }
}

fn state_now(shifts: Shifts) -> ClockState {
    let now = |clock, shift: Shift| ClockShift {
        offset_ns: shift.at(raw_ns(id_of(clock))),
        rate_ppm: shift.rate_ppm,
    };
    ClockState {
        realtime: now(Clock::Realtime, shifts.realtime),
        monotonic: now(Clock::Monotonic, shifts.monotonic),
    }
}

fn id_of(clock: Clock) -> libc::clockid_t {
    match clock {
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
    }
}
