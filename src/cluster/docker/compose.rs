//! The containers of Compose projects, which are somebody else's.

use super::engine::label_filter;
use super::*;
use bollard::models::ContainerSummary;
use bollard::query_parameters::ListContainersOptions;

const PROJECT: &str = "com.docker.compose.project";
const SERVICE: &str = "com.docker.compose.service";

pub struct ComposeContainer {
    /// Its id.
    pub container: String,
    /// Its address on one of its networks, which this machine reaches.
    pub address: IpAddr,
}

/// Finds the one container of a service.
pub async fn find(project: &str, service: &str) -> ClusterResult<ComposeContainer> {
    let engine = Engine::connect().await?;
    let what = format!("find the Compose service {project}/{service}");
    let options = ListContainersOptions {
        filters: Some(label_filter(&format!("{PROJECT}={project}"))),
        ..Default::default()
    };
    let all = call(&what, engine.docker().list_containers(Some(options))).await?;
    let of_service: Vec<&ContainerSummary> = all
        .iter()
        .filter(|it| label(it, SERVICE) == Some(service))
        .collect();
    let [one] = of_service.as_slice() else {
        return Err(unfit(project, service, &all, of_service.len()));
    };
    let container = one.id.clone().unwrap_or_default();
    let address = address(&engine, &container, &what).await?;
    let no_network = || {
        let reason = "its container is on no network";
        unusable(
            project,
            service,
            reason.to_owned(),
            ELSE_BY_ADDRESS.to_owned(),
        )
    };
    let address = address.ok_or_else(no_network)?;
    Ok(ComposeContainer { container, address })
}

/// Returns the address of a container on one of its networks; `what` completes "could not …".
pub async fn address(
    engine: &Engine,
    container: &str,
    what: &str,
) -> ClusterResult<Option<IpAddr>> {
    let inspect = engine.docker().inspect_container(container, None);
    let found = call(what, inspect).await?;
    let is_on_host = found
        .host_config
        .and_then(|config| config.network_mode)
        .is_some_and(|mode| mode == "host");
    let networks = found.network_settings.and_then(|it| it.networks);
    let mut addresses = networks.into_iter().flatten().filter_map(|(_, endpoint)| {
        let address = endpoint.ip_address?;
        address.parse::<IpAddr>().ok()
    });
    Ok(match is_on_host {
        true => Some(IpAddr::from([127, 0, 0, 1])),
        false => addresses.next(),
    })
}

const ELSE_BY_ADDRESS: &str = "name its address instead";

fn unfit(project: &str, service: &str, all: &[ContainerSummary], found: usize) -> ClusterError {
    let mut services: Vec<&str> = all.iter().filter_map(|it| label(it, SERVICE)).collect();
    services.sort_unstable();
    services.dedup();
    let (reason, remedy) = match (found, services.as_slice()) {
        (2.., _) => (
            format!("it has {found} containers, and which one is meant is not known"),
            ELSE_BY_ADDRESS.to_owned(),
        ),
        (_, []) => (
            format!("no container of a project {project} is running"),
            "start it with Compose; `docker ps` lists what there is".to_owned(),
        ),
        (_, there) => (
            "no such service is running".to_owned(),
            format!("of {project}, these are: {}", there.join(", ")),
        ),
    };
    unusable(project, service, reason, remedy)
}

fn unusable(project: &str, service: &str, reason: String, remedy: String) -> ClusterError {
    ClusterError::NoServer {
        place: format!("the Compose service {project}/{service}"),
        reason,
        remedy,
    }
}

fn label<'a>(container: &'a ContainerSummary, name: &str) -> Option<&'a str> {
    let labels = container.labels.as_ref()?;
    labels.get(name).map(String::as_str)
}
