//! What cannot be done is said, with the reason and the way out.

use super::kit::{SECOND_NS, await_states, is_root};
use super::subject::Subject;
use crate::support::{command, offline, start};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use vdso_clock::{self as clock, Clock, SkewError};

const NOBODY: u32 = 65_534;

#[test]
fn a_process_that_is_not_there_or_not_to_be_touched() {
    let ended = {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id() as i32
    };
    for pid in [ended, 0, -1] {
        let refused = clock::set(pid, Clock::Realtime, 1);
        assert!(
            matches!(refused, Err(SkewError::NoSuchProcess { .. })),
            "{pid}"
        );
    }
    let us = std::process::id() as i32;
    for refused in [clock::can_skew(us), clock::undo(us).map(drop)] {
        assert!(matches!(refused, Err(SkewError::Refused { .. })));
    }
    offline(&["clock", "show", &ended.to_string()])
        .expect_code(64)
        .expect_said(&["there is no process"]);
}

#[test]
fn a_thread_of_the_kernel_has_no_clock_to_skew() {
    let kernel = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if kernel.trim() == "kthreadd" && nix::unistd::geteuid().is_root() {
        let refused = clock::can_skew(2);
        assert!(
            matches!(refused, Err(SkewError::NoVdso { .. })),
            "{refused:?}"
        );
    }
}

#[test]
fn a_zombie_counts_as_gone() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id() as i32;
    await_states(pid, |states| states == ['Z']);
    let refused = clock::set(pid, Clock::Realtime, 1);
    assert!(matches!(refused, Err(SkewError::NoSuchProcess { .. })));
    child.wait().unwrap();
}

#[test]
fn out_of_range_is_refused_before_anything_is_touched() {
    let subject = Subject::start();
    let pid = subject.pid();
    for refused in [
        clock::drift(pid, Clock::Realtime, 1_000_001),
        clock::set(pid, Clock::Realtime, i64::MIN),
        clock::set(pid, Clock::Realtime, i64::MAX),
        // Below zero.
        clock::set(pid, Clock::Monotonic, -SECOND_NS * 86_400 * 36_500),
    ] {
        assert!(
            matches!(refused, Err(SkewError::OutOfRange { .. })),
            "{refused:?}"
        );
    }
    assert!(clock::show(pid).unwrap().is_untouched());
    for arguments in [
        &["clock", "set", "1"][..],
        &["clock", "set", "1", "--realtime", "15"],
        &["clock", "drift", "1", "--realtime", "15s"],
        &["clock", "drift", "1", "--realtime", "2000000ppm"],
    ] {
        offline(arguments).expect_code(64);
    }
}

#[test]
fn a_thread_that_cannot_be_stopped_is_waited_for_in_bounds() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    subject.hang();
    await_states(pid, |states| states.contains(&'D'));
    let refused = clock::set(pid, Clock::Realtime, SECOND_NS);
    assert!(
        matches!(refused, Err(SkewError::Timeout { .. })),
        "{refused:?}"
    );
    await_states(pid, |states| !states.iter().any(|s| ['T', 't'].contains(s)));
    assert!(clock::show(pid).unwrap().is_untouched());
    subject.end_hang();
    subject.expect_ahead(0, 0);
    clock::set(pid, Clock::Realtime, SECOND_NS).unwrap();
    subject.expect_ahead(SECOND_NS, 0);
}

#[test]
fn a_process_that_ends_or_execs_in_the_middle_is_no_trouble() {
    for round in 0..100 {
        let mut child = Command::new("sh")
            .args(["-c", "exec true"])
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let until_it_ends = || -> SkewError {
            for turn in 0_i64.. {
                let done = match turn % 3 {
                    0 => clock::undo(pid),
                    _ => clock::set(pid, Clock::Realtime, turn),
                };
                match done {
                    // It has become another program, which is untouched.
                    Ok(_) | Err(SkewError::ReadBack { .. }) => {}
                    Err(error) => return error,
                }
            }
            unreachable!("it ends by itself")
        };
        let error = until_it_ends();
        let fine = matches!(
            error,
            SkewError::NoSuchProcess { .. } | SkewError::NoVdso { .. }
        );
        assert!(fine, "round {round}: {error}");
        assert!(child.wait().unwrap().success(), "round {round}");
    }
}

#[test]
fn a_process_that_is_traced_is_left_to_its_tracer() {
    let mut subject = Subject::start();
    let pid = subject.pid();
    // The tracer is a thread, and the kernel lets go when it ends.
    std::thread::scope(|scope| {
        let traced = scope.spawn(|| {
            // SAFETY: PTRACE_SEIZE takes no addresses.
            let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0_usize, 0_usize) };
            assert_eq!(seized, 0);
            let refused = start(command([
                "clock",
                "set",
                &pid.to_string(),
                "--realtime=+1s",
            ]));
            refused
                .wait()
                .expect_code(69)
                .expect_said(&["traced by", "one tracer at a time"]);
            assert!(matches!(
                clock::can_skew(pid),
                Err(SkewError::AlreadyTraced { .. })
            ));
            clock::show(pid).unwrap()
        });
        assert!(traced.join().unwrap().is_untouched());
    });
    subject.expect_ahead(0, 0);
    clock::set(pid, Clock::Realtime, SECOND_NS).unwrap();
    subject.expect_ahead(SECOND_NS, 0);
}

#[test]
fn somebody_else_is_told_what_to_do() {
    if !is_root() {
        return;
    }
    let subject = Subject::start();
    // The folders above the executable may be closed to others.
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let program = folder.path().join("fencepost");
    std::fs::copy(env!("CARGO_BIN_EXE_fencepost"), &program).unwrap();
    open(folder.path());
    open(&program);
    let mut command = Command::new(&program);
    command
        .args(["clock", "set", &subject.pid().to_string()])
        .arg("--realtime=+1s")
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    start(command)
        .wait()
        .expect_code(69)
        .expect_said(&["not permitted", "run as root", "SYS_PTRACE"])
        .expect_short_error(2);
    assert!(clock::show(subject.pid()).unwrap().is_untouched());
}
