//! A process with many threads: all see the skew, none is lost, and no signal
//! either.

use super::kit::*;
use super::subject::Subject;
use crate::support::{command, start};
use nix::sys::signal::Signal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use vdso_clock::{self as clock, Clock, ClockShift, ClockState};

const CYCLES: u32 = 200;

#[test]
fn every_thread_sees_the_skew_and_the_undoing() {
    let host = HostClock::look();
    let mut subject = Subject::start();
    let pid = subject.pid();
    clock::can_skew(pid).unwrap();
    assert!(clock::show(pid).unwrap().is_untouched());
    subject.expect_ahead(0, 0);

    clock::set(pid, Clock::Realtime, -60 * SECOND_NS).unwrap();
    subject.expect_ahead(-60 * SECOND_NS, 0);
    let state = clock::set(pid, Clock::Monotonic, 15 * SECOND_NS).unwrap();
    subject.expect_ahead(-60 * SECOND_NS, 15 * SECOND_NS);
    assert_eq!(state.realtime.offset_ns, -60 * SECOND_NS);
    assert_eq!(state, clock::show(pid).unwrap());

    assert!(clock::undo(pid).unwrap().is_untouched());
    subject.expect_ahead(0, 0);
    assert_restored(pid);
    assert!(clock::undo(pid).unwrap().is_untouched());
    // What was undone can be done again.
    clock::set(pid, Clock::Realtime, SECOND_NS).unwrap();
    subject.expect_ahead(SECOND_NS, 0);
    host.assert_unchanged();
}

#[test]
fn a_drift_grows_from_where_the_clock_is_and_stays_when_it_ends() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    clock::set(pid, Clock::Monotonic, 5 * SECOND_NS).unwrap();
    // Twice as fast: what it gains is the time that passes.
    let before = Instant::now();
    clock::drift(pid, Clock::Monotonic, 1_000_000).unwrap();
    let begun = Instant::now();
    std::thread::sleep(Duration::from_millis(300));
    let at_least = begun.elapsed().as_nanos() as i64;
    let seen = subject.look();
    let at_most = before.elapsed().as_nanos() as i64;
    for (realtime, monotonic) in seen {
        let gained = monotonic - 5 * SECOND_NS;
        // The reading itself has room of a second.
        assert!(
            (at_least..=at_most + SECOND_NS).contains(&gained),
            "{gained} ns"
        );
        assert!(realtime < SECOND_NS);
    }
    let ended = clock::drift(pid, Clock::Monotonic, 0).unwrap();
    let gained = ended.monotonic.offset_ns;
    assert!(gained > 5 * SECOND_NS + at_least);
    assert_eq!(clock::show(pid).unwrap(), ended);
    subject.expect_ahead(0, gained);
}

#[test]
fn no_signal_is_lost_and_no_thread_falls_over() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    let over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                sent += u32::from(subject.send_counted_signal());
                std::thread::yield_now();
            }
            sent
        });
        let cycled = (0..CYCLES).try_for_each(|cycle| {
            let offset = i64::from(cycle) * SECOND_NS;
            clock::set(pid, Clock::Monotonic, offset)?;
            clock::undo(pid).map(drop)
        });
        // Before anything is asserted: nobody else would ever tell the sender.
        over.store(true, Ordering::Relaxed);
        let sent = sender.join().unwrap();
        cycled.unwrap();
        sent
    });
    subject.expect_ahead(0, 0);
    assert!(sent > CYCLES);
    subject.await_signals(sent);
    assert_restored(pid);
}

#[test]
fn changing_an_offset_all_the_time_never_shows_half_of_it() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    // Each byte differs between the two.
    let (low, high) = (0x0101_0101_0101_0101, 0x0202_0202_0202_0202);
    for turn in 0..500 {
        let offset = if turn % 2 == 0 { low } else { high };
        clock::set(pid, Clock::Realtime, offset).unwrap();
        if turn % 25 == 0 {
            for (realtime, _) in subject.look() {
                let fits = [low, high]
                    .iter()
                    .any(|offset| realtime - offset < SECOND_NS);
                assert!(fits && realtime >= low, "{realtime}");
            }
        }
    }
}

#[test]
fn a_stopped_process_stays_stopped() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    let all_stopped = |states: &[char]| states.iter().all(|state| *state == 'T');
    subject.signal(Signal::SIGSTOP);
    await_states(pid, all_stopped);
    clock::set(pid, Clock::Realtime, 15 * SECOND_NS).unwrap();
    await_states(pid, all_stopped);
    clock::undo(pid).unwrap();
    clock::set(pid, Clock::Realtime, 7 * SECOND_NS).unwrap();
    await_states(pid, all_stopped);
    subject.signal(Signal::SIGCONT);
    subject.expect_ahead(7 * SECOND_NS, 0);
}

#[test]
fn a_patch_cut_short_by_sigkill_leaves_nobody_stopped_and_can_be_mended() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    let mut dying = command(["clock", "set", &pid.to_string(), "--realtime", "+15s"]);
    dying.env("FENCEPOST_MUTANT", "clock-dies-half-way");
    let ended = start(dying).wait();
    assert_eq!(ended.code, None, "{ended}");
    await_states(pid, |states| !states.iter().any(|s| ['T', 't'].contains(s)));
    // The first of the three functions jumps already.
    subject.expect_ahead(15 * SECOND_NS, 0);
    let half = clock::show(pid).unwrap();
    assert_eq!(half.realtime.offset_ns, 15 * SECOND_NS);
    clock::set(pid, Clock::Realtime, 20 * SECOND_NS).unwrap();
    subject.expect_ahead(20 * SECOND_NS, 0);
    clock::undo(pid).unwrap();
    assert_restored(pid);
    subject.expect_ahead(0, 0);
}

#[test]
fn the_command_line_tells_people_and_programs() {
    let subject = Subject::start();
    let pid = subject.pid().to_string();
    let clock = |arguments: &[&str]| {
        let arguments = [&["clock"], arguments].concat();
        start(command(arguments)).wait().expect_code(0)
    };
    clock(&["show", &pid]).expect_said(&["as the host's"]);
    let set = clock(&[
        "set",
        &pid,
        "--realtime",
        "-60s",
        "--monotonic=+15s",
        "--format",
        "json",
    ]);
    let state: ClockState = serde_json::from_str(&set.stdout).expect("JSON");
    let by = |offset_ns| ClockShift {
        offset_ns,
        rate_ppm: 0,
    };
    let expected = ClockState {
        realtime: by(-60 * SECOND_NS),
        monotonic: by(15 * SECOND_NS),
    };
    assert_eq!(state, expected);
    clock(&["show", &pid]).expect_said(&["60.000 s behind", "15.000 s ahead"]);
    clock(&["drift", &pid, "--realtime", "-500ppm"]).expect_said(&["losing 500 ppm"]);
    clock(&["undo", &pid]).expect_said(&["went back by 15.000 s", "as the host's"]);
    assert_restored(subject.pid());
}
