use super::*;
use bollard::models::{NetworkingConfig, PortBinding};
use bollard::query_parameters::CreateContainerOptions;

/// Returns the parts that every container has. If it is attached, we hold its stdin and stdout.
pub fn body(
    image: String,
    command: Vec<String>,
    labels: HashMap<String, String>,
    attached: bool,
) -> ContainerCreateBody {
    ContainerCreateBody {
        image: Some(image),
        cmd: Some(command),
        labels: Some(labels),
        // If none is named, engines thaw a frozen container at any signal.
        stop_signal: Some("SIGTERM".to_owned()),
        open_stdin: Some(attached),
        // The end of our attachment is the end of its stdin, so a worker whose harness was killed
        // ends by itself.
        stdin_once: Some(attached),
        attach_stdin: Some(attached),
        attach_stdout: Some(attached),
        attach_stderr: Some(attached),
        ..Default::default()
    }
}

/// Makes the container a node: it is on the run's network, known there by its name.
pub fn on_network(
    node: &NodeSpec,
    network: &str,
    body: ContainerCreateBody,
) -> ContainerCreateBody {
    let tcp = |port: &Port| format!("{}/tcp", port.container);
    let bindings = node.ports.iter().map(|port| {
        let binding = PortBinding {
            host_ip: Some("127.0.0.1".to_owned()),
            host_port: Some(match port.host {
                0 => String::new(),
                port => port.to_string(),
            }),
        };
        (tcp(port), Some(vec![binding]))
    });
    let environment = node.environment.iter();
    let environment = environment.map(|(name, value)| format!("{name}={value}"));
    let hosts = node.hosts.iter();
    // A second name follows the first: when a container leaves the network, the engine removes
    // every line of its hosts file that ends in a name of that network. Without the second name
    // it would bypass its own proxies ever after.
    let hosts = hosts.map(|(name, at)| format!("{name} {name}.link:{}", at.ip()));
    let endpoint = network::known_as(&node.name);
    let body = confined::with_rights(body, &node.rights);
    ContainerCreateBody {
        hostname: Some(node.name.to_string()),
        env: Some(environment.collect()),
        exposed_ports: Some(node.ports.iter().map(tcp).collect()),
        host_config: Some(HostConfig {
            network_mode: Some(network.to_owned()),
            port_bindings: Some(bindings.collect()),
            extra_hosts: Some(hosts.collect()),
            ..body.host_config.unwrap_or_default()
        }),
        networking_config: Some(NetworkingConfig {
            endpoints_config: Some(HashMap::from([(network.to_owned(), endpoint)])),
        }),
        ..body
    }
}

pub async fn create(target: &Target, body: ContainerCreateBody) -> ClusterResult {
    let options = CreateContainerOptions {
        name: Some(target.container.clone()),
        ..Default::default()
    };
    let create = target.docker().create_container(Some(options), body);
    call(&format!("create the container of {}", target.node), create).await?;
    Ok(())
}

/// Starts a container that was created, or has ended since.
pub async fn start(target: &Target, ports: &[Port]) -> ClusterResult {
    let _turn = target.engine.turn().await?;
    let start = target.docker().start_container(&target.container, None);
    let started = call(&format!("start {}", target.node), start).await;
    started.map_err(|error| explain_port(error, ports))
}

/// Explains which fixed host port somebody else has, and what to do.
fn explain_port(error: ClusterError, ports: &[Port]) -> ClusterError {
    let taken = ["already allocated", "already in use"];
    match error {
        ClusterError::Failed { what, reason }
            if taken.iter().any(|words| reason.contains(words)) =>
        {
            let fixed = ports.iter().filter(|port| port.host != 0);
            let fixed: Vec<String> = fixed.map(|port| port.host.to_string()).collect();
            let container = ports.first().map_or(0, |port| port.container);
            ClusterError::failed(
                what,
                format!(
                    "port {} on 127.0.0.1 is in use; free it, or write `127.0.0.1::{container}` in the topology to let the system choose",
                    fixed.join(" or "),
                ),
            )
        }
        other => other,
    }
}
