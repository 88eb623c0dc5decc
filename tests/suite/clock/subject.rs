//! A process with many threads that knows how its clocks differ from the
//! host's: each thread compares what the vDSO says with the system call.

use super::kit::SECOND_NS;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

const CHILD: &str = "clock::subject::a_process_that_reads_its_clocks";
pub const THREADS: usize = 4;
/// Far above anything a scheduler does to two readings in a row, which are
/// repeated until they fit together.
const READ_TWICE_NS: i64 = 50_000_000;

static SIGNALS: AtomicU32 = AtomicU32::new(0);

/// A signal that queues up, so each one sent can be counted.
pub fn counted_signal() -> i32 {
    libc::SIGRTMIN() + 3
}

#[derive(Default)]
struct Reading {
    realtime_ns: AtomicI64,
    monotonic_ns: AtomicI64,
    /// How often it was taken.
    count: AtomicU64,
}

#[test]
#[ignore = "is started by the other tests here"]
fn a_process_that_reads_its_clocks() {
    extern "C" fn count(_: libc::c_int) {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: the handler only adds to an atomic number.
    unsafe { libc::signal(counted_signal(), count as *const () as libc::sighandler_t) };
    let over = AtomicBool::new(false);
    let readings: [Reading; THREADS] = Default::default();
    std::thread::scope(|scope| {
        for reading in &readings {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    read_into(reading);
                }
            });
        }
        // Threads come and go all the time.
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let short = std::thread::spawn(|| skew_of(libc::CLOCK_MONOTONIC));
                short.join().expect("it only reads a clock");
            }
        });
        println!("\nready");
        for order in std::io::stdin().lines().map_while(Result::ok) {
            match order.as_str() {
                "look" => println!("seen {}", look(&readings)),
                "hang" => {
                    hang();
                    println!("hung");
                }
                "signals" => println!("signals {}", SIGNALS.load(Ordering::SeqCst)),
                _ => break,
            }
        }
        over.store(true, Ordering::Relaxed);
    });
}

/// Waits as nobody can interrupt it: for a child that was forked as by vfork.
fn hang() {
    let flags = libc::CLONE_VFORK | libc::SIGCHLD;
    let hanging = b"hanging\n";
    let mut go_on = [0_u8];
    // SAFETY: the child has memory of its own, and only writes, reads and exits.
    unsafe {
        if libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) == 0 {
            libc::write(1, hanging.as_ptr().cast(), hanging.len());
            // Its parent reads nothing as long as it waits.
            libc::read(0, go_on.as_mut_ptr().cast(), go_on.len());
            libc::_exit(0);
        }
    }
}

/// What each thread saw, in readings that began after this question.
fn look(readings: &[Reading]) -> String {
    let fresh = readings.iter().map(|reading| {
        let asked_at = reading.count.load(Ordering::SeqCst);
        while reading.count.load(Ordering::SeqCst) < asked_at + 2 {
            std::thread::yield_now();
        }
        let realtime = reading.realtime_ns.load(Ordering::SeqCst);
        format!("{realtime} {}", reading.monotonic_ns.load(Ordering::SeqCst))
    });
    fresh.collect::<Vec<String>>().join(" ")
}

fn read_into(reading: &Reading) {
    let realtime = skew_of(libc::CLOCK_REALTIME);
    let monotonic = skew_of(libc::CLOCK_MONOTONIC);
    reading.realtime_ns.store(realtime, Ordering::SeqCst);
    reading.monotonic_ns.store(monotonic, Ordering::SeqCst);
    reading.count.fetch_add(1, Ordering::SeqCst);
}

fn skew_of(clock: libc::clockid_t) -> i64 {
    loop {
        let before = time_of(clock, true);
        let seen = time_of(clock, false);
        let after = time_of(clock, true);
        if after - before < READ_TWICE_NS {
            return seen - before;
        }
    }
}

fn time_of(clock: libc::clockid_t, raw: bool) -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both write one timespec through a pointer to a live one.
    let result = unsafe {
        match raw {
            true => libc::syscall(libc::SYS_clock_gettime, clock, &mut time),
            false => libc::clock_gettime(clock, &mut time).into(),
        }
    };
    assert_eq!(result, 0);
    assert!((0..SECOND_NS).contains(&time.tv_nsec));
    time.tv_sec * SECOND_NS + time.tv_nsec
}

/// The process, from its parent's side. It ends when it is dropped, and with
/// this process.
pub struct Subject {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Subject {
    pub fn start() -> Subject {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args([CHILD, "--exact", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this test can start itself");
        let stdin = child.stdin.take().expect("piped");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut subject = Subject {
            child,
            stdin,
            stdout,
        };
        subject.answer("ready");
        subject
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("it runs");
    }

    /// False where its queue of signals is full.
    pub fn send_counted_signal(&self) -> bool {
        let value = libc::sigval {
            sival_ptr: std::ptr::null_mut(),
        };
        // SAFETY: the value points nowhere, and nobody follows it.
        unsafe { libc::sigqueue(self.pid(), counted_signal(), value) == 0 }
    }

    /// Returns when all of these have come; the last ones may be on their way.
    #[track_caller]
    pub fn await_signals(&mut self, sent: u32) {
        let mut come = 0;
        for _ in 0..200 {
            come = self.ask("signals").trim().parse().expect("a number");
            if come >= sent {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(come, sent, "signals were lost, or came twice");
    }

    /// Realtime and monotonic of each thread, ahead of the host's.
    pub fn look(&mut self) -> Vec<(i64, i64)> {
        let answer = self.ask("look");
        let numbers = answer.split_whitespace().map(|n| n.parse().expect("ns"));
        let numbers: Vec<i64> = numbers.collect();
        assert_eq!(numbers.len(), 2 * THREADS);
        numbers.chunks(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// One of its threads cannot be stopped until `end_hang`.
    pub fn hang(&mut self) {
        writeln!(self.stdin, "hang").expect("it runs");
        // The child says so: from then on its parent waits for it.
        self.answer("hanging");
    }

    pub fn end_hang(&mut self) {
        writeln!(self.stdin).expect("it runs");
        self.answer("hung");
    }

    /// Every thread sees clocks that are ahead by this much.
    #[track_caller]
    pub fn expect_ahead(&mut self, realtime_ns: i64, monotonic_ns: i64) {
        for (realtime, monotonic) in self.look() {
            let fits = |found: i64, wanted: i64| (0..=READ_TWICE_NS).contains(&(found - wanted));
            assert!(fits(realtime, realtime_ns), "realtime {realtime} ns");
            assert!(fits(monotonic, monotonic_ns), "monotonic {monotonic} ns");
        }
    }

    fn ask(&mut self, question: &str) -> String {
        writeln!(self.stdin, "{question}").expect("it runs");
        let answer = match question {
            "look" => "seen",
            other => other,
        };
        self.answer(answer)
    }

    fn answer(&mut self, start: &str) -> String {
        let mut line = String::new();
        while self.stdout.read_line(&mut line).expect("it runs") > 0 {
            if let Some(rest) = line.strip_prefix(start) {
                return rest.to_owned();
            }
            line.clear();
        }
        panic!("it ended before it said {start}");
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
