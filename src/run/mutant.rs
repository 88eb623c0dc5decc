//! Defects on demand: the name says which part has the defect, and that part receives it.

use super::options::Lab;

/// Returns the names of all mutants that a run can switch on.
#[cfg(debug_assertions)]
pub fn mutants() -> Vec<&'static str> {
    let of_locks = fencing_lock::Mutant::ALL.iter().map(|mutant| mutant.name());
    let of_the_resource = crate::resource::Mutant::ALL
        .iter()
        .map(|mutant| mutant.name());
    let of_the_s3 = crate::resource::s3::Mutant::ALL.iter();
    let of_the_s3 = of_the_s3.map(|mutant| mutant.name());
    let all = of_locks.chain(of_the_resource).chain(of_the_s3);
    all.chain([crate::faults::Nemesis::MUTANT]).collect()
}

/// Returns the setting for a worker (`lock-`) or for the resource (`resource-`, `s3-`).
pub(super) fn mutant_setting(lab: &Lab<'_>, whose: &str) -> Option<(String, String)> {
    let name = lab.options.mutant.as_ref()?;
    let setting = ("FENCEPOST_MUTANT".to_owned(), name.clone());
    name.starts_with(whose).then_some(setting)
}
