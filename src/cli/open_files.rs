use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Takes as many open files as this process may have. Every contender has a connection
/// to the resource, and the usual soft limit is for programs with few. Where it stays as
/// it was, whoever needs more says so when there are none left.
pub fn take_all() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}
