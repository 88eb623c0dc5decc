//! Clusters of a test's own, through the same door as a run's.

use super::command::images_lock;
use super::docker::{docker, docker_ok};
use super::named;
use super::turn::{Alone, docker_alone};
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Cluster, Runtime};
use fencepost::model::Name;
use std::ops::Deref;
use std::sync::Arc;

/// A cluster that is removed however its test ends, with Docker for it alone.
pub struct OwnCluster {
    pub run: Name,
    cluster: Arc<dyn Cluster>,
    _turn: Alone,
}

/// None, and a line that says so, where there is no Docker to test with.
pub async fn own_cluster(name: &str) -> Option<OwnCluster> {
    let turn = docker_alone()?;
    let run = named(&format!("test-{name}-{}", std::process::id()));
    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    let cluster = runtime.create(&run, false).await.unwrap();
    Some(OwnCluster {
        run,
        cluster,
        _turn: turn,
    })
}

impl OwnCluster {
    pub fn shared(&self) -> Arc<dyn Cluster> {
        Arc::clone(&self.cluster)
    }

    /// What the engine calls a node or a helper.
    pub fn container(&self, node: &str) -> String {
        format!("fencepost-{}-{node}", self.run)
    }

    /// The names of its containers, whatever their state.
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
