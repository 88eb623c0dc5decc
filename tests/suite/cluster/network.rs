use super::*;
use crate::support::*;
use fencepost::cluster::Signal;

const ASK_REDIS: &str = "timeout 2 redis-cli -h redis ping";

#[tokio::test]
async fn names_can_lead_elsewhere_for_one_node() {
    let cluster = own_cluster("hosts").await;
    bring_up(&*cluster, &redis("redis")).await;
    let mut misled = script("misled", "exec sleep 1000");
    misled.hosts = BTreeMap::from([
        (named("redis"), "192.0.2.7:6379".parse().unwrap()),
        (named("nobody"), "192.0.2.8:6379".parse().unwrap()),
    ]);
    bring_up(&*cluster, &misled).await;
    bring_up(&*cluster, &script("plain", "exec sleep 1000")).await;

    // A helper shares the hosts of the node that it stands beside.
    let address_of = async |name: &str, node: &str| {
        let look = format!("getent hosts {name} | cut -d' ' -f1");
        seen_from(&*cluster, node, &look).await.unwrap()
    };
    assert_eq!(address_of("redis", "misled").await, "192.0.2.7");
    assert_eq!(address_of("nobody", "misled").await, "192.0.2.8");
    assert_eq!(address_of("nobody", "plain").await, "");
    let inner = cluster
        .inner_address(&named("redis"))
        .await
        .unwrap()
        .to_string();
    assert_eq!(address_of("redis", "plain").await, inner);
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn a_node_off_the_network_lives_on_and_comes_back() {
    let cluster = own_cluster("disconnected").await;
    bring_up(&*cluster, &redis("redis")).await;
    bring_up(&*cluster, &script("b", "exec sleep 1000")).await;
    assert_eq!(seen_from(&*cluster, "b", ASK_REDIS).await.unwrap(), "PONG");
    let before = cluster.address(&named("redis"), 6379).await.unwrap();

    for _ in 0..2 {
        cluster.disconnect(&named("redis")).await.unwrap();
    }
    seen_from(&*cluster, "b", ASK_REDIS).await.unwrap_err();
    assert!(!answers(before, Duration::from_secs(2)));
    let off = "it is not on the run's network";
    let gone = cluster
        .address(&named("redis"), 6379)
        .await
        .unwrap_err()
        .to_string();
    assert!(gone.contains(off), "{gone}");
    let gone = cluster
        .inner_address(&named("redis"))
        .await
        .unwrap_err()
        .to_string();
    assert!(gone.contains(off), "{gone}");
    let inside = "redis-cli -h 127.0.0.1 ping";
    assert_eq!(seen_from(&*cluster, "redis", inside).await.unwrap(), "PONG");

    for _ in 0..2 {
        cluster.connect(&named("redis")).await.unwrap();
    }
    reachable(&cluster).await;

    // Also after another start, which it makes without a network.
    cluster.disconnect(&named("redis")).await.unwrap();
    cluster.signal(&named("redis"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("redis")).await.unwrap();
    let gone = cluster
        .address(&named("redis"), 6379)
        .await
        .unwrap_err()
        .to_string();
    assert!(gone.contains("it is not running"), "{gone}");
    bring_back(&*cluster, &redis("redis")).await;
    cluster.connect(&named("redis")).await.unwrap();
    reachable(&cluster).await;

    // And what is frozen can be taken off and put on.
    cluster.freeze(&named("redis")).await.unwrap();
    cluster.disconnect(&named("redis")).await.unwrap();
    cluster.connect(&named("redis")).await.unwrap();
    cluster.thaw(&named("redis")).await.unwrap();
    reachable(&cluster).await;
    cluster.remove().await.unwrap();
}

async fn reachable(cluster: &OwnCluster) {
    assert_eq!(seen_from(&**cluster, "b", ASK_REDIS).await.unwrap(), "PONG");
    let address = cluster.address(&named("redis"), 6379).await.unwrap();
    assert!(answers(address, LONG));
    let inner = cluster
        .inner_address(&named("redis"))
        .await
        .unwrap()
        .to_string();
    let named = seen_from(&**cluster, "b", "getent hosts redis").await;
    assert!(named.unwrap().starts_with(&inner));
}
