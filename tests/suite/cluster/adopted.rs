use super::kit::{Labelled, dead_owner};
use super::*;
use crate::support::*;
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Cluster, ClusterError, Owner, Runtime, Signal};

#[tokio::test]
async fn somebody_else_can_heal_and_remove_a_run() {
    let cluster = own_cluster("adopted").await;
    let redis = redis("redis");
    bring_up(&*cluster, &redis).await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    cluster.freeze(&named("redis")).await.unwrap();
    cluster.signal(&named("a"), Signal::Stop).await.unwrap();

    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    let adopted = runtime.of_run(&cluster.run);
    adopted.thaw(&named("redis")).await.unwrap();
    let address = adopted.address(&named("redis"), 6379).await.unwrap();
    assert!(answers(address, LONG));
    let stopped = async || {
        let threads = adopted.threads(&named("a")).await.unwrap();
        threads.iter().any(|thread| thread.is_stopped())
    };
    assert!(stopped().await);
    adopted.signal(&named("a"), Signal::Continue).await.unwrap();
    assert!(!stopped().await);
    adopted.signal(&named("redis"), Signal::Kill).await.unwrap();
    adopted.await_end(&named("redis")).await.unwrap();
    bring_back(&*adopted, &redis).await;
    adopted.disconnect(&named("redis")).await.unwrap();
    adopted.connect(&named("redis")).await.unwrap();
    let ping = "redis-cli -h redis ping";
    assert_eq!(seen_from(&*adopted, "a", ping).await.unwrap(), "PONG");
    adopted.remove().await.unwrap();
    assert_eq!(cluster.containers(), [""; 0]);
}

/// Whatever is asked of it.
async fn is_refused(cluster: &dyn Cluster, node: &str) {
    let node = &named(node);
    for refused in [
        cluster.thaw(node).await,
        cluster.signal(node, Signal::Continue).await,
        cluster.disconnect(node).await,
        cluster.connect(node).await,
        cluster.discard(node).await,
        cluster.state(node).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, ClusterError::Failed { .. }), "{error}");
        assert!(error.to_string().contains("is left alone"), "{error}");
    }
}

#[tokio::test]
async fn what_is_not_labelled_as_the_record_says_is_left_alone() {
    let _turn = docker_alone();
    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    let dead = dead_owner();
    let living = Owner::current().to_label();
    let (run, node) = ("fencepost.run", "fencepost.node");
    for (name, labels) in [
        ("plain", vec![]),
        ("run", vec![(run, "another"), (node, "run")]),
        ("node", vec![(run, "RUN"), (node, "another")]),
    ] {
        let owner = ("fencepost.owner", dead.as_str());
        let left = Labelled::new(name, &[&labels[..], &[owner]].concat());
        docker_ok(&["pause", &left.name]);
        let adopted = runtime.adopt(&left.run).await.unwrap();
        is_refused(&*adopted, name).await;
        is_refused(&*runtime.of_run(&left.run), name).await;
        assert_eq!(left.state(), "paused");
    }
    let all = |owner| [(run, "RUN"), (node, "alive"), ("fencepost.owner", owner)];
    let alive = Labelled::new("alive", &all(&living));
    docker_ok(&["pause", &alive.name]);
    let adopted = runtime.adopt(&alive.run).await.unwrap();
    is_refused(&*adopted, "alive").await;
    assert_eq!(alive.state(), "paused");
    drop(alive);

    let ours = Labelled::new("alive", &all(&dead));
    docker_ok(&["pause", &ours.name]);
    adopted.thaw(&named("alive")).await.unwrap();
    assert_eq!(ours.state(), "running");
    adopted.discard(&named("alive")).await.unwrap();
    adopted.discard(&named("alive")).await.unwrap();
    assert!(!ours.is_there());
}
