//! The system calls that hold a thread, each of them once, and nothing else.
//!
//! A thread of ours that has seized another is its tracer; when ours ends, for whatever
//! reason, the kernel lets all threads that it holds run on.

use std::io;

/// An event in the upper half of a stop's status: the thread was stopped by us or with
/// its whole process, and not for a signal.
const PTRACE_EVENT_STOP: i32 = 128;

/// The state in which a seized thread was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Running,
    /// It was stopped by our interrupt, or with its whole process (SIGSTOP).
    Stopped,
    /// It stopped to deliver this signal, which waits until it is handed on.
    StoppedForSignal(i32),
    Ended,
}

pub fn seize(tid: i32) -> io::Result<()> {
    // SAFETY: PTRACE_SEIZE takes no addresses.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0_usize, 0_usize) })
}

pub fn interrupt(tid: i32) -> io::Result<()> {
    // SAFETY: PTRACE_INTERRUPT takes no addresses.
    check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0_usize, 0_usize) })
}

/// Looks at a thread of this tracer without waiting.
///
/// The status is left unread for the kernel (WNOWAIT): if this tracer is killed in the
/// middle, a signal on its way is still delivered, and the end of a child stays visible
/// to its parent.
pub fn look(tid: i32) -> io::Result<Seen> {
    let flags = libc::WSTOPPED
        | libc::WEXITED
        | libc::WNOHANG
        | libc::WNOWAIT
        | libc::__WALL
        | libc::__WNOTHREAD;
    // SAFETY: all zeros is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one siginfo_t through a pointer to a live one.
    let result = unsafe { libc::waitid(libc::P_PID, tid as libc::id_t, &mut info, flags) };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: waitid succeeded, so the fields of a child's change are set; they
    // are zero where there was none.
    let (changed, status) = unsafe { (info.si_pid(), info.si_status()) };
    Ok(match info.si_code {
        _ if changed == 0 => Seen::Running,
        libc::CLD_TRAPPED | libc::CLD_STOPPED if status >> 8 == PTRACE_EVENT_STOP => Seen::Stopped,
        libc::CLD_TRAPPED | libc::CLD_STOPPED => Seen::StoppedForSignal(status & 0xff),
        _ => Seen::Ended,
    })
}

/// The registers of a stopped thread: where it goes on, and where its stack ends.
pub struct Registers {
    pub instruction: u64,
    pub stack: u64,
}

pub fn registers(tid: i32) -> io::Result<Registers> {
    // SAFETY: all zeros is a valid set of registers.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one user_regs_struct through a pointer to a live one.
    check(unsafe { libc::ptrace(libc::PTRACE_GETREGS, tid, 0_usize, &mut registers) })?;
    Ok(Registers {
        instruction: registers.rip,
        stack: registers.rsp,
    })
}

/// Writes eight bytes of a stopped thread's memory, even where the thread itself may not
/// write.
pub fn poke(tid: i32, address: u64, word: [u8; 8]) -> io::Result<()> {
    let word = u64::from_ne_bytes(word) as usize;
    // SAFETY: the address is one of the other process, and the kernel checks it.
    check(unsafe { libc::ptrace(libc::PTRACE_POKEDATA, tid, address as usize, word) })
}

/// Lets a stopped thread execute one instruction, and holds its signal back.
pub fn single_step(tid: i32) -> io::Result<()> {
    // SAFETY: PTRACE_SINGLESTEP takes no addresses; 0 is no signal.
    check(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, tid, 0_usize, 0_usize) })
}

pub struct SignalInfo(libc::siginfo_t);

pub fn signal_info(tid: i32) -> io::Result<SignalInfo> {
    // SAFETY: all zeros is a valid siginfo_t.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one siginfo_t through a pointer to a live one.
    check(unsafe { libc::ptrace(libc::PTRACE_GETSIGINFO, tid, 0_usize, &mut info) })?;
    Ok(SignalInfo(info))
}

pub fn set_signal_info(tid: i32, info: &SignalInfo) -> io::Result<()> {
    // SAFETY: the kernel reads one siginfo_t through a pointer to a live one.
    check(unsafe { libc::ptrace(libc::PTRACE_SETSIGINFO, tid, 0_usize, &info.0) })
}

/// Lets a stopped thread go, and delivers a signal to it (0 is none).
pub fn detach(tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: PTRACE_DETACH takes no addresses.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, tid, 0_usize, signal as usize) })
}

pub fn send(pid: i32, tid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: tgkill takes three numbers.
    check(unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal) })
}

fn check(result: i64) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
