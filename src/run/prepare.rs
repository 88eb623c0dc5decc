//! The preparation that is done once, before the first case of all runs.

use super::guests::{Met, announce};
use super::*;
use crate::cluster::{Image, Leftovers, Runtime};
use crate::faults::journal::{Healed, heal_leftovers};
use crate::model::{Fault, FaultClass};
use crate::simulation::SimulatedRuntime;
use std::collections::BTreeSet;

/// Checks that there is a place for everything that will be written, before anything takes its
/// time.
pub fn check_places(lab: &Lab<'_>, scenarios: &[Scenario]) -> Result<(), FolderError> {
    for scenario in scenarios {
        RunFolder::check(lab.results, &scenario.name)?;
    }
    let path = lab.journals.to_owned();
    // Without this folder no fault could be injected.
    files::private_folder(&path).map_err(|source| FolderError::Journals { path, source })
}

/// The facts that were found on this machine.
pub struct MachineFacts {
    about: BTreeMap<String, String>,
    attached: BTreeSet<Met>,
    image_ids: BTreeMap<String, String>,
}

impl MachineFacts {
    /// Returns the `environment` of a result: of all images and attached servers, only those that
    /// its run uses.
    pub fn environment(&self, lab: &Lab<'_>, scenario: &Scenario) -> BTreeMap<String, String> {
        let mut environment = self.about.clone();
        let mut of_cases = lab.options.chosen(scenario);
        if of_cases.all(|case| lab.simulates(case)) {
            environment = SimulatedRuntime.about();
        }
        for (_, name, shown) in self.attached.iter().filter(|it| it.0 == scenario.name) {
            let all = environment.entry(format!("attached {name}"));
            all.and_modify(|all| *all += &format!(", {shown}"))
                .or_insert_with(|| shown.clone());
        }
        let of_cases = lab.options.chosen(scenario);
        for Image { name, .. } in of_cases.flat_map(|case| images(lab, case)) {
            if let Some(id) = self.image_ids.get(&name) {
                environment.insert(format!("image {name}"), id.clone());
            }
        }
        environment
    }
}

/// Heals and removes what killed runs left behind, and makes the images.
pub async fn prepare(lab: &Lab<'_>, scenarios: &[Scenario]) -> RunResult<MachineFacts> {
    let (runtime, progress) = (lab.runtime, lab.progress);
    let Healed { healed, unhealed } = heal_leftovers(lab.journals, runtime).await;
    for words in healed.iter().chain(&unhealed) {
        progress.say(words);
    }
    let swept = runtime.sweep(Leftovers::OfDeadRuns).await?;
    for leftover in swept.removed {
        progress.say(&format!(
            "removed {leftover}, left behind by a run that was killed"
        ));
    }
    for why in swept.stuck {
        progress.say(&why);
    }
    let about = runtime.about();
    // Before anything takes its time.
    let attached = announce(lab, scenarios).await?;
    Ok(MachineFacts {
        image_ids: make_images(lab, scenarios).await?,
        about,
        attached,
    })
}

/// Makes the images of the cases that can be run here. A failure may concern some cases only, and
/// the runtime lacks something for these from then on. The other cases are still run, and each of
/// the former says why it is not.
async fn make_images(lab: &Lab<'_>, scenarios: &[Scenario]) -> RunResult<BTreeMap<String, String>> {
    let possible_cases = || {
        let chosen = scenarios.iter().flat_map(|it| lab.options.chosen(it));
        let possible = chosen.filter(|case| lab.lacking(case).is_none());
        possible.collect::<Vec<&Case>>()
    };
    let mut possible = possible_cases();
    loop {
        let images: Vec<Image> = possible.iter().flat_map(|case| images(lab, case)).collect();
        match lab.runtime.prepare(&images, lab.progress).await {
            Ok(ids) => return Ok(ids),
            Err(error) => {
                let left = possible_cases();
                if left.is_empty() || left.len() == possible.len() {
                    return Err(error.into());
                }
                possible = left;
            }
        }
    }
}

/// Returns all images that a case is started from, some of them more than once.
fn images(lab: &Lab<'_>, case: &Case) -> Vec<Image> {
    if lab.simulates(case) {
        return Vec::new();
    }
    let topology = lab.topology(case);
    let mut images: Vec<Image> = topology.images().cloned().collect();
    images.extend(lab.worker_image(case));
    images.push(lab.toxiproxy.image.clone());
    let loses_packets = |fault: &&Fault| fault.kind().class() == FaultClass::PacketLoss;
    if case.setup.faults().iter().any(loses_packets) {
        images.push(topology.packet_filter());
    }
    images
}
