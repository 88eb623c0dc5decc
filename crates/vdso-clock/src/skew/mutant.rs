//! A defect on demand, in test builds only.

/// Kills the patching program in the middle, with its target held and half patched.
pub fn die_half_way() {
    let asked_for = std::env::var_os("FENCEPOST_MUTANT");
    if asked_for.is_some_and(|name| name == "clock-dies-half-way") {
        let _ = nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL);
    }
}
