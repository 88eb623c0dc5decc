//! Servers that are set apart from this process: databases refuse to run as root, and Postgres
//! asks for memory that outlives a server which was killed.
//!
//! Both are mended by namespaces of the kernel. In a user namespace a process that is root sees
//! itself as somebody else, and its files and signals stay ours. What it shares in a memory namespace
//! goes with the last process in there.

use super::*;
use nix::unistd::{getegid, geteuid};

/// This is `nobody` and `nogroup`. A server asks for the name of its user, so there has to be one.
const SOMEBODY: u32 = 65534;
const USERS: &str = "/proc/self/uid_map";
const GROUPS: &str = "/proc/self/gid_map";
/// Without this, nobody may say which group they see.
const MORE_GROUPS: &str = "/proc/self/setgroups";

/// What of this process a server has to be set apart from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    Nothing,
    /// It refuses to run as root.
    User,
    /// It refuses to run as root, and leaves shared memory behind.
    UserAndMemory,
}

impl Apart {
    /// Returns why a program could not be started.
    pub fn explained(self, error: &io::Error) -> String {
        let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Apart::User | Apart::UserAndMemory if is_refused => {
                format!("it needs a user namespace of its own, and there is none for it: {error}")
            }
            _ => error.to_string(),
        }
    }
}

/// Has the command start apart from this process.
pub fn set(command: &mut Command, apart: Apart) {
    let (us, our_group) = (geteuid(), getegid());
    let shares_memory = match apart {
        Apart::Nothing => return,
        Apart::User if !us.is_root() => return,
        Apart::User => true,
        Apart::UserAndMemory => false,
    };
    let (user, group) = match us.is_root() {
        true => (SOMEBODY, SOMEBODY),
        false => (us.as_raw(), our_group.as_raw()),
    };
    // A MariaDB gives its files to its own user and group.
    let maps = [
        (USERS, format!("{user} {us} 1")),
        (MORE_GROUPS, "deny".to_owned()),
        (GROUPS, format!("{group} {our_group} 1")),
    ];
    // SAFETY: what runs between fork and exec makes system calls, and neither allocates nor takes
    // a lock.
    unsafe {
        command.pre_exec(move || enter(shares_memory, &maps));
    }
}

#[cfg(target_os = "linux")]
fn enter(shares_memory: bool, maps: &[(&str, String)]) -> io::Result<()> {
    use nix::fcntl::{OFlag, open};
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::stat::Mode;
    let user = CloneFlags::CLONE_NEWUSER;
    let memory = CloneFlags::CLONE_NEWIPC;
    unshare(if shares_memory { user } else { user | memory })?;
    for (path, text) in maps {
        let file = open(*path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
        nix::unistd::write(&file, text.as_bytes())?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn enter(_: bool, _: &[(&str, String)]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_apart_is_not_root_and_has_memory_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let shown = async |apart| {
            let mut command = Command::new("sh");
            let own = "touch file; chown $(id -u):$(id -g) file && echo given";
            command.args(["-c", &format!("id -u; readlink /proc/self/ns/ipc; {own}")]);
            command.current_dir(folder.path());
            set(&mut command, apart);
            let output = command.output().await.unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        let plain = shown(Apart::Nothing).await;
        let (own, other) = (shown(Apart::User).await, shown(Apart::UserAndMemory).await);
        let ipc = |shown: &str| shown.lines().nth(1).unwrap().to_owned();
        assert!(!own.starts_with("0\n") && !other.starts_with("0\n"));
        assert_eq!(ipc(&own), ipc(&plain));
        assert_ne!(ipc(&other), ipc(&plain));
        assert!(own.ends_with("given\n") && other.ends_with("given\n"));
    }
}
