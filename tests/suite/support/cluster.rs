//! Clusters for single tests, made through the same interface as those of a run.

use super::command::images_lock;
use super::docker::{docker, docker_ok};
use super::named;
use super::turn::{Turn, docker_shared};
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Cluster, Runtime};
use fencepost::model::Name;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A cluster that is removed however its test ends.
pub struct OwnCluster {
    pub run: Name,
    cluster: Arc<dyn Cluster>,
    _turn: Turn,
}

/// Makes a cluster while other tests run.
pub async fn own_cluster(name: &str) -> OwnCluster {
    cluster_in(docker_shared(), name).await
}

/// Makes a cluster in a turn that the test has taken.
pub async fn cluster_in(turn: Turn, name: &str) -> OwnCluster {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let run = named(&format!("test-{name}-{}-{number}", std::process::id()));
    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    let cluster = runtime.create(&run, false).await.unwrap();
    OwnCluster {
        run,
        cluster,
        _turn: turn,
    }
}

impl OwnCluster {
    pub fn shared(&self) -> Arc<dyn Cluster> {
        Arc::clone(&self.cluster)
    }

    /// Returns the name of a node's or a helper's container.
    pub fn container(&self, node: &str) -> String {
        format!("fencepost-{}-{node}", self.run)
    }

    /// Returns the names of its containers, whatever their state.
    pub fn containers(&self) -> Vec<String> {
        let label = format!("label=fencepost.run={}", self.run);
        let all = docker_ok(&["ps", "-a", "--filter", &label, "--format", "{{.Names}}"]);
        all.lines().map(str::to_owned).collect()
    }
}

impl Deref for OwnCluster {
    type Target = dyn Cluster;

    fn deref(&self) -> &Self::Target {
        self.cluster.as_ref()
    }
}

impl Drop for OwnCluster {
    fn drop(&mut self) {
        for container in self.containers() {
            docker(&["rm", "-f", "-v", &container]);
        }
        docker(&["network", "rm", &format!("fencepost-{}", self.run)]);
    }
}
