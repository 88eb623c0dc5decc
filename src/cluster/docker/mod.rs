//! The cluster as containers on a private network of one Docker Engine.

mod console;
mod container;
pub mod engine;
pub mod images;
mod labels;
mod readiness;
mod runtime;
pub mod sweep;

pub use engine::Engine;
pub use runtime::DockerRuntime;

use self::engine::{call, is_not_found};
use self::images::ImageIds;
use self::labels::RunLabels;
use super::{Cluster, ClusterError, Console, NodeSpec, Signal, ThreadState};
use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::models::NetworkCreateRequest;
use bollard::query_parameters::{KillContainerOptions, LogsOptions, TopOptions};
use futures_util::StreamExt;
use std::net::{Ipv4Addr, SocketAddr};
use tokio_util::task::TaskTracker;

/// One case's containers. Nothing is removed on drop, because that could not
/// be awaited: `remove` is called on every way out, and the sweep finds the rest.
pub struct DockerCluster {
    engine: Engine,
    labels: RunLabels,
    images: ImageIds,
    /// Calls that bring containers about. Whoever gives up waiting for one does
    /// not stop the engine, so removal waits for them first.
    births: TaskTracker,
}

impl DockerCluster {
    /// Makes the private network; nothing runs yet.
    pub async fn create(
        engine: &Engine,
        images: ImageIds,
        run: &str,
        keep: bool,
    ) -> Result<DockerCluster, ClusterError> {
        let cluster = DockerCluster {
            engine: engine.clone(),
            labels: RunLabels {
                run: run.to_owned(),
                keep,
            },
            images,
            births: TaskTracker::new(),
        };
        let request = NetworkCreateRequest {
            name: cluster.network(),
            driver: Some("bridge".to_owned()),
            labels: Some(cluster.labels.for_network()),
            ..Default::default()
        };
        let created = engine.docker().create_network(request);
        if let Err(error) = call("create the run's network", created).await {
            // An engine that answered too late may have made it all the same.
            let _ = cluster.remove().await;
            return Err(error);
        }
        Ok(cluster)
    }

    fn network(&self) -> String {
        format!("fencepost-{}", self.labels.run)
    }

    fn container(&self, node: &str) -> String {
        format!("fencepost-{}-{node}", self.labels.run)
    }

    async fn create_container(
        &self,
        node: &NodeSpec,
        attached: bool,
    ) -> Result<String, ClusterError> {
        let blueprint = container::Blueprint {
            name: self.container(&node.name),
            network: self.network(),
            image: self.images.get(&node.image).unwrap_or(&node.image).clone(),
            labels: self.labels.for_node(&node.name),
            attached,
        };
        let (engine, node) = (self.engine.clone(), node.clone());
        self.to_the_end(async move {
            container::create(&engine, &blueprint, &node).await?;
            Ok(blueprint.name)
        })
        .await
    }

    async fn start_container(&self, name: &str, node: &NodeSpec) -> Result<(), ClusterError> {
        let (engine, name, node) = (self.engine.clone(), name.to_owned(), node.clone());
        self.to_the_end(async move { container::start(&engine, &name, &node).await })
            .await
    }

    async fn to_the_end<T: Send + 'static>(
        &self,
        birth: impl Future<Output = Result<T, ClusterError>> + Send + 'static,
    ) -> Result<T, ClusterError> {
        let born = self.births.spawn(birth).await;
        born.unwrap_or_else(|error| {
            Err(ClusterError::Failed {
                what: "start a container".to_owned(),
                reason: error.to_string(),
            })
        })
    }
}

#[async_trait]
impl Cluster for DockerCluster {
    async fn create_node(&self, node: &NodeSpec) -> Result<(), ClusterError> {
        self.create_container(node, false).await.map(drop)
    }

    async fn start(&self, node: &NodeSpec) -> Result<(), ClusterError> {
        self.start_container(&self.container(&node.name), node)
            .await
    }

    async fn await_said(&self, node: &str, text: &str) -> Result<(), ClusterError> {
        readiness::await_said(&self.engine, &self.container(node), node, text).await
    }

    async fn start_attached(&self, node: &NodeSpec) -> Result<Console, ClusterError> {
        let name = self.create_container(node, true).await?;
        // Attached before the start, so that no line is missed.
        let console = console::attach(&self.engine, &name).await?;
        self.start_container(&name, node).await?;
        Ok(console)
    }

    async fn address(&self, node: &str, port: u16) -> Result<SocketAddr, ClusterError> {
        let what = format!("find port {port} of {node}");
        let name = self.container(node);
        let inspect = self.engine.docker().inspect_container(&name, None);
        let published = call(&what, inspect)
            .await?
            .network_settings
            .and_then(|settings| settings.ports)
            .and_then(|ports| ports.get(&format!("{port}/tcp")).cloned().flatten())
            .and_then(|bindings| bindings.into_iter().find_map(|binding| binding.host_port))
            .and_then(|port| port.parse().ok());
        match published {
            Some(host_port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, host_port))),
            None => Err(ClusterError::Failed {
                what,
                reason: "the topology does not publish it on loopback".to_owned(),
            }),
        }
    }

    async fn signal(&self, node: &str, signal: Signal) -> Result<(), ClusterError> {
        let (what, signal) = match signal {
            Signal::Stop => ("stop", "SIGSTOP"),
            Signal::Continue => ("continue", "SIGCONT"),
        };
        let options = KillContainerOptions {
            signal: signal.to_owned(),
        };
        let name = self.container(node);
        let kill = self.engine.docker().kill_container(&name, Some(options));
        call(&format!("{what} {node} ({signal})"), kill).await
    }

    /// Asks for `ps` on the engine's own machine, which works for a container
    /// that stands still and needs nothing inside of it.
    async fn threads(&self, node: &str) -> Result<Vec<ThreadState>, ClusterError> {
        let options = TopOptions {
            ps_args: "-L -o pid,lwp,stat".to_owned(),
        };
        let name = self.container(node);
        let top = self.engine.docker().top_processes(&name, Some(options));
        let seen = async {
            match top.await {
                Err(error) if container::is_not_running(&error) => Ok(None),
                other => other.map(|answer| answer.processes),
            }
        };
        let rows = call(&format!("see the threads of {node}"), seen).await?;
        let rows = rows.unwrap_or_default();
        let letter = |row: Vec<String>| row.get(2).and_then(|state| state.chars().next());
        Ok(rows
            .into_iter()
            .filter_map(letter)
            .map(ThreadState)
            .collect())
    }

    async fn logs(&self, node: &str) -> Result<String, ClusterError> {
        read_log(&self.engine, &self.container(node)).await
    }

    async fn remove(&self) -> Result<(), ClusterError> {
        self.births.close();
        self.births.wait().await;
        sweep::remove_run(&self.engine, &self.labels.run).await
    }
}

/// What a container printed, stdout and stderr in their order.
async fn read_log(engine: &Engine, container: &str) -> Result<String, ClusterError> {
    let options = LogsOptions {
        stdout: true,
        stderr: true,
        ..Default::default()
    };
    let mut stream = engine.docker().logs(container, Some(options));
    let collect = async {
        let mut text = String::new();
        while let Some(chunk) = stream.next().await {
            match chunk {
                Ok(LogOutput::StdOut { message } | LogOutput::StdErr { message }) => {
                    text.push_str(&String::from_utf8_lossy(&message));
                }
                Ok(_) => {}
                Err(error) if is_not_found(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(text)
    };
    call(&format!("read the log of {container}"), collect).await
}
