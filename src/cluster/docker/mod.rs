//! The cluster as containers on a private network of one Docker Engine.

pub mod beside;
mod confined;
mod console;
mod container;
mod elsewhere;
pub mod engine;
mod helper;
pub mod images;
mod labels;
mod log;
mod network;
mod process;
mod removal;
mod runtime;
pub mod sweep;
mod target;

pub use engine::Engine;
pub use runtime::DockerRuntime;

use self::container::Blueprint;
use self::engine::call;
use self::images::ImageIds;
use self::labels::RunLabels;
use self::target::{Maker, Target};
use super::topology::{Endpoint, Port};
use super::{
    Cluster, ClusterError, Console, Helper, NodeSpec, NodeState, Signal, ThreadState, Way,
    start_services,
};
use crate::model::Name;
use async_trait::async_trait;
use bollard::models::{ContainerCreateBody, NetworkCreateRequest};
use std::net::{IpAddr, SocketAddr};
use tokio_util::task::TaskTracker;

/// One case's containers. Nothing is removed on drop, because that could not
/// be awaited: `remove` is called on every way out, and the sweep finds the rest.
pub struct DockerCluster {
    engine: Engine,
    labels: RunLabels,
    maker: Maker,
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
        run: &Name,
        keep: bool,
    ) -> Result<DockerCluster, ClusterError> {
        let mut cluster = DockerCluster::of_run(engine, images, run, Maker::Ourselves);
        cluster.labels.keep = keep;
        let request = NetworkCreateRequest {
            name: cluster.labels.network(),
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

    /// The cluster of a run; nothing is done to what `maker` has not made.
    fn of_run(engine: &Engine, images: ImageIds, run: &Name, maker: Maker) -> DockerCluster {
        DockerCluster {
            engine: engine.clone(),
            labels: RunLabels {
                run: run.clone(),
                keep: false,
            },
            maker,
            images,
            births: TaskTracker::new(),
        }
    }

    /// What is to be made.
    fn target(&self, node: &Name) -> Target {
        Target {
            engine: self.engine.clone(),
            container: self.labels.container(node),
            node: node.clone(),
            network: self.labels.network(),
        }
    }

    /// What is there.
    async fn find(&self, node: &Name) -> Result<Target, ClusterError> {
        let target = self.target(node);
        target.labelled(&self.labels.run, self.maker).await
    }

    fn blueprint(&self, name: &Name, image: &str, command: &[String], attached: bool) -> Blueprint {
        let id = self.images.get(image);
        Blueprint {
            image: id.map_or(image, String::as_str).to_owned(),
            command: command.to_vec(),
            labels: self.labels.for_node(name),
            attached,
        }
    }

    fn node(&self, node: &NodeSpec, attached: bool) -> ContainerCreateBody {
        let blueprint = self.blueprint(&node.name, &node.image, &node.command, attached);
        container::on_network(node, &self.labels.network(), blueprint.body())
    }

    async fn helper(
        &self,
        helper: &Helper,
        attached: bool,
    ) -> Result<ContainerCreateBody, ClusterError> {
        let blueprint = self.blueprint(&helper.name, &helper.image, &helper.command, attached);
        let beside = self.find(&helper.beside).await?.container;
        Ok(helper::beside(helper.shares, &beside, blueprint.body()))
    }

    async fn create_container(
        &self,
        target: &Target,
        body: ContainerCreateBody,
    ) -> Result<(), ClusterError> {
        let target = target.clone();
        self.to_the_end(async move { container::create(&target, body).await })
            .await
    }

    async fn start_container(&self, target: &Target, ports: &[Port]) -> Result<(), ClusterError> {
        let (target, ports) = (target.clone(), ports.to_vec());
        self.to_the_end(async move { container::start(&target, &ports).await })
            .await
    }

    /// Attaches before the start, so that no line is missed.
    async fn start_in_hands(
        &self,
        target: &Target,
        ports: &[Port],
    ) -> Result<Console, ClusterError> {
        let console = console::attach(target).await?;
        self.start_container(target, ports).await?;
        Ok(console)
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
        let target = self.target(&node.name);
        self.create_container(&target, self.node(node, false)).await
    }

    async fn start(&self, node: &NodeSpec) -> Result<(), ClusterError> {
        let target = self.find(&node.name).await?;
        self.start_container(&target, &node.ports).await
    }

    async fn await_said(&self, node: &Name, text: &str) -> Result<(), ClusterError> {
        self.find(node).await?.await_said(text).await
    }

    async fn start_attached(&self, node: &NodeSpec) -> Result<Console, ClusterError> {
        let target = self.target(&node.name);
        self.create_container(&target, self.node(node, true))
            .await?;
        self.start_in_hands(&target, &node.ports).await
    }

    async fn address(&self, node: &Name, port: u16) -> Result<SocketAddr, ClusterError> {
        self.find(node).await?.address(port).await
    }

    async fn signal(&self, node: &Name, signal: Signal) -> Result<(), ClusterError> {
        self.find(node).await?.signal(signal).await
    }

    async fn threads(&self, node: &Name) -> Result<Vec<ThreadState>, ClusterError> {
        self.find(node).await?.threads().await
    }

    async fn await_end(&self, node: &Name) -> Result<(), ClusterError> {
        self.find(node).await?.await_end().await
    }

    async fn state(&self, node: &Name) -> Result<NodeState, ClusterError> {
        self.find(node).await?.state().await
    }

    async fn freeze(&self, node: &Name) -> Result<(), ClusterError> {
        self.find(node).await?.freeze().await
    }

    async fn thaw(&self, node: &Name) -> Result<(), ClusterError> {
        self.find(node).await?.thaw().await
    }

    async fn discard(&self, node: &Name) -> Result<(), ClusterError> {
        match self.find(node).await {
            Err(ClusterError::Gone { .. }) => Ok(()),
            found => found?.discard().await,
        }
    }

    async fn disconnect(&self, node: &Name) -> Result<(), ClusterError> {
        self.find(node).await?.disconnect().await
    }

    async fn connect(&self, node: &Name) -> Result<(), ClusterError> {
        self.find(node).await?.connect().await
    }

    async fn way(&self, proxy: &Name, server: &Endpoint) -> Result<Way, ClusterError> {
        let proxy = self.find(proxy).await?.inner_address().await?;
        Ok(Way::by_name(server, proxy))
    }

    async fn inner_address(&self, node: &Name) -> Result<IpAddr, ClusterError> {
        self.find(node).await?.inner_address().await
    }

    async fn start_helper(&self, helper: &Helper) -> Result<Console, ClusterError> {
        let target = self.target(&helper.name);
        let body = self.helper(helper, true).await?;
        self.create_container(&target, body).await?;
        let started = self.start_in_hands(&target, &[]).await;
        if started.is_err() {
            // So that the same helper can be tried again; why it failed is
            // what has to be said.
            let _ = target.discard().await;
        }
        started
    }

    async fn run_helper(&self, helper: &Helper) -> Result<String, ClusterError> {
        let target = self.target(&helper.name);
        let (body, helper) = (self.helper(helper, false).await?, helper.clone());
        self.to_the_end(async move {
            container::create(&target, body).await?;
            helper::run(&target, &helper).await
        })
        .await
    }

    async fn logs(&self, node: &Name) -> Result<String, ClusterError> {
        Ok(self.find(node).await?.printed().await?.all)
    }

    async fn remove(&self) -> Result<(), ClusterError> {
        self.births.close();
        self.births.wait().await;
        sweep::remove_run(&self.engine, &self.labels.run).await
    }

    async fn keep(&self) -> Result<String, ClusterError> {
        let label = format!("{}={}", labels::RUN, self.labels.run);
        Ok(format!("containers with the label {label}"))
    }
}
