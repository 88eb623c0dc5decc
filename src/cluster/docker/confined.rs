//! The least that a container needs, and nothing beyond it: what runs inside is
//! other people's programs, and sometimes told to misbehave.

use crate::cluster::Rights;
use bollard::models::{ContainerCreateBody, HostConfig};
use std::collections::HashMap;

/// Nobody else is this user, and no file of an image belongs to it but the
/// folders that are there for data.
const NOBODY_ELSE: &str = "65532:65532";
const ROOT: &str = "0:0";
/// Enough for millions of locks; what leaks is ended, and not the machine.
const MEMORY_BYTES: i64 = 4 << 30;
/// Threads count as well, and a large machine has many of them.
const PIDS: i64 = 4096;
/// In memory, and empty after every start.
const SCRATCH: [&str; 2] = ["/tmp", "/run"];
const SCRATCH_OPTIONS: &str = "rw,noexec,nosuid,nodev,size=64m,mode=1777";

/// As a node, with the rights that its topology gives it.
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

/// With one capability alone. It is worth something only to root, who can do
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
        // Of memory and swap together.
        memory_swap: Some(MEMORY_BYTES),
        pids_limit: Some(PIDS),
        ..Default::default()
    }
}
