use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to the most that this process may have. Every contender has a
/// connection to the resource, and the usual soft limit is meant for programs with few. If the
/// limit cannot be raised, the code that needs more files reports it when it gets none.
pub fn take_all() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
