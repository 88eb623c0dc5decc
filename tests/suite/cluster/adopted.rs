use super::*;
use crate::support::*;
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Runtime, Signal};

#[tokio::test]
async fn somebody_else_can_heal_and_remove_a_run() {
    let Some(cluster) = own_cluster("adopted").await else {
        return;
    };
    let redis = redis("redis");
    bring_up(&*cluster, &redis).await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    cluster.freeze(&named("redis")).await.unwrap();
    cluster.signal(&named("a"), Signal::Stop).await.unwrap();

    let runtime = DockerRuntime::connect().await.unwrap();
    let adopted = runtime.adopt(&named(&cluster.run)).await.unwrap();
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
