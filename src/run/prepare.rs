//! What is done once, before the first case of all runs.

use super::{FolderError, RunError, RunFolder, RunRequest};
use crate::cluster::{Image, Leftovers, Runtime};
use crate::fault::journal::{Healed, heal_leftovers};
use crate::files;
use crate::model::Fault;
use crate::progress::Progress;
use crate::scenario::Case;
use std::collections::BTreeMap;

/// Whether there is a place for everything that will be written, before
/// anything takes its time.
pub fn check_places(requests: &[RunRequest<'_>]) -> Result<(), FolderError> {
    for request in requests {
        RunFolder::check(&request.results, &request.scenario.name)?;
        let path = request.journals.clone();
        // Without it no fault could be injected.
        files::private_folder(&path).map_err(|source| FolderError::Journals { path, source })?;
    }
    Ok(())
}

/// What was found on this machine.
pub struct Prepared {
    about: BTreeMap<String, String>,
    image_ids: BTreeMap<String, String>,
}

impl Prepared {
    /// The `environment` of a result: of all images, those that its run uses.
    pub fn environment(&self, request: &RunRequest<'_>) -> BTreeMap<String, String> {
        let mut environment = self.about.clone();
        for Image { name, .. } in images(request) {
            if let Some(id) = self.image_ids.get(&name) {
                environment.insert(format!("image {name}"), id.clone());
            }
        }
        environment
    }
}

/// Heals and removes what killed runs left behind, and makes the images.
pub async fn prepare(
    requests: &[RunRequest<'_>],
    runtime: &dyn Runtime,
    progress: &dyn Progress,
) -> Result<Prepared, RunError> {
    let mut journals: Vec<_> = requests.iter().map(|request| &request.journals).collect();
    journals.dedup();
    for folder in journals {
        let Healed { healed, unhealed } = heal_leftovers(folder, runtime).await;
        for words in healed.iter().chain(&unhealed) {
            progress.say(words);
        }
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
    Ok(Prepared {
        image_ids: make_images(requests, runtime, progress).await?,
        about: runtime.about(),
    })
}

/// Only for what can be run here. What turns out to be missing may concern some
/// cases only, which the runtime lacks something for from then on: as long as
/// others are left, these are run, and each of the former says why it is not.
async fn make_images(
    requests: &[RunRequest<'_>],
    runtime: &dyn Runtime,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, String>, RunError> {
    let mut possible = possible_cases(requests, runtime);
    loop {
        let of_cases = possible.iter().flat_map(|(request, case)| {
            let proxy = request.toxiproxy.image.clone();
            of_case(request, case).into_iter().chain([proxy])
        });
        let images: Vec<Image> = of_cases.collect();
        match runtime.prepare(&images, progress).await {
            Ok(ids) => return Ok(ids),
            Err(error) => {
                let left = possible_cases(requests, runtime);
                if left.is_empty() || left.len() == possible.len() {
                    return Err(error.into());
                }
                possible = left;
            }
        }
    }
}

fn possible_cases<'a>(
    requests: &'a [RunRequest<'a>],
    runtime: &dyn Runtime,
) -> Vec<(&'a RunRequest<'a>, &'a Case)> {
    let all = requests
        .iter()
        .flat_map(|request| request.chosen().map(move |case| (request, case)));
    let is_possible =
        |(request, case): &(&RunRequest<'_>, &Case)| request.lacking(case, runtime).is_none();
    all.filter(is_possible).collect()
}

/// Some of them more than once.
fn images(request: &RunRequest<'_>) -> Vec<Image> {
    let of_cases = request.chosen().flat_map(|case| of_case(request, case));
    of_cases.chain([request.toxiproxy.image.clone()]).collect()
}

fn of_case(request: &RunRequest<'_>, case: &Case) -> Vec<Image> {
    let topology = request.topology(case);
    let mut images: Vec<Image> = topology.images().cloned().collect();
    images.extend(request.worker_image(case));
    let loses_packets = |fault: &&Fault| matches!(fault, Fault::Loss { .. });
    if case.setup.faults().iter().any(loses_packets) {
        images.push(topology.packet_filter());
    }
    images
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Cluster, ClusterError, Swept};
    use crate::fault::journal::{Debt, Journal};
    use crate::model::Name;
    use async_trait::async_trait;
    use std::sync::Arc;

    /// A runtime that must not be asked for anything.
    struct Untouched;

    #[async_trait]
    impl Runtime for Untouched {
        fn about(&self) -> BTreeMap<String, String> {
            unreachable!("nobody asks")
        }

        async fn prepare(
            &self,
            _: &[Image],
            _: &dyn Progress,
        ) -> Result<BTreeMap<String, String>, ClusterError> {
            unreachable!("nothing is prepared")
        }

        async fn create(&self, _: &Name, _: bool) -> Result<Arc<dyn Cluster>, ClusterError> {
            unreachable!("nothing is created")
        }

        async fn adopt(&self, run: &Name) -> Result<Arc<dyn Cluster>, ClusterError> {
            unreachable!("{run} has an owner")
        }

        async fn sweep(&self, _: Leftovers) -> Result<Swept, ClusterError> {
            unreachable!("nothing is swept")
        }
    }

    #[tokio::test]
    async fn what_this_process_owes_is_its_own_affair() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::new(folder.path(), &"r1".into());
        let node = "a".into();
        journal.owe(1, &[Debt::Thaw { node }]).unwrap();
        let healed = heal_leftovers(folder.path(), &Untouched).await;
        assert_eq!(healed, Healed::default());
        assert!(folder.path().join("r1.jsonl").exists());
    }
}
