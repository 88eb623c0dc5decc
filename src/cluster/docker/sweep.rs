//! Removes our own objects: those of one run, or those that dead runs left behind. Everything is
//! found by its labels and removed by its id, so nothing else is ever touched.

use super::engine::label_filter;
use super::labels::ObjectLabels;
use super::removal::{gone_is_fine, remove_container};
use super::*;
use crate::cluster::{Leftovers, SweepResult};
use bollard::query_parameters::{ListContainersOptions, ListNetworksOptions};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Mutex;

/// The engine releases a network a moment after its last container.
const NETWORK_TRIES: u32 = 20;
const NETWORK_PAUSE: Duration = Duration::from_millis(100);

/// A container or a network of ours. The name is for people: by now another object may have it.
struct OwnedObject {
    id: String,
    name: String,
}

struct OwnedObjects {
    containers: Vec<OwnedObject>,
    networks: Vec<OwnedObject>,
}

/// Removes one run's containers and network, and makes sure that they are gone.
pub async fn remove_run(engine: &Engine, run: &Name) -> ClusterResult {
    let filter = format!("{}={run}", labels::RUN);
    let everything = |_: &ObjectLabels<'_>| true;
    let found = find(engine, &filter, everything).await?;
    remove_containers(engine, &found.containers).await?;
    for network in &found.networks {
        remove_network(engine, network).await?;
    }
    let left = find(engine, &filter, everything).await?;
    let left = left.containers.into_iter().chain(left.networks);
    let names: Vec<String> = left.map(|thing| thing.name).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(ClusterError::LeftBehind(names))
    }
}

/// Returns every run of which an object exists, alive or not.
pub async fn runs(engine: &Engine) -> ClusterResult<BTreeSet<Name>> {
    let runs = Mutex::new(BTreeSet::new());
    find(engine, labels::RUN, |said| {
        // A run without a valid name was not started by us.
        if let (Some(Ok(run)), Ok(mut runs)) = (said.run().map(Name::new), runs.lock()) {
            runs.insert(run);
        }
        false
    })
    .await?;
    Ok(runs.into_inner().unwrap_or_default())
}

/// Removes what was left behind by runs that did not get to clean up.
pub async fn sweep(engine: &Engine, which: Leftovers) -> ClusterResult<SweepResult> {
    let is_leftover = |said: &ObjectLabels<'_>| {
        let may_go = !said.is_kept() || which == Leftovers::OfDeadRunsAndKept;
        may_go && said.owner_is_certainly_dead()
    };
    let found = find(engine, labels::OWNER, is_leftover).await?;
    remove_containers(engine, &found.containers).await?;
    let mut swept = SweepResult {
        removed: found.containers.into_iter().map(|it| it.name).collect(),
        stuck: Vec::new(),
    };
    for network in found.networks {
        match remove_network(engine, &network).await {
            Ok(()) => swept.removed.push(network.name),
            Err(error) => swept.stuck.push(error.to_string()),
        }
    }
    Ok(swept)
}

/// Finds objects with this label whose name fits their labels.
async fn find(
    engine: &Engine,
    label: &str,
    wanted: impl Fn(&ObjectLabels<'_>) -> bool,
) -> ClusterResult<OwnedObjects> {
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
    let ours = |id: Option<String>, names: Vec<String>, labels: Option<HashMap<String, String>>| {
        let labels = labels?;
        let said = ObjectLabels(&labels);
        let name = said.name()?;
        let is_called_so = |given: &String| given.trim_start_matches('/') == name;
        let is_ours = names.iter().any(is_called_so) && wanted(&said);
        let id = id.filter(|_| is_ours)?;
        Some(OwnedObject { id, name })
    };
    let containers = containers?.into_iter();
    let networks = networks?.into_iter();
    Ok(OwnedObjects {
        containers: containers
            .filter_map(|it| ours(it.id, it.names.unwrap_or_default(), it.labels))
            .collect(),
        networks: networks
            .filter_map(|it| ours(it.id, Vec::from_iter(it.name), it.labels))
            .collect(),
    })
}

async fn remove_containers(engine: &Engine, all: &[OwnedObject]) -> ClusterResult {
    let containers = all
        .iter()
        .map(|it| remove_container(engine, &it.id, &it.name));
    join_all(containers).await.into_iter().collect()
}

async fn remove_network(engine: &Engine, network: &OwnedObject) -> ClusterResult {
    let what = format!("remove the network {}", network.name);
    let removed = async {
        let mut last = Ok(());
        for _ in 0..NETWORK_TRIES {
            last = gone_is_fine(engine.docker().remove_network(&network.id)).await;
            if last.is_ok() {
                return last;
            }
            tokio::time::sleep(NETWORK_PAUSE).await;
        }
        last
    };
    match call(&what, removed).await {
        // Its containers are gone by now, so the engine has miscounted them.
        Err(error) if error.to_string().contains("has active endpoints") => {
            let reason = error.to_string();
            Err(ClusterError::StuckNetwork { reason })
        }
        done => done,
    }
}
