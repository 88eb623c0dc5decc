use super::runtime::docker_there;
use super::*;
use crate::cluster::docker::DockerRuntime;
use crate::cluster::{Cluster, Image, NodeSpec, Runtime, Topology, start_services};
use crate::progress::Progress;
use crate::yaml::suggestion;
use futures_util::future::try_join_all;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Start a topology to play with: its lock servers and the resource, on loopback only
///
/// It stays until `fencepost down` (or `fencepost clean`) removes it; runs leave it alone.
#[derive(Args)]
pub struct Up {
    /// Name of a topology: a file in compose/ without its .yml
    #[arg(value_parser = |text: &str| Name::new(text))]
    topology: Name,
    #[command(flatten)]
    pub printed: OutputFormat,
}

/// A topology that is up, and its addresses.
#[derive(Serialize)]
struct RunningTopology {
    topology: Name,
    /// The network through which another container can reach the services by name.
    network: String,
    /// Whether it was up before this command.
    was_up: bool,
    services: Vec<ServiceAddress>,
    /// Commands to try first.
    hints: Vec<String>,
}

#[derive(Serialize)]
struct ServiceAddress {
    name: Name,
    container: String,
    port: u16,
    address: SocketAddr,
}

impl Up {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let topologies = home.topologies()?;
        let topology = topologies.get(self.topology.as_str()).ok_or_else(|| {
            let known: Vec<&str> = topologies.keys().map(String::as_str).collect();
            let hint = suggestion(&self.topology, &known);
            let (name, folders) = (&self.topology, joined(home.folders("compose"), " and "));
            Failure::usage(format!(
                "there is no topology `{name}` in {folders}; {hint}"
            ))
        })?;
        if topology.is_only_simulated() {
            let name = &self.topology;
            return Err(Failure::usage(format!(
                "cannot start `{name}`: its servers are only simulated; run a scenario on it"
            )));
        }
        let interrupt = interrupt::listen()?;
        let state = State::open()?;
        let _turn = playground::turn(&state)?;
        let runtime = docker_there(&state).await?;
        let was_up = self.is_up(topology, &runtime).await?;
        let cluster = if was_up {
            runtime.of_run(&self.run())
        } else {
            self.start(topology, &runtime, &interrupt).await?
        };
        let standing = self.standing(topology, cluster.as_ref(), was_up).await?;
        self.printed.show(&standing, words(&standing))
    }

    fn run(&self) -> Name {
        playground::run_of(&self.topology)
    }

    /// Returns whether the topology is up. A topology with missing nodes is an error.
    async fn is_up(&self, topology: &Topology, runtime: &DockerRuntime) -> Result<bool, Failure> {
        if !runtime.runs().await?.contains(&self.run()) {
            return Ok(false);
        }
        let cluster = runtime.of_run(&self.run());
        for (node, _) in topology.started() {
            let runs = cluster.state(node).await.is_ok_and(|state| state.running);
            if !runs {
                let name = &self.topology;
                return Err(Failure::new(
                    Exit::Unavailable,
                    format!("{name} is up, but {node} does not run; run: fencepost down {name}"),
                ));
            }
        }
        Ok(true)
    }

    async fn start(
        &self,
        topology: &Topology,
        runtime: &DockerRuntime,
        interrupt: &CancellationToken,
    ) -> Result<Arc<dyn Cluster>, Failure> {
        let shown = progress::for_this_output();
        let services = topology.started();
        let images: Vec<Image> = services.map(|(_, service)| service.image.clone()).collect();
        interrupt::or(interrupt, runtime.prepare(&images, &shown)).await?;
        let task = shown.begin(&format!("starting {}", self.topology));
        let cluster = runtime.create(&self.run(), true).await?;
        let services = topology.started();
        let services: Vec<NodeSpec> = services.map(|(name, service)| service.node(name)).collect();
        let started = start_services(cluster.as_ref(), &services);
        match interrupt::or(interrupt, started).await {
            Ok(()) => {
                task.finish("up");
                Ok(cluster)
            }
            Err(failure) => match cluster.remove().await {
                Ok(()) => Err(failure),
                Err(error) => Err(Failure::harness(format!(
                    "{failure}\nand then, cleaning up: {error}"
                ))),
            },
        }
    }

    async fn standing(
        &self,
        topology: &Topology,
        cluster: &dyn Cluster,
        was_up: bool,
    ) -> Result<RunningTopology, Failure> {
        let run = self.run();
        let ports = topology.started().flat_map(|(name, service)| {
            let ports = service.ports.iter();
            ports.map(move |port| (name.clone(), port.container))
        });
        let services = ports.map(|(name, port)| {
            let container = format!("fencepost-{run}-{name}");
            async move {
                let address = cluster.address(&name, port).await?;
                Ok::<_, Failure>(ServiceAddress {
                    name,
                    container,
                    port,
                    address,
                })
            }
        });
        let services = try_join_all(services).await?;
        Ok(RunningTopology {
            hints: hints(topology, &services, &self.topology),
            topology: self.topology.clone(),
            network: format!("fencepost-{run}"),
            was_up,
            services,
        })
    }
}

fn hints(topology: &Topology, services: &[ServiceAddress], name: &str) -> Vec<String> {
    let address = |node: &str, port: u16| {
        let mut served = services.iter();
        let served = served.find(|served| served.name == node && served.port == port);
        served.map(|served| served.address)
    };
    let mut hints = Vec::new();
    for worker in &topology.workers {
        let Some(backend) = worker.backend else {
            continue;
        };
        let servers = worker.lock_servers.iter();
        let servers = servers.filter_map(|server| address(&server.node, server.port));
        let servers: Vec<SocketAddr> = servers.collect();
        if !servers.is_empty() {
            hints.extend(backend.servers().program.hints(&servers));
        }
    }
    let resource = &topology.resource;
    if let Some(resource) = address(&resource.node, resource.port) {
        hints.extend(match topology.resource_kind {
            ResourceKind::Http => {
                let token = "-H 'X-Fence-Token: 1'";
                vec![
                    format!("curl -X PUT {token} -d hello http://{resource}/r/account-42"),
                    format!("curl http://{resource}/metrics"),
                ]
            }
            ResourceKind::Postgres => {
                let (host, port) = (resource.ip(), resource.port());
                vec![format!("psql -h {host} -p {port} -U postgres")]
            }
            ResourceKind::S3 => vec![format!("curl http://{resource}/-/log")],
        });
    }
    hints.push(format!("fencepost down {name}"));
    hints
}

fn words(standing: &RunningTopology) -> String {
    let (topology, network, services) = (&standing.topology, &standing.network, &standing.services);
    let state = if standing.was_up {
        "was up already"
    } else {
        "is up"
    };
    let mut text = format!("{topology} {state}, on the network {network}\n");
    let wide = services.iter().map(|served| served.name.len()).max();
    let wide = wide.unwrap_or(0);
    for served in services {
        let (name, address, container) = (&served.name, served.address, &served.container);
        let _ = writeln!(text, "  {name:<wide$}  {address}  (container {container})");
    }
    text.push_str("\nTry:\n");
    for hint in &standing.hints {
        let _ = writeln!(text, "  {hint}");
    }
    text
}
