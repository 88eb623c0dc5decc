use std::time::Duration;

/// A reason why the clock of a process could not be skewed, and its remedy.
#[derive(Debug, thiserror::Error)]
pub enum SkewError {
    #[error(
        "cannot be done here: clocks are skewed on Linux on x86_64, and this is {os} on {architecture}"
    )]
    NotLinuxX86 {
        os: &'static str,
        architecture: &'static str,
    },
    #[error("there is no process {pid}; it may have ended")]
    NoSuchProcess { pid: i32 },
    /// A process that is never touched.
    #[error("process {pid} is left alone: {why}")]
    Refused { pid: i32, why: String },
    #[error("{what}: out of range; {range}")]
    OutOfRange { what: String, range: String },
    #[error(
        "not permitted to change process {pid}: {reason}\nrun as root on its host, or let parents trace their children (sysctl kernel.yama.ptrace_scope=1), or in a container with --pid=container:NAME and --cap-add=SYS_PTRACE"
    )]
    Permission { pid: i32, reason: String },
    #[error(
        "process {pid} is being traced by process {tracer}, and a process has one tracer at a time; end that one first"
    )]
    AlreadyTraced { pid: i32, tracer: i32 },
    #[error("process {pid} has no vDSO that could be patched: {why}")]
    NoVdso { pid: i32, why: String },
    #[error(
        "this kernel's vDSO has no room for the patch: {needed} free bytes at its end are needed, {found} are there"
    )]
    NoRoomInVdso {
        pid: i32,
        needed: usize,
        found: usize,
    },
    #[error(
        "process {pid} is in another time namespace, where its clocks cannot be compared with ours"
    )]
    OtherTimeNamespace { pid: i32 },
    #[error(
        "the clock of process {pid} was skewed by another version of this program; undo it with that one, or restart the process"
    )]
    OtherVersion { pid: i32 },
    #[error(
        "gave up after {} s waiting for {what}; process {pid} goes on unchanged",
        .after.as_secs()
    )]
    Timeout {
        pid: i32,
        what: String,
        after: Duration,
    },
    #[error("process {pid}: could not {what}: {source}")]
    System {
        pid: i32,
        what: String,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "process {pid}: {what} was asked for, and {found} was read back; it may have started another program meanwhile (exec)"
    )]
    ReadBack {
        pid: i32,
        what: String,
        found: String,
    },
}

pub type SkewResult<T = ()> = Result<T, SkewError>;

impl SkewError {
    /// Returns whether the request and the target are fine, but this machine, this kernel
    /// or this user cannot do it.
    pub fn is_impossible_here(&self) -> bool {
        matches!(
            self,
            SkewError::NotLinuxX86 { .. }
                | SkewError::Permission { .. }
                | SkewError::AlreadyTraced { .. }
                | SkewError::NoVdso { .. }
                | SkewError::NoRoomInVdso { .. }
                | SkewError::OtherTimeNamespace { .. }
                | SkewError::OtherVersion { .. }
        )
    }

    /// Returns whether the request is wrong on any machine.
    pub fn is_wrong_usage(&self) -> bool {
        matches!(
            self,
            SkewError::NoSuchProcess { .. }
                | SkewError::Refused { .. }
                | SkewError::OutOfRange { .. }
        )
    }
}
