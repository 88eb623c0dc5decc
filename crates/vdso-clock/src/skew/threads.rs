//! Stops every thread of a process for a moment.

use super::process;
use super::ptrace::{self, Seen, SignalInfo};
use crate::{SkewError, SkewResult};
use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Threads stop in well under a millisecond, except those that the kernel does not let
/// anybody interrupt (a disk that does not answer, a child before its exec).
const STOP_DEADLINE: Duration = Duration::from_secs(2);
/// A thread's stop cannot be awaited with a deadline, only polled: at first continuously,
/// then at intervals.
const EAGER_LOOKS: u32 = 200;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
/// Instructions take at least one byte, and the windows are four bytes long.
const MOST_STEPS: u32 = 16;
/// The part of a stack that is searched for the frame of a signal handler.
const STACK_LOOKED_AT: usize = 16 * 1024;
/// The code segment of every 64-bit program.
const USER_CODE: u16 = 0x33;

/// All threads of one process, stopped. When this is dropped they go on, each with the
/// signal that it was about to take.
///
/// A thread that is seized and not stopped cannot be released; it is released when the
/// thread that seized it ends, so every operation has a separate thread.
pub struct Stopped {
    pid: i32,
    threads: Vec<Thread>,
    deadline: Instant,
}

struct Thread {
    tid: i32,
    /// The signal that it stopped for, and takes when it goes on; 0 is none.
    signal: i32,
}

impl Stopped {
    pub fn all_of(pid: i32) -> SkewResult<Stopped> {
        let mut stopped = Stopped {
            pid,
            threads: Vec::new(),
            deadline: Instant::now() + STOP_DEADLINE,
        };
        let mut known = BTreeSet::new();
        // Running threads may start others. Once a look finds no new thread, all threads
        // that could start one are held.
        loop {
            let mut fresh = process::threads(pid)?;
            fresh.retain(|tid| !known.contains(tid));
            if fresh.is_empty() {
                return Ok(stopped);
            }
            let mut seized = Vec::new();
            for tid in fresh {
                match stopped.seize(tid)? {
                    Seized::Held => {
                        known.insert(tid);
                        seized.push(tid);
                    }
                    // It stays listed as long as its process lives.
                    Seized::EndedAndListed => drop(known.insert(tid)),
                    Seized::Gone => stopped.check_deadline("its threads to be counted")?,
                }
            }
            for tid in seized {
                let seen = stopped.await_stop(tid)?;
                stopped.threads.extend(match seen {
                    Seen::StoppedForSignal(signal) => Some(Thread { tid, signal }),
                    Seen::Stopped => Some(Thread { tid, signal: 0 }),
                    Seen::Running | Seen::Ended => None,
                });
            }
        }
    }

    /// Steps the threads forward until none is between two of the bytes that are about to
    /// change.
    pub fn step_out_of(&mut self, windows: &[Range<u64>]) -> SkewResult {
        for index in 0..self.threads.len() {
            self.step_thread_out_of(index, windows)?;
        }
        Ok(())
    }

    /// Returns whether a thread still goes on inside of these windows. A thread that is
    /// flooded with signals stops for the next of them at every step, and does not move.
    /// Or a signal handler interrupted it there and will return: handlers keep that
    /// address on their stack, in front of the code segment.
    pub fn goes_on_in(
        &self,
        windows: &[Range<u64>],
        read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
    ) -> bool {
        let mut stack = vec![0; STACK_LOOKED_AT];
        self.threads.iter().any(|thread| {
            // A thread that was killed in the meantime does not go on.
            let Ok(registers) = ptrace::registers(thread.tid) else {
                return false;
            };
            let is_inside = |instruction| windows.iter().any(|w| w.contains(&instruction));
            let length = read(&mut stack, registers.stack);
            let (words, _) = stack[..length.unwrap_or(0)].as_chunks::<8>();
            let is_frame = |words: &[[u8; 8]]| {
                let segment = u16::from_le_bytes([words[2][0], words[2][1]]);
                segment == USER_CODE && is_inside(u64::from_le_bytes(words[0]))
            };
            is_inside(registers.instruction) || words.windows(3).any(is_frame)
        })
    }

    fn step_thread_out_of(&mut self, index: usize, windows: &[Range<u64>]) -> SkewResult {
        let mut held = Vec::new();
        let stepped = self.step(&self.threads[index], windows, &mut held);
        if let Ok(Some(signal)) = stepped {
            self.threads[index].signal = signal;
        }
        let handed_back = self.hand_back(index, held);
        stepped.and(handed_back)
    }

