//! Executes the code in a page of our own, beside the real functions.

use super::*;
use crate::raw_ns;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::num::NonZero;
use std::ptr::{NonNull, null_mut};

type ClockGettime = extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;
type Gettimeofday = extern "C" fn(*mut libc::timeval, *mut u64) -> libc::c_int;
type Time = extern "C" fn(*mut libc::time_t) -> libc::time_t;

const SECOND: i64 = 1_000_000_000;
// The ALARM clocks, 8 and 9, exist only on machines with a clock that can wake them.
const REALTIME_FAMILY: [i32; 3] = [0, 5, 11];
const MONOTONIC_FAMILY: [i32; 4] = [1, 4, 6, 7];

/// A blob that can be called.
struct Running {
    page: NonNull<std::ffi::c_void>,
}

impl Running {
    fn with(shifts: Shifts) -> Running {
        let mut blob = Blob::fresh();
        blob.turn_to(shifts);
        let size = NonZero::new(4096).unwrap();
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE | ProtFlags::PROT_EXEC;
        // SAFETY: a fresh mapping that nobody else knows of.
        let page = unsafe { mmap_anonymous(None, size, access, MapFlags::MAP_PRIVATE) }.unwrap();
        // SAFETY: the page is writable and longer than the blob.
        unsafe { page.cast::<[u8; SPACE]>().write(*blob.bytes()) };
        Running { page }
    }

    fn address(&self, entry: Entry) -> *const std::ffi::c_void {
        self.page.as_ptr().wrapping_byte_add(entry.code_at())
    }

    fn clock_gettime(&self, id: i32) -> Result<i64, i32> {
        let entry = self.address(Entry::ClockGettime);
        // SAFETY: the blob's function takes these arguments, as a C function does.
        let call: ClockGettime = unsafe { std::mem::transmute(entry) };
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        match call(id, &mut time) {
            0 => {
                assert!((0..SECOND).contains(&time.tv_nsec), "{time:?}");
                Ok(time.tv_sec * SECOND + time.tv_nsec)
            }
            error => Err(error),
        }
    }

    fn gettimeofday(&self, time: *mut libc::timeval, zone: *mut u64) -> i32 {
        let entry = self.address(Entry::Gettimeofday);
        // SAFETY: as above.
        let call: Gettimeofday = unsafe { std::mem::transmute(entry) };
        call(time, zone)
    }

    fn time(&self, to: *mut libc::time_t) -> libc::time_t {
        // SAFETY: as above.
        let call: Time = unsafe { std::mem::transmute(self.address(Entry::Time)) };
        call(to)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // SAFETY: mapped above with this size, and nobody calls it any more.
        unsafe { munmap(self.page, 4096) }.unwrap();
    }
}

fn offsets(realtime_ns: i64, monotonic_ns: i64) -> Shifts {
    let by = |offset_ns| Shift {
        offset_ns,
        ..Shift::default()
    };
    Shifts {
        realtime: by(realtime_ns),
        monotonic: by(monotonic_ns),
    }
}

#[track_caller]
fn assert_shifted(running: &Running, id: i32, by: i64) {
    let before = raw_ns(id);
    let told = running.clock_gettime(id).unwrap();
    let after = raw_ns(id);
    assert!(
        (before + by..=after + by).contains(&told),
        "clock {id} told {told}, not {before} to {after} and {by}"
    );
}

#[test]
fn each_family_is_shifted_by_its_own_offset() {
    for (realtime, monotonic) in [
        (0, 0),
        (15 * SECOND, 0),
        (-60 * SECOND, 7 * SECOND),
        (1, -1),
        (999_999_999, -SECOND + 1),
        (-10 * 365 * 86_400 * SECOND, 30 * 365 * 86_400 * SECOND),
    ] {
        let running = Running::with(offsets(realtime, monotonic));
        for id in REALTIME_FAMILY {
            assert_shifted(&running, id, realtime);
        }
        for id in MONOTONIC_FAMILY {
            assert_shifted(&running, id, monotonic);
        }
    }
}

#[test]
fn a_clock_below_zero_is_still_a_valid_time() {
    let running = Running::with(offsets(-100 * 365 * 86_400 * SECOND, 0));
    assert!(running.clock_gettime(libc::CLOCK_REALTIME).unwrap() < 0);
}

#[test]
fn clocks_of_cpu_time_and_errors_pass_through() {
    let running = Running::with(offsets(3600 * SECOND, 3600 * SECOND));
    for id in [
        libc::CLOCK_PROCESS_CPUTIME_ID,
        libc::CLOCK_THREAD_CPUTIME_ID,
        -2,
    ] {
        assert_shifted(&running, id, 0);
    }
    for id in [10, 12, 1_000, i32::MIN] {
        assert_eq!(running.clock_gettime(id), Err(-libc::EINVAL));
    }
}

