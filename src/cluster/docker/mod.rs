//! The cluster as containers on a private network of one Docker Engine.

pub mod beside;
pub mod compose;
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
mod relay;
mod removal;
mod runtime;
pub mod sweep;
mod target;

pub use engine::Engine;
pub use log::ContainerOutput;
pub use runtime::DockerRuntime;

use self::engine::call;
use self::images::ImageIds;
use self::labels::RunLabels;
use self::network::Subnet;
use self::relay::Relay;
use self::target::{Maker, Target};
use super::attached::Attachments;
use super::topology::{Endpoint, Port};
use super::{
    Cluster, ClusterError, ClusterResult, Console, FoundServer, Helper, NodeSpec, NodeState,
    ProxyRoute, Signal, ThreadState, start_services,
};
use crate::model::Name;
use async_trait::async_trait;
use bollard::errors::Error;
use bollard::models::{ContainerCreateBody, HostConfig, NetworkCreateRequest};
use engine::if_there;
use futures_util::StreamExt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio_util::task::TaskTracker;

/// One case's containers. Nothing is removed on drop, because that could not be awaited: `remove`
/// is called on every way out, and the sweep finds the rest.
pub struct DockerCluster {
    engine: Engine,
    labels: RunLabels,
    maker: Maker,
    images: ImageIds,
    /// Calls that create or start containers. The engine goes on with them when their caller gives
    /// up, so removal waits for them first.
    births: TaskTracker,
    attached: Attachments,
    relays: Mutex<BTreeMap<Name, Relay>>,
}

impl DockerCluster {
    /// Makes the private network; nothing runs yet.
    pub async fn create(
        engine: &Engine,
        images: ImageIds,
        run: &Name,
        keep: bool,
    ) -> ClusterResult<DockerCluster> {
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
            // The engine may have made it all the same, and answered too late.
            let _ = cluster.remove().await;
            return Err(error);
        }
        Ok(cluster)
    }

    /// Returns the cluster of a run; nothing is done to containers that `maker` has not made.
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
            attached: Attachments::default(),
            relays: Mutex::default(),
        }
    }

    /// Returns a target that may not exist yet.
    fn target(&self, node: &Name) -> Target {
        Target {
            engine: self.engine.clone(),
            container: self.labels.container(node),
            node: node.clone(),
            network: self.labels.network(),
        }
    }

    /// Returns a target that exists and is labelled as ours, or is an attached server that may be
    /// faulted.
    async fn find(&self, node: &Name) -> ClusterResult<Target> {
        let target = self.target(node);
        let Some(server) = self.attached.get(node) else {
            return target.labelled(&self.labels.run, self.maker).await;
        };
        match server.container.filter(|_| server.may_be_faulted) {
            Some(container) => Ok(Target {
                container,
                ..target
            }),
            None => Err(left_alone(node)),
        }
    }

    /// Returns a target of our own, for what is never done to an attached server.
    async fn find_own(&self, node: &Name) -> ClusterResult<Target> {
        match self.attached.get(node) {
            Some(_) => Err(left_alone(node)),
            None => self.find(node).await,
        }
    }

    fn body(
        &self,
        name: &Name,
        image: &str,
        command: &[String],
        attached: bool,
    ) -> ContainerCreateBody {
        let id = self.images.get(image).map_or(image, String::as_str);
        let labels = self.labels.for_node(name);
        container::body(id.to_owned(), command.to_vec(), labels, attached)
    }

    fn node(&self, node: &NodeSpec, attached: bool) -> ContainerCreateBody {
        let whole = usize::from(node.is_whole_command);
        let (program, rest) = node.command.split_at(whole.min(node.command.len()));
        let mut body = self.body(&node.name, &node.image, rest, attached);
        body.entrypoint = (!program.is_empty()).then(|| program.to_vec());
        container::on_network(node, &self.labels.network(), body)
    }

    async fn helper(&self, helper: &Helper, attached: bool) -> ClusterResult<ContainerCreateBody> {
        let body = self.body(&helper.name, &helper.image, &helper.command, attached);
        let beside = self.find(&helper.beside).await?.container;
        Ok(helper::beside(helper.shares, &beside, body))
    }

    async fn create_container(&self, target: &Target, body: ContainerCreateBody) -> ClusterResult {
        let target = target.clone();
        self.to_the_end(async move { container::create(&target, body).await })
            .await
    }

    async fn start_container(&self, target: &Target, ports: &[Port]) -> ClusterResult {
        let (target, ports) = (target.clone(), ports.to_vec());
        self.to_the_end(async move { container::start(&target, &ports).await })
            .await
    }

    /// Attaches before the start, so that no line is missed.
    async fn start_in_hands(&self, target: &Target, ports: &[Port]) -> ClusterResult<Console> {
        let console = console::attach(target).await?;
        self.start_container(target, ports).await?;
        Ok(console)
    }

    /// Finds an attached container that was started again, whose address may be another one now.
    async fn follow(&self, name: &Name, server: FoundServer) -> ClusterResult {
        let Some(container) = &server.container else {
            return Ok(());
        };
        let what = format!("find {name} again");
        let ip = compose::address(&self.engine, container, &what).await?;
        let ip = ip.ok_or_else(|| ClusterError::failed(&what, "its container is on no network"))?;
        let address = SocketAddr::new(ip, server.address.port());
        if let Some(relay) = self.relays.lock().get(name) {
            relay.lead_to(address);
        }
        self.attached.add(name, &FoundServer { address, ..server });
        Ok(())
    }

    async fn to_the_end<T: Send + 'static>(
        &self,
        birth: impl Future<Output = ClusterResult<T>> + Send + 'static,
    ) -> ClusterResult<T> {
        let born = self.births.spawn(birth).await;
        born.unwrap_or_else(|error| Err(ClusterError::failed("start a container", error)))
    }
}

