//! Defects on demand: a name says whose defect it is, and that part is told.

use super::RunRequest;

/// All that a run can switch on, by name.
#[cfg(debug_assertions)]
pub fn mutants() -> Vec<&'static str> {
    let of_locks = crate::dlock::Mutant::ALL.map(|mutant| mutant.name());
    let of_the_resource = crate::resource::Mutant::ALL.map(|mutant| mutant.name());
    let all = of_locks.into_iter().chain(of_the_resource);
    all.chain([crate::fault::Nemesis::MUTANT]).collect()
}

/// What a worker (`lock-`) or the resource (`resource-`) is told.
pub(super) fn mutant_setting(request: &RunRequest<'_>, whose: &str) -> Option<(String, String)> {
    let name = request.mutant.as_ref()?;
    let setting = ("FENCEPOST_MUTANT".to_owned(), name.clone());
    name.starts_with(whose).then_some(setting)
}
