use super::engine::{Engine, call};
use crate::cluster::{ClusterError, NodeSpec};
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, EndpointSettings, HostConfig, NetworkingConfig, PortBinding,
};
use bollard::query_parameters::CreateContainerOptions;
use std::collections::HashMap;

/// What a container is, apart from what it runs.
pub struct Blueprint {
    pub name: String,
    pub network: String,
    pub image: String,
    pub labels: HashMap<String, String>,
    /// With its stdin and stdout in our hands.
    pub attached: bool,
}

/// Creates a container on the run's network, known there by its node's name.
pub async fn create(
    engine: &Engine,
    blueprint: &Blueprint,
    node: &NodeSpec,
) -> Result<(), ClusterError> {
    let attached = blueprint.attached;
    let tcp = |port: u16| format!("{port}/tcp");
    let bindings = node.ports.iter().map(|port| {
        let binding = PortBinding {
            host_ip: Some("127.0.0.1".to_owned()),
            host_port: Some(match port.host {
                0 => String::new(),
                port => port.to_string(),
            }),
        };
        (tcp(port.container), Some(vec![binding]))
    });
    let endpoint = EndpointSettings {
        aliases: Some(vec![node.name.clone()]),
        ..Default::default()
    };
    let body = ContainerCreateBody {
        image: Some(blueprint.image.clone()),
        hostname: Some(node.name.clone()),
        cmd: Some(node.command.clone()),
        env: Some(
            node.environment
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        ),
        labels: Some(blueprint.labels.clone()),
        exposed_ports: Some(node.ports.iter().map(|port| tcp(port.container)).collect()),
        open_stdin: Some(attached),
        // The end of our attachment is the end of its stdin, so a worker whose
        // orchestrator was killed ends by itself.
        stdin_once: Some(attached),
        attach_stdin: Some(attached),
        attach_stdout: Some(attached),
        attach_stderr: Some(attached),
        host_config: Some(HostConfig {
            network_mode: Some(blueprint.network.clone()),
            port_bindings: Some(bindings.collect()),
            ..Default::default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(blueprint.network.clone(), endpoint)])),
        }),
        ..Default::default()
    };
    let options = CreateContainerOptions {
        name: Some(blueprint.name.clone()),
        ..Default::default()
    };
    let create = engine.docker().create_container(Some(options), body);
    call(&format!("create the container of {}", node.name), create).await?;
    Ok(())
}

pub async fn start(engine: &Engine, name: &str, node: &NodeSpec) -> Result<(), ClusterError> {
    let what = format!("start {}", node.name);
    let started = call(&what, engine.docker().start_container(name, None));
    started.await.map_err(|error| explain_port(error, node))
}

/// A fixed host port that somebody else has: say which, and what to do.
fn explain_port(error: ClusterError, node: &NodeSpec) -> ClusterError {
    let taken = ["already allocated", "already in use"];
    match error {
        ClusterError::Failed { what, reason }
            if taken.iter().any(|words| reason.contains(words)) =>
        {
            let ports = node.ports.iter().filter(|port| port.host != 0);
            let ports: Vec<String> = ports.map(|port| port.host.to_string()).collect();
            let container = node.ports.first().map_or(0, |port| port.container);
            ClusterError::Failed {
                what,
                reason: format!(
                    "port {} on 127.0.0.1 is in use; free it, or write `127.0.0.1::{container}` in the topology to let the system choose",
                    ports.join(" or "),
                ),
            }
        }
        other => other,
    }
}

/// The engine answered that the container's process has ended.
pub fn is_not_running(error: &Error) -> bool {
    matches!(
        error,
        Error::DockerResponseServerError { status_code: 409, message }
            if message.contains("is not running")
    )
}