    /// Returns the signal of the thread's last stop, if it was moved at all. The signals
    /// of the stops before are held back in `held`.
    fn step(
        &self,
        thread: &Thread,
        windows: &[Range<u64>],
        held: &mut Vec<(i32, SignalInfo)>,
    ) -> SkewResult<Option<i32>> {
        let tid = thread.tid;
        let failed = |error| system(self.pid, "step a thread out of the way", error);
        let mut signal = None;
        for _ in 0..MOST_STEPS {
            let at = match ptrace::registers(tid) {
                Ok(registers) => registers.instruction,
                // The thread was killed in the meantime.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => break,
                Err(error) => return Err(failed(error)),
            };
            if !windows.iter().any(|window| window.contains(&at)) {
                break;
            }
            // A step ends in a stop for SIGTRAP, which is ours; any other signal is the
            // thread's own.
            let own = signal.unwrap_or(thread.signal);
            if own != 0 && own != libc::SIGTRAP {
                held.push((own, ptrace::signal_info(tid).map_err(failed)?));
            }
            ptrace::single_step(tid).map_err(failed)?;
            signal = match self.await_stop(tid)? {
                Seen::StoppedForSignal(signal) => Some(signal),
                _ => Some(0),
            };
        }
        Ok(signal)
    }

    /// Hands the held signals back. In the stop of the last step one signal can be set as
    /// if it had just come; any further one is sent again.
    fn hand_back(&mut self, index: usize, held: Vec<(i32, SignalInfo)>) -> SkewResult {
        let pid = self.pid;
        let Thread { tid, signal } = &mut self.threads[index];
        for (own, info) in held {
            if *signal == libc::SIGTRAP && ptrace::set_signal_info(*tid, &info).is_ok() {
                *signal = own;
            } else {
                let sent = ptrace::send(pid, *tid, own);
                sent.map_err(|error| system(pid, "hand a signal on", error))?;
            }
        }
        if *signal == libc::SIGTRAP {
            *signal = 0;
        }
        Ok(())
    }

    fn seize(&self, tid: i32) -> SkewResult<Seized> {
        let seized = ptrace::seize(tid).and_then(|()| ptrace::interrupt(tid));
        let Err(error) = seized else {
            return Ok(Seized::Held);
        };
        match process::thread(self.pid, tid) {
            None => Ok(Seized::Gone),
            Some(status) if status.has_ended() => Ok(Seized::EndedAndListed),
            Some(_) if error.raw_os_error() == Some(libc::ESRCH) => Ok(Seized::Gone),
            Some(status) => Err(match status.tracer() {
                Some(tracer) => SkewError::AlreadyTraced {
                    pid: self.pid,
                    tracer,
                },
                None => process::from_proc(self.pid, "stop its threads", error),
            }),
        }
    }

    fn await_stop(&self, tid: i32) -> SkewResult<Seen> {
        for look in 0_u32.. {
            match ptrace::look(tid) {
                Ok(Seen::Running) => {}
                Ok(seen) => return Ok(seen),
                // Another thread's exec replaced it.
                Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Seen::Ended),
                Err(error) => return Err(system(self.pid, "see a thread stop", error)),
            }
            if look < EAGER_LOOKS {
                std::thread::yield_now();
                continue;
            }
            // The first thread of a process is not reported as ended before all others
            // are.
            let status = process::thread(self.pid, tid);
            if status.is_none_or(|status| status.has_ended()) {
                return Ok(Seen::Ended);
            }
            self.check_deadline(&format!("its thread {tid} to stop"))?;
            std::thread::sleep(LOOK_AGAIN);
        }
        unreachable!("the deadline ends it")
    }

    fn check_deadline(&self, what: &str) -> SkewResult {
        match Instant::now() < self.deadline {
            true => Ok(()),
            false => Err(SkewError::Timeout {
                pid: self.pid,
                what: what.to_owned(),
                after: STOP_DEADLINE,
            }),
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        for thread in &self.threads {
            // This fails only for a thread that was killed in the meantime.
            let _ = ptrace::detach(thread.tid, thread.signal);
        }
    }
}

enum Seized {
    Held,
    EndedAndListed,
    Gone,
}

fn system(pid: i32, what: &str, source: io::Error) -> SkewError {
    SkewError::System {
        pid,
        what: what.to_owned(),
        source,
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
