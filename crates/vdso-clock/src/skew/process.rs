//! The state of a target according to /proc.

use crate::{SkewError, SkewResult};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// The pid namespace of every host.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Returns the range of the vDSO from /proc/PID/maps.
pub fn vdso_of(maps: &str) -> Option<Range<u64>> {
    // The name follows addresses, rights, offset, device and inode. A file may have this
    // name as well, but is listed with its whole path.
    let is_vdso = |line: &&str| line.split_whitespace().skip(5).eq(["[vdso]"]);
    let line = maps.lines().find(is_vdso)?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

pub fn check(pid: i32) -> SkewResult {
    let refused = |why: &str| SkewError::Refused {
        pid,
        why: why.to_owned(),
    };
    if pid == std::process::id() as i32 {
        return Err(refused("it is this very program"));
    }
    if pid == 1 && namespace("self", "pid").as_deref() == Some(INITIAL_PID_NAMESPACE) {
        return Err(refused("it is the first process of the host"));
    }
    let status = Status::read(&format!("/proc/{pid}/status"));
    let status = status.map_err(|error| from_proc(pid, "read its state", error))?;
    match status.field("Tgid") {
        Some(leader) if leader != pid.to_string() => {
            return Err(refused(&format!("it is a thread of process {leader}")));
        }
        _ => {}
    }
    if status.has_ended() {
        return Err(SkewError::NoSuchProcess { pid });
    }
    if status.field("VmSize").is_none() {
        return Err(SkewError::NoVdso {
            pid,
            why: "it is a thread of the kernel, or is about to end".to_owned(),
        });
    }
    match (
        namespace(&pid.to_string(), "time"),
        namespace("self", "time"),
    ) {
        (Some(its), Some(ours)) if its != ours => Err(SkewError::OtherTimeNamespace { pid }),
        _ => Ok(()),
    }
}

/// Checks that nobody else traces it.
pub fn check_untraced(pid: i32) -> SkewResult {
    let status = Status::read(&format!("/proc/{pid}/status"));
    let tracer = status.ok().and_then(|status| status.tracer());
    match tracer {
        Some(tracer) => Err(SkewError::AlreadyTraced { pid, tracer }),
        None => Ok(()),
    }
}

pub fn vdso(pid: i32) -> SkewResult<Range<u64>> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    let maps = maps.map_err(|error| from_proc(pid, "read its mappings", error))?;
    vdso_of(&maps).ok_or_else(|| SkewError::NoVdso {
        pid,
        why: "none is mapped".to_owned(),
    })
}

/// Returns the ids of its threads, including those about to end.
pub fn threads(pid: i32) -> SkewResult<Vec<i32>> {
    let failed = |error| from_proc(pid, "list its threads", error);
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)?;
    let mut threads = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(threads)
}

/// Returns one thread's status, or `None` if it is gone.
pub fn thread(pid: i32, tid: i32) -> Option<Status> {
    Status::read(&format!("/proc/{pid}/task/{tid}/status")).ok()
}

pub struct Status(String);

impl Status {
    fn read(path: &str) -> io::Result<Status> {
        fs::read_to_string(path).map(Status)
    }

    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(key, _)| *key == name)?;
        Some(value.trim())
    }

    pub fn has_ended(&self) -> bool {
        let state = self.field("State").unwrap_or_default();
        state.starts_with(['Z', 'X', 'x'])
    }

    /// Returns whether it is stopped with its whole process, by SIGSTOP.
    #[cfg(test)]
    pub fn is_stopped(&self) -> bool {
        self.field("State").unwrap_or_default().starts_with('T')
    }

    pub fn tracer(&self) -> Option<i32> {
        let tracer = self.field("TracerPid")?.parse().ok()?;
        (tracer != 0).then_some(tracer)
    }
}

/// Converts an error about a process to its meaning.
pub fn from_proc(pid: i32, what: &str, error: io::Error) -> SkewError {
    match error.kind() {
        // The memory of a process that has just ended is empty.
        ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::WriteZero => {
            SkewError::NoSuchProcess { pid }
        }
        _ if error.raw_os_error() == Some(libc::ESRCH) => SkewError::NoSuchProcess { pid },
        ErrorKind::PermissionDenied => SkewError::Permission {
            pid,
            reason: format!("could not {what}: {error}"),
        },
        _ => SkewError::System {
            pid,
            what: what.to_owned(),
            source: error,
        },
    }
}

fn namespace(pid: &str, kind: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()?;
    Some(link.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_called_like_the_vdso_is_not_it() {
        let maps = "\
10000-20000 r--p 00000000 08:01 7 /tmp/x[vdso]
20000-30000 r--p 00000000 08:01 8 /tmp/x [vdso]
30000-40000 r--p 00000000 08:01 9 /[vdso]
7ff000-7ff800 r-xp 00000000 00:00 0                          [vdso]
";
        assert_eq!(vdso_of(maps), Some(0x7ff000..0x7ff800));
    }
}
