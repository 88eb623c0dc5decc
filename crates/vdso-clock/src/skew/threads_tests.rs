//! Moves a thread, instruction by instruction, to exactly where no thread may be.

use super::super::target::Target;
use super::*;
use crate::Clock;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

const CHILD: &str = "skew::threads::tests::a_child_that_reads_its_clock_all_the_time";
const CHILD_LIVES: Duration = Duration::from_secs(20);
/// One reading takes a few hundred instructions.
const STEPS_TO_A_WINDOW: u32 = 200_000;

#[test]
#[ignore = "is started by the other tests here"]
fn a_child_that_reads_its_clock_all_the_time() {
    extern "C" fn say_so(_: libc::c_int) {
        // SAFETY: write is allowed in a signal handler, and the bytes are static.
        unsafe { libc::write(1, c"signal\n".as_ptr().cast(), 7) };
    }
    // SAFETY: the handler calls nothing but write.
    unsafe { signal(Signal::SIGUSR1, SigHandler::Handler(say_so)) }.unwrap();
    println!("\nready {}", nix::unistd::gettid());
    std::io::stdout().flush().unwrap();
    let end = Instant::now() + CHILD_LIVES;
    while Instant::now() < end {}
}

struct Subject {
    child: Child,
    /// The thread that reads the clock; the other one waits for it.
    tid: i32,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Subject {
    fn start() -> Subject {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([CHILD, "--exact", "--ignored", "--nocapture"])
            .arg("--test-threads=1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut subject = Subject {
            child,
            tid: 0,
            lines,
        };
        subject.tid = subject.await_line("ready ").parse().unwrap();
        subject
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Returns the rest of the first line with this start. The child ends after a while,
    /// and its lines with it.
    fn await_line(&mut self, start: &str) -> String {
        let mut lines = self.lines.by_ref().map_while(Result::ok);
        let found = lines.find_map(|line| line.strip_prefix(start).map(str::to_owned));
        found.unwrap_or_else(|| panic!("it never said {start}"))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Stops the child's busy thread inside of a window.
fn stopped_in_a_window(subject: &Subject) -> (Stopped, Vec<Range<u64>>) {
    let windows = Target::open(subject.pid()).unwrap().windows();
    let stopped = Stopped::all_of(subject.pid()).unwrap();
    assert_eq!(stopped.threads.len(), 2);
    for _ in 0..STEPS_TO_A_WINDOW {
        // Make at least one step: a signal can be given only in the stop behind it.
        ptrace::single_step(subject.tid).unwrap();
        stopped.await_stop(subject.tid).unwrap();
        if is_inside(subject.tid, &windows) {
            return (stopped, windows);
        }
    }
    panic!("it never came to a clock function");
}

/// Returns whether a thread is inside a window. It asks the kernel and not the tracer, so
/// anybody can call it. It fails for a running thread.
fn is_inside(tid: i32, windows: &[Range<u64>]) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{tid}/syscall")).unwrap();
    let at = text.trim().rsplit(" 0x").next();
    let at = at.and_then(|at| u64::from_str_radix(at, 16).ok());
    let at = at.unwrap_or_else(|| panic!("{text}: it runs"));
    windows.iter().any(|window| window.contains(&at))
}

#[test]
fn a_thread_is_stepped_out_and_its_signal_is_not_lost() {
    let mut subject = Subject::start();
    let (mut stopped, windows) = stopped_in_a_window(&subject);
    ptrace::send(subject.pid(), subject.tid, libc::SIGUSR1).unwrap();
    stopped.step_out_of(&windows).unwrap();
    assert!(!is_inside(subject.tid, &windows));
    assert!(!stopped.goes_on_in(&windows, |bytes, at| {
        Target::open(subject.pid()).unwrap().read(bytes, at)
    }));
    let mut threads = stopped.threads.iter();
    assert!(threads.any(|thread| thread.tid == subject.tid && thread.signal == libc::SIGUSR1));
    drop(stopped);
    subject.await_line("signal");
}

/// SIGSTOP holds a thread exactly where it was when its tracer released it.
#[test]
fn a_clock_is_set_while_a_thread_stands_where_nobody_may() {
    let mut subject = Subject::start();
    let (pid, tid) = (subject.pid(), subject.tid);
    let (mut stopped, windows) = stopped_in_a_window(&subject);
    for thread in &mut stopped.threads {
        thread.signal = if thread.tid == tid { libc::SIGSTOP } else { 0 };
    }
    drop(stopped);
    let is_stopped = |tid| process::thread(pid, tid).is_some_and(|status| status.is_stopped());
    let await_stopped = || {
        let end = Instant::now() + CHILD_LIVES;
        while ![pid, tid].into_iter().all(is_stopped) {
            assert!(Instant::now() < end, "it does not stand still");
            std::thread::sleep(LOOK_AGAIN);
        }
    };
    await_stopped();
    assert!(is_inside(tid, &windows), "it stands where it was");

    crate::set(pid, Clock::Monotonic, 1_000_000_000).unwrap();
    await_stopped();
    assert!(
        !is_inside(tid, &windows),
        "it stands in the middle of a jump"
    );
    nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    ptrace::send(pid, tid, libc::SIGUSR1).unwrap();
    subject.await_line("signal");
}

#[test]
fn a_signal_handler_that_will_return_into_a_window_is_seen() {
    let mut subject = Subject::start();
    let (stopped, windows) = stopped_in_a_window(&subject);
    let (pid, tid) = (subject.pid(), subject.tid);
    // Step into the handler.
    let signal = libc::SIGUSR1 as usize;
    // SAFETY: PTRACE_SINGLESTEP takes no addresses.
    let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, tid, 0_usize, signal) };
    assert_eq!(stepped, 0);
    stopped.await_stop(tid).unwrap();
    assert!(!is_inside(tid, &windows));
    let target = Target::open(pid).unwrap();
    assert!(stopped.goes_on_in(&windows, |bytes, at| target.read(bytes, at)));
    drop(stopped);
    subject.await_line("signal");
}

/// Each signal is one more stop before the thread has moved.
#[test]
fn a_thread_that_signals_keep_in_a_window_is_seen() {
    let subject = Subject::start();
    let (mut stopped, windows) = stopped_in_a_window(&subject);
    for _ in 0..2 * MOST_STEPS {
        ptrace::send(subject.pid(), subject.tid, libc::SIGRTMIN()).unwrap();
    }
    stopped.step_out_of(&windows).unwrap();
    assert!(is_inside(subject.tid, &windows), "it could not move");
    let target = Target::open(subject.pid()).unwrap();
    assert!(stopped.goes_on_in(&windows, |bytes, at| target.read(bytes, at)));
}

#[test]
fn a_process_that_is_killed_while_it_is_held_ends() {
    let mut subject = Subject::start();
    // The threads that the tracer has not released are released when the tracer ends,
    // which is a thread.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stopped, windows) = stopped_in_a_window(&subject);
            ptrace::send(subject.pid(), subject.tid, libc::SIGKILL).unwrap();
            let _ = stopped.step_out_of(&windows);
        });
    });
    assert!(!subject.child.wait().unwrap().success());
}
