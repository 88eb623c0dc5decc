//! Removing what is ours: one run's things, or what dead runs left behind.
//! Everything is found by its labels, so nothing else is ever touched.

use super::engine::{Engine, call, label_filter};
use super::labels;
use super::removal::{gone_is_fine, remove_container};
use crate::cluster::{ClusterError, Leftovers, Owner, Swept};
use crate::model::Name;
use bollard::query_parameters::{
    ListContainersOptions, ListImagesOptions, ListNetworksOptions, RemoveImageOptions,
};
use futures_util::future::join_all;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

/// A network is let go of a moment after its last container.
const NETWORK_TRIES: u32 = 20;
const NETWORK_PAUSE: Duration = Duration::from_millis(100);

struct Found {
    containers: Vec<String>,
    networks: Vec<String>,
}

/// Removes one run's containers and network, and makes sure that they are gone.
pub async fn remove_run(engine: &Engine, run: &Name) -> Result<(), ClusterError> {
    let filter = format!("{}={run}", labels::RUN);
    let everything = |_: &HashMap<String, String>| true;
    let found = find(engine, &filter, everything).await?;
    remove_containers(engine, &found.containers).await?;
    for name in &found.networks {
        remove_network(engine, name).await?;
    }
    let left = find(engine, &filter, everything).await?;
    let names = [left.containers, left.networks].concat();
    match names.is_empty() {
        true => Ok(()),
        false => Err(ClusterError::LeftBehind(names)),
    }
}

/// Every run of which there is anything, alive or not.
pub async fn runs(engine: &Engine) -> Result<BTreeSet<Name>, ClusterError> {
    let runs = Mutex::new(BTreeSet::new());
    find(engine, labels::RUN, |labels| {
        // What is called otherwise was not started by any of us.
        let run = labels.get(labels::RUN).map(|run| Name::new(run.as_str()));
        if let (Some(Ok(run)), Ok(mut runs)) = (run, runs.lock()) {
            runs.insert(run);
        }
        false
    })
    .await?;
    Ok(runs.into_inner().unwrap_or_default())
}

/// Removes what runs left behind that did not get to clean up.
pub async fn sweep(engine: &Engine, which: Leftovers) -> Result<Swept, ClusterError> {
    let is_leftover = |labels: &HashMap<String, String>| {
        let owner = labels
            .get(labels::OWNER)
            .and_then(|label| Owner::from_label(label));
        let kept = labels.contains_key(labels::KEEP);
        owner.is_some_and(|owner| owner.is_certainly_dead())
            && (!kept || which == Leftovers::OfDeadRunsAndKept)
    };
    let found = find(engine, labels::OWNER, is_leftover).await?;
    remove_containers(engine, &found.containers).await?;
    let mut swept = Swept {
        removed: found.containers,
        stuck: Vec::new(),
    };
    for name in found.networks {
        match remove_network(engine, &name).await {
            Ok(()) => swept.removed.push(name),
            Err(error) => swept.stuck.push(error.to_string()),
        }
    }
    Ok(swept)
}

/// Removes every image that `fencepost images` made. Returns their tags.
pub async fn remove_images(engine: &Engine) -> Result<Vec<String>, ClusterError> {
    let options = ListImagesOptions {
        filters: Some(label_filter(labels::IMAGE)),
        ..Default::default()
    };
    let images = call(
        "list the images",
        engine.docker().list_images(Some(options)),
    )
    .await?;
    let mut removed = Vec::new();
    for tag in images.into_iter().flat_map(|image| image.repo_tags) {
        let options = RemoveImageOptions::default();
        let remove = engine.docker().remove_image(&tag, Some(options), None);
        call(&format!("remove the image {tag}"), remove).await?;
        removed.push(tag);
    }
    Ok(removed)
}

async fn find(
    engine: &Engine,
    label: &str,
    wanted: impl Fn(&HashMap<String, String>) -> bool,
) -> Result<Found, ClusterError> {
    let containers = ListContainersOptions {
        all: true,
        filters: Some(label_filter(label)),
        ..Default::default()
    };
    let networks = ListNetworksOptions {
        filters: Some(label_filter(label)),
    };
    let docker = engine.docker();
    let (containers, networks) = tokio::join!(
        call("list containers", docker.list_containers(Some(containers))),
        call("list networks", docker.list_networks(Some(networks))),
    );
    let wanted = |labels: &Option<HashMap<String, String>>| labels.as_ref().is_some_and(&wanted);
    Ok(Found {
        containers: containers?
            .into_iter()
            .filter(|container| wanted(&container.labels))
            .filter_map(|container| {
                let name = container.names?.into_iter().next()?;
                Some(name.trim_start_matches('/').to_owned())
            })
            .collect(),
        networks: networks?
            .into_iter()
            .filter(|network| wanted(&network.labels))
            .filter_map(|network| network.name)
            .collect(),
    })
}

async fn remove_containers(engine: &Engine, names: &[String]) -> Result<(), ClusterError> {
    let containers = names.iter().map(|name| remove_container(engine, name));
    join_all(containers).await.into_iter().collect()
}

async fn remove_network(engine: &Engine, name: &str) -> Result<(), ClusterError> {
    let what = format!("remove the network {name}");
    let removed = async {
        let mut last = Ok(());
        for _ in 0..NETWORK_TRIES {
            last = gone_is_fine(engine.docker().remove_network(name)).await;
            if last.is_ok() {
                return last;
            }
            tokio::time::sleep(NETWORK_PAUSE).await;
        }
        last
    };
    match call(&what, removed).await {
        // Its containers are gone by now: the engine has miscounted them.
        Err(error) if error.to_string().contains("has active endpoints") => {
            let reason = error.to_string();
            Err(ClusterError::StuckNetwork { reason })
        }
        done => done,
    }
}
