use std::path::PathBuf;

/// Where this user's programs keep what has to outlive them.
fn state_folder() -> PathBuf {
    let set = |name: &str| {
        let folder = PathBuf::from(std::env::var_os(name)?);
        folder.is_absolute().then_some(folder)
    };
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")));
    state.unwrap_or_else(std::env::temp_dir).join("fencepost")
}

/// Held while a topology is brought up or down.
pub fn playground_lock() -> PathBuf {
    state_folder().join("up.lock")
}

/// The journals of faults that have not been undone yet.
pub fn journals() -> PathBuf {
    state_folder().join("faults")
}

/// The same of runs on local processes.
pub fn local_journals() -> PathBuf {
    state_folder().join("local-faults")
}

/// The folders of runs on local processes.
pub fn local_runs() -> PathBuf {
    state_folder().join("local")
}
