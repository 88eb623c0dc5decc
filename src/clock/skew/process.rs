//! What /proc says about a target.

use crate::clock::SkewError;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;

/// The pid namespace of a host is always this one.
const INITIAL_PID_NAMESPACE: &str = "pid:[4026531836]";

/// The line of /proc/PID/maps that is the vDSO.
pub fn vdso_of(maps: &str) -> Option<Range<u64>> {
    // Behind addresses, rights, offset, device and inode. A file may be called so as
    // well, but stands there with its whole path.
    let is_vdso = |line: &&str| line.split_whitespace().skip(5).eq(["[vdso]"]);
    let line = maps.lines().find(is_vdso)?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// A process that there is, and that may be touched at all.
pub fn check(pid: i32) -> Result<(), SkewError> {
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

/// Nobody else traces it.
pub fn check_untraced(pid: i32) -> Result<(), SkewError> {
    let status = Status::read(&format!("/proc/{pid}/status"));
    let tracer = status.ok().and_then(|status| status.tracer());
    match tracer {
        Some(tracer) => Err(SkewError::AlreadyTraced { pid, tracer }),
        None => Ok(()),
    }
}

pub fn vdso(pid: i32) -> Result<Range<u64>, SkewError> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps"));
    let maps = maps.map_err(|error| from_proc(pid, "read its mappings", error))?;
    vdso_of(&maps).ok_or_else(|| SkewError::NoVdso {
        pid,
        why: "none is mapped".to_owned(),
    })
}

/// The ids of its threads, those about to end included.
pub fn threads(pid: i32) -> Result<Vec<i32>, SkewError> {
    let failed = |error| from_proc(pid, "list its threads", error);
    let entries = fs::read_dir(format!("/proc/{pid}/task")).map_err(failed)?;
    let mut threads = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        threads.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(threads)
}

/// One thread's status, or none where it is gone.
pub fn thread(pid: i32, tid: i32) -> Option<Status> {
    Status::read(&format!("/proc/{pid}/task/{tid}/status")).ok()
}

/// /proc/…/status.
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

    /// With its whole process, by SIGSTOP.
    #[cfg(test)]
    pub fn is_stopped(&self) -> bool {
        self.field("State").unwrap_or_default().starts_with('T')
    }

    pub fn tracer(&self) -> Option<i32> {
        let tracer = self.field("TracerPid")?.parse().ok()?;
        (tracer != 0).then_some(tracer)
    }
}

/// An error about a process, as what it means.
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