#[async_trait]
impl Cluster for DockerCluster {
    async fn create_node(&self, node: &NodeSpec) -> ClusterResult {
        if self.attached.get(&node.name).is_some() {
            return Err(left_alone(&node.name));
        }
        let target = self.target(&node.name);
        self.create_container(&target, self.node(node, false)).await
    }

    async fn start(&self, node: &NodeSpec) -> ClusterResult {
        let target = self.find(&node.name).await?;
        self.start_container(&target, &node.ports).await?;
        match self.attached.get(&node.name) {
            Some(server) => self.follow(&node.name, server).await,
            None => Ok(()),
        }
    }

    async fn await_said(&self, node: &Name, text: &str) -> ClusterResult {
        self.find(node).await?.await_said(text).await
    }

    async fn start_attached(&self, node: &NodeSpec) -> ClusterResult<Console> {
        let target = self.target(&node.name);
        self.create_container(&target, self.node(node, true))
            .await?;
        self.start_in_hands(&target, &node.ports).await
    }

    async fn address(&self, node: &Name, port: u16) -> ClusterResult<SocketAddr> {
        match self.attached.address(node) {
            Some(address) => Ok(address),
            None => self.find(node).await?.address(port).await,
        }
    }

    async fn attach(&self, name: &Name, server: &FoundServer) -> ClusterResult {
        self.attached.add(name, server);
        // The cluster of a dead run is only healed.
        if self.maker == Maker::Ourselves {
            let on = Subnet::of(&self.engine, &self.labels.network()).await?;
            let relay = Relay::start(on, server.address).await;
            let relay = relay.map_err(|error| {
                let at = on.gateway;
                let why = format!(
                    "cannot listen at {at}, this machine's address on the run's network: {error}"
                );
                ClusterError::failed(format!("lead to {name}"), why)
            })?;
            self.relays.lock().insert(name.clone(), relay);
        }
        Ok(())
    }

    async fn signal(&self, node: &Name, signal: Signal) -> ClusterResult {
        self.find(node).await?.signal(signal).await
    }

    async fn threads(&self, node: &Name) -> ClusterResult<Vec<ThreadState>> {
        self.find(node).await?.threads().await
    }

    async fn await_end(&self, node: &Name) -> ClusterResult {
        self.find(node).await?.await_end().await
    }

    async fn state(&self, node: &Name) -> ClusterResult<NodeState> {
        self.find(node).await?.state().await
    }

    async fn freeze(&self, node: &Name) -> ClusterResult {
        self.find(node).await?.freeze().await
    }

    async fn thaw(&self, node: &Name) -> ClusterResult {
        self.find(node).await?.thaw().await
    }

    async fn discard(&self, node: &Name) -> ClusterResult {
        match self.find_own(node).await {
            Err(ClusterError::Gone { .. }) => Ok(()),
            found => found?.discard().await,
        }
    }

    async fn disconnect(&self, node: &Name) -> ClusterResult {
        self.find_own(node).await?.disconnect().await
    }

    async fn connect(&self, node: &Name) -> ClusterResult {
        self.find_own(node).await?.connect().await
    }

    async fn way(&self, proxy: &Name, server: &Endpoint) -> ClusterResult<ProxyRoute> {
        let proxy = self.find(proxy).await?.inner_address().await?;
        let route = ProxyRoute::by_name(server, proxy);
        Ok(match self.relays.lock().get(&server.node) {
            Some(relay) => ProxyRoute {
                upstream: relay.address.to_string(),
                ..route
            },
            None => route,
        })
    }

    async fn inner_address(&self, node: &Name) -> ClusterResult<IpAddr> {
        self.find(node).await?.inner_address().await
    }

    async fn start_helper(&self, helper: &Helper) -> ClusterResult<Console> {
        let target = self.target(&helper.name);
        let body = self.helper(helper, true).await?;
        self.create_container(&target, body).await?;
        let started = self.start_in_hands(&target, &[]).await;
        if started.is_err() {
            // So that the same helper can be tried again. The error of the start is the one to
            // report.
            let _ = target.discard().await;
        }
        started
    }

    async fn run_helper(&self, helper: &Helper) -> ClusterResult<String> {
        let target = self.target(&helper.name);
        let (body, helper) = (self.helper(helper, false).await?, helper.clone());
        self.to_the_end(async move {
            container::create(&target, body).await?;
            helper::run(&target, &helper).await
        })
        .await
    }

    async fn logs(&self, node: &Name) -> ClusterResult<String> {
        Ok(self.find(node).await?.printed().await?.all)
    }

    async fn remove(&self) -> ClusterResult {
        self.births.close();
        self.births.wait().await;
        sweep::remove_run(&self.engine, &self.labels.run).await
    }

    async fn keep(&self) -> ClusterResult<String> {
        let label = format!("{}={}", labels::RUN, self.labels.run);
        Ok(format!("containers with the label {label}"))
    }
}

/// Returns the refusal to do anything to a server that is not ours.
fn left_alone(node: &Name) -> ClusterError {
    ClusterError::failed(
        format!("touch {node}"),
        "it was there before the run; it is left alone",
    )
}