#[test]
fn a_rate_adds_to_what_has_passed_since_the_base() {
    let base_ns = raw_ns(libc::CLOCK_MONOTONIC) - 1_000 * SECOND;
    for (rate_ppm, passed) in [
        (500, SECOND / 2),
        (-500, -SECOND / 2),
        (1_000_000, 1_000 * SECOND),
        (-1_000_000, -1_000 * SECOND),
    ] {
        let shift = Shift {
            base_ns,
            offset_ns: 15 * SECOND,
            rate_ppm,
        };
        let running = Running::with(Shifts {
            monotonic: shift,
            ..Shifts::default()
        });
        let (before, told, after) = (
            raw_ns(libc::CLOCK_MONOTONIC),
            running.clock_gettime(libc::CLOCK_MONOTONIC).unwrap(),
            raw_ns(libc::CLOCK_MONOTONIC),
        );
        let fits = (before + shift.at(before)..=after + shift.at(after)).contains(&told);
        assert!(fits, "{rate_ppm} ppm told {told}");
        let near = (told - before - 15 * SECOND - passed).abs() < SECOND / 10;
        assert!(near, "{rate_ppm} ppm");
        assert_shifted(&running, libc::CLOCK_REALTIME, 0);
    }
}

#[test]
fn gettimeofday_takes_what_the_real_one_takes() {
    let running = Running::with(offsets(-61 * SECOND, 5 * SECOND));
    let mut zone = u64::MAX;
    assert_eq!(running.gettimeofday(null_mut(), null_mut()), 0);
    assert_eq!(running.gettimeofday(null_mut(), &mut zone), 0);
    assert_ne!(zone, u64::MAX);
    let mut time = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let before = raw_ns(libc::CLOCK_REALTIME) / 1_000;
    assert_eq!(running.gettimeofday(&mut time, null_mut()), 0);
    let after = raw_ns(libc::CLOCK_REALTIME) / 1_000;
    assert!((0..1_000_000).contains(&time.tv_usec), "{time:?}");
    let told = time.tv_sec * 1_000_000 + time.tv_usec + 61_000_000;
    assert!((before..=after).contains(&told), "{told}");
}

#[test]
fn time_returns_and_stores_whole_seconds() {
    let running = Running::with(offsets(3600 * SECOND, 0));
    let mut stored = 0;
    let before = raw_ns(libc::CLOCK_REALTIME_COARSE) / SECOND;
    let told = running.time(&mut stored);
    assert!((before + 3600..=before + 3601).contains(&told));
    assert_eq!(told, stored);
    assert!((told..=told + 1).contains(&running.time(null_mut())));
}

#[test]
fn a_blob_is_recognised_with_all_it_remembers() {
    let mut blob = Blob::fresh();
    let shifts = offsets(1, 2);
    blob.save(Entry::Time, [1, 2, 3, 4, 5]);
    blob.turn_to(offsets(8, 9));
    blob.turn_to(shifts);
    let Found::Ours(found) = Blob::recognise(blob.bytes()) else {
        panic!("not recognised");
    };
    assert_eq!(found.shifts(), shifts);
    assert_eq!(found.saved(Entry::Time), [1, 2, 3, 4, 5]);
    assert_eq!(found.saved(Entry::Gettimeofday), [0; 5]);

    assert_eq!(Blob::recognise(&[0; SPACE]), Found::Nothing);
    assert_eq!(Blob::recognise(&[9; SPACE]), Found::SomethingElse);
    for changed_at in [7, CODE_AT + 3] {
        let mut other = *blob.bytes();
        other[changed_at] ^= 1;
        assert_eq!(Blob::recognise(&other), Found::OtherVersion);
    }
}

#[test]
fn the_pieces_of_a_change_are_all_that_changes() {
    let mut blob = Blob::fresh();
    let mut running = *blob.bytes();
    for turn in 0..600 {
        for Piece { at, bytes } in blob.turn_to(offsets(turn, -turn)) {
            running[at..at + bytes.len()].copy_from_slice(&bytes);
        }
        assert_eq!(running, *blob.bytes());
        assert_eq!(blob.shifts(), offsets(turn, -turn));
    }
}

#[test]
fn a_jump_leads_from_the_end_of_itself_to_the_code() {
    let code = 0x1e00 + Entry::Time.code_at();
    let jump = Entry::Time.jump(0xac0, 0x1e00);
    assert_eq!(jump[0], 0xe9);
    let distance = i32::from_le_bytes(jump[1..].try_into().unwrap());
    assert_eq!(0xac0 + 5 + distance as usize, code);
}
