//! Removing what is ours: one run's things, or what dead runs left behind.
//! Everything is found by its labels and removed by its id, so nothing else is ever touched.

use super::engine::{Engine, call, label_filter};
use super::labels::{self, Said};
use super::removal::{gone_is_fine, remove_container};
use crate::cluster::{ClusterError, Leftovers, Swept};
use crate::model::Name;
use bollard::query_parameters::{ListContainersOptions, ListNetworksOptions};
use futures_util::future::join_all;
use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::time::Duration;

/// A network is let go of a moment after its last container.
const NETWORK_TRIES: u32 = 20;
const NETWORK_PAUSE: Duration = Duration::from_millis(100);

/// A container or a network of ours. The name is for people: by now it may be
/// that of another one.
struct Thing {
    id: String,
    name: String,
}

struct Found {
    containers: Vec<Thing>,
    networks: Vec<Thing>,
}

/// Removes one run's containers and network, and makes sure that they are gone.
pub async fn remove_run(engine: &Engine, run: &Name) -> Result<(), ClusterError> {
    let filter = format!("{}={run}", labels::RUN);
    let everything = |_: &Said<'_>| true;
    let found = find(engine, &filter, everything).await?;
    remove_containers(engine, &found.containers).await?;
    for network in &found.networks {
        remove_network(engine, network).await?;
    }
    let left = find(engine, &filter, everything).await?;
    let left = left.containers.into_iter().chain(left.networks);
    let names: Vec<String> = left.map(|thing| thing.name).collect();
    match names.is_empty() {
        true => Ok(()),
        false => Err(ClusterError::LeftBehind(names)),
    }
}

/// Every run of which there is anything, alive or not.
pub async fn runs(engine: &Engine) -> Result<BTreeSet<Name>, ClusterError> {
    let runs = Mutex::new(BTreeSet::new());
    find(engine, labels::RUN, |said| {
        // What is called otherwise was not started by any of us.
        if let (Some(Ok(run)), Ok(mut runs)) = (said.run().map(Name::new), runs.lock()) {
            runs.insert(run);
        }
        false
    })
    .await?;
    Ok(runs.into_inner().unwrap_or_default())
}

/// Removes what runs left behind that did not get to clean up.
pub async fn sweep(engine: &Engine, which: Leftovers) -> Result<Swept, ClusterError> {
    let is_leftover = |said: &Said<'_>| {
        let may_go = !said.is_kept() || which == Leftovers::OfDeadRunsAndKept;
        may_go && said.owner_is_certainly_dead()
    };
    let found = find(engine, labels::OWNER, is_leftover).await?;
    remove_containers(engine, &found.containers).await?;
    let mut swept = Swept {
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

/// What carries this label, is wanted, and is called as its labels say.
async fn find(
    engine: &Engine,
    label: &str,
    wanted: impl Fn(&Said<'_>) -> bool,
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
    let ours = |id: Option<String>, names: Vec<String>, labels: Option<HashMap<String, String>>| {
        let labels = labels?;
        let said = Said(&labels);
        let name = said.name()?;
        let is_called_so = |given: &String| given.trim_start_matches('/') == name;
        let is_ours = names.iter().any(is_called_so) && wanted(&said);
        let id = id.filter(|_| is_ours)?;
        Some(Thing { id, name })
    };
    let containers = containers?.into_iter();
    let networks = networks?.into_iter();
    Ok(Found {
        containers: containers
            .filter_map(|it| ours(it.id, it.names.unwrap_or_default(), it.labels))
            .collect(),
        networks: networks
            .filter_map(|it| ours(it.id, Vec::from_iter(it.name), it.labels))
            .collect(),
    })
}

async fn remove_containers(engine: &Engine, all: &[Thing]) -> Result<(), ClusterError> {
    let containers = all
        .iter()
        .map(|it| remove_container(engine, &it.id, &it.name));
    join_all(containers).await.into_iter().collect()
}

async fn remove_network(engine: &Engine, network: &Thing) -> Result<(), ClusterError> {
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
        // Its containers are gone by now: the engine has miscounted them.
        Err(error) if error.to_string().contains("has active endpoints") => {
            let reason = error.to_string();
            Err(ClusterError::StuckNetwork { reason })
        }
        done => done,
    }
}
