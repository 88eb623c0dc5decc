use super::*;
use crate::support::*;
use fencepost::cluster::PACKET_FILTER_IMAGE;

const ASK_REDIS: &str = "timeout 2 redis-cli -h redis ping";
const SENT: u32 = 400;

#[tokio::test]
async fn packets_of_one_node_get_lost_until_the_filter_goes() {
    let cluster = own_cluster("packets").await;
    bring_up(&*cluster, &redis("redis")).await;
    bring_up(&*cluster, &script("b", "exec sleep 1000")).await;
    let filter = async |script: &str| {
        let mut helper = helper("filter", "redis", Shared::NetworkWithFilters, script);
        helper.image = PACKET_FILTER_IMAGE.to_owned();
        cluster.run_helper(&helper).await.unwrap()
    };
    assert_eq!(seen_from(&*cluster, "b", ASK_REDIS).await.unwrap(), "PONG");
    filter("iptables -A INPUT ! -i lo -j DROP").await;
    seen_from(&*cluster, "b", ASK_REDIS).await.unwrap_err();
    filter("iptables -F").await;
    assert_eq!(seen_from(&*cluster, "b", ASK_REDIS).await.unwrap(), "PONG");

    // The dice of the kernel: about half of the packets, and the others arrive.
    let udp = "iptables -A INPUT -p udp --dport 9";
    let half = format!("{udp} -m statistic --mode random --probability 0.5 -j DROP");
    filter(&format!("{half}; {udp} -j ACCEPT")).await;
    let send = format!("for i in {{1..{SENT}}}; do echo > /dev/udp/redis/9; done");
    seen_from(&*cluster, "b", &send).await.unwrap();
    let counted = filter("iptables -nvxL INPUT").await;
    let count = |target: &str| -> u32 {
        let mut rules = counted.lines().filter(|line| line.contains("dpt:9"));
        let line = rules.find(|line| line.contains(target));
        let count = line.and_then(|line| line.split_whitespace().next());
        count.and_then(|count| count.parse().ok()).expect(&counted)
    };
    let (lost, arrived) = (count(" DROP "), count(" ACCEPT "));
    assert_eq!(lost + arrived, SENT, "{counted}");
    // Ten standard deviations to either side.
    assert!((SENT / 4..=SENT * 3 / 4).contains(&lost), "{counted}");
    cluster.remove().await.unwrap();
}
