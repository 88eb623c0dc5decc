//! The least rights that a container needs, and no others: it runs other people's programs, which
//! are sometimes told to misbehave.

use super::*;
use crate::cluster::Rights;

/// Nobody else is this user, and no file of an image belongs to it except the folders that are
/// there for data.
const NOBODY_ELSE: &str = "65532:65532";
const ROOT: &str = "0:0";
/// Enough for millions of locks. A program that leaks memory is ended, and the machine is safe.
const MEMORY_BYTES: i64 = 4 << 30;
/// Threads count as well, and a large machine has many of them.
const PIDS: i64 = 4096;
/// Folders in memory, which are empty after every start.
const SCRATCH: [&str; 2] = ["/tmp", "/run"];
const SCRATCH_OPTIONS: &str = "rw,noexec,nosuid,nodev,size=64m,mode=1777";

/// Confines a node to the rights that its topology gives it.
pub fn with_rights(body: ContainerCreateBody, rights: &Rights) -> ContainerCreateBody {
    let user = rights.user.as_deref().unwrap_or(NOBODY_ELSE);
    ContainerCreateBody {
        user: Some(user.to_owned()),
        volumes: Some(rights.volumes.clone()),
        host_config: Some(HostConfig {
            readonly_rootfs: Some(!rights.writes_anywhere),
            ..without_capabilities()
        }),
        ..body
    }
}

/// Confines a container to one capability. The capability is of use only to root, and root can do
/// nothing else without the others.
pub fn with_capability(body: ContainerCreateBody, capability: &str) -> ContainerCreateBody {
    ContainerCreateBody {
        user: Some(ROOT.to_owned()),
        host_config: Some(HostConfig {
            cap_add: Some(vec![capability.to_owned()]),
            ..without_capabilities()
        }),
        ..body
    }
}

fn without_capabilities() -> HostConfig {
    let scratch = SCRATCH.map(|path| (path.to_owned(), SCRATCH_OPTIONS.to_owned()));
    HostConfig {
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some(HashMap::from(scratch)),
        memory: Some(MEMORY_BYTES),
        // Memory and swap together.
        memory_swap: Some(MEMORY_BYTES),
        pids_limit: Some(PIDS),
        ..Default::default()
    }
}
