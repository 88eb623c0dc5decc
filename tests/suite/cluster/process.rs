use super::kit::Labelled;
use super::*;
use crate::support::*;
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Leftovers, Runtime, Signal};

#[tokio::test]
async fn a_state_tells_each_life_from_the_others() {
    let cluster = own_cluster("lives").await;
    let mut node = script("a", "");
    node.command = ["sleep", "1000"].map(str::to_owned).into();
    cluster.create_node(&node).await.unwrap();
    let state = cluster.state(&named("a")).await.unwrap();
    assert!(!state.running && state.exit_code.is_none(), "{state:?}");

    cluster.start(&node).await.unwrap();
    let first = cluster.state(&named("a")).await.unwrap();
    assert!(first.running && !first.frozen, "{first:?}");
    assert_eq!(first.exit_code, None);
    let own_root = nix::unistd::geteuid().is_root();
    assert_eq!(first.local_pid.is_some(), own_root, "{first:?}");
    if let Some(pid) = first.local_pid {
        // The engine's own first step may still be under way in it.
        until("its own program", || {
            let command = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
            (command == "sleep\x001000\x00").then_some(())
        });
    }

    cluster.signal(&named("a"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("a")).await.unwrap();
    let ended = cluster.state(&named("a")).await.unwrap();
    assert!(!ended.running && ended.local_pid.is_none(), "{ended:?}");
    assert_eq!(ended.exit_code, Some(137));

    cluster.start(&node).await.unwrap();
    let second = cluster.state(&named("a")).await.unwrap();
    assert!(second.running && second.exit_code.is_none(), "{second:?}");
    assert_ne!(second.started_at, first.started_at);

    cluster.discard(&named("a")).await.unwrap();
    cluster
        .await_end(&named("a"))
        .await
        .expect("what is gone has ended");
    assert!(cluster.state(&named("a")).await.is_err());
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn only_what_the_present_life_says_counts() {
    let cluster = own_cluster("said").await;
    let slow = "[ -e /data/it ] && sleep 1; touch /data/it; echo it is ready; exec sleep 1000";
    let mut node = script("slow", slow);
    node.rights.volumes = vec!["/data".to_owned()];
    node.ready = Some("is ready".to_owned());
    bring_up(&*cluster, &node).await;
    cluster.signal(&named("slow"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("slow")).await.unwrap();
    bring_back(&*cluster, &node).await;
    let log = cluster.logs(&named("slow")).await.unwrap();
    assert_eq!(log, "it is ready\nit is ready\n");
    cluster.remove().await.unwrap();
}

/// Some of these speak before the engine has noted that they were started.
#[tokio::test]
async fn what_is_said_at_once_is_heard_in_every_life() {
    let cluster = own_cluster("at-once").await;
    let mut node = script("quick", "echo quick; exec sleep 1000");
    node.ready = Some("quick".to_owned());
    cluster.create_node(&node).await.unwrap();
    for life in 1..=8 {
        bring_back(&*cluster, &node).await;
        let log = cluster.logs(&named("quick")).await.unwrap();
        assert_eq!(log.lines().count(), life);
        cluster.signal(&named("quick"), Signal::Kill).await.unwrap();
        cluster.await_end(&named("quick")).await.unwrap();
    }
    let ended = cluster
        .await_said(&named("quick"), "quicker")
        .await
        .unwrap_err();
    assert!(ended.to_string().contains("its process ended"), "{ended}");
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn a_frozen_node_stands_still_until_it_is_thawed() {
    let cluster = own_cluster("frozen").await;
    bring_up(&*cluster, &redis("redis")).await;
    let address = cluster.address(&named("redis"), 6379).await.unwrap();
    for _ in 0..2 {
        cluster.freeze(&named("redis")).await.unwrap();
    }
    let mut asked = TcpStream::connect_timeout(&address, LONG).unwrap();
    asked.write_all(b"PING\r\n").unwrap();
    asked.set_nonblocking(true).unwrap();
    let state = cluster.state(&named("redis")).await.unwrap();
    assert!(state.running && state.frozen, "{state:?}");
    // A signal does not wake it.
    cluster
        .signal(&named("redis"), Signal::Continue)
        .await
        .unwrap();
    let state = cluster.state(&named("redis")).await.unwrap();
    assert!(state.running && state.frozen, "{state:?}");
    let silence = asked.read(&mut [0; 7]).unwrap_err();
    assert_eq!(silence.kind(), std::io::ErrorKind::WouldBlock);
    for _ in 0..2 {
        cluster.thaw(&named("redis")).await.unwrap();
    }
    asked.set_nonblocking(false).unwrap();
    asked.set_read_timeout(Some(LONG)).unwrap();
    asked.read_exact(&mut [0; 7]).unwrap();
    assert!(answers(address, LONG));
    assert!(!cluster.state(&named("redis")).await.unwrap().frozen);

    cluster.freeze(&named("redis")).await.unwrap();
    cluster.signal(&named("redis"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("redis")).await.unwrap();
    cluster
        .thaw(&named("redis"))
        .await
        .expect("what has ended is not frozen");
    assert!(cluster.freeze(&named("redis")).await.is_err());
    assert!(cluster.thaw(&named("nobody")).await.is_err());
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn what_is_discarded_comes_back_empty() {
    let cluster = own_cluster("discarded").await;
    let mut node = script(
        "a",
        "cat /data/it 2>&1; echo kept > /data/it; echo up; exec sleep 1000",
    );
    node.rights.volumes = vec!["/data".to_owned()];
    let life = async |said: &str| {
        cluster.start(&node).await.unwrap();
        cluster.await_said(&named("a"), "up").await.unwrap();
        let log = cluster.logs(&named("a")).await.unwrap();
        assert!(log.ends_with(said), "{log}");
    };
    cluster.create_node(&node).await.unwrap();
    life("No such file or directory\nup\n").await;
    cluster.signal(&named("a"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("a")).await.unwrap();
    life("kept\nup\n").await;
    for freezes in [false, true] {
        if freezes {
            cluster.freeze(&named("a")).await.unwrap();
        }
        // Two at once: it is gone when either says so. And gone is fine.
        let discarded = async || {
            cluster.discard(&named("a")).await.unwrap();
            assert_eq!(cluster.containers(), [""; 0]);
        };
        tokio::join!(discarded(), discarded());
        discarded().await;
        cluster.create_node(&node).await.unwrap();
        life("No such file or directory\nup\n").await;
        let log = cluster.logs(&named("a")).await.unwrap();
        assert!(!log.contains("kept"), "{log}");
    }
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn a_run_with_frozen_nodes_is_removed() {
    let cluster = own_cluster("frozen-run").await;
    for name in ["a", "b"] {
        bring_up(&*cluster, &script(name, "exec sleep 1000")).await;
    }
    cluster.freeze(&named("a")).await.unwrap();
    cluster.signal(&named("b"), Signal::Stop).await.unwrap();
    cluster.freeze(&named("b")).await.unwrap();
    cluster.remove().await.unwrap();
    assert_eq!(cluster.containers(), [""; 0]);
}

#[tokio::test]
async fn a_sweep_takes_what_a_dead_run_left_frozen() {
    let _turn = docker_alone();
    // As `docker commit` hands labels on: called otherwise, it is somebody's own.
    let (left, copy) = (Labelled::frozen("a"), Labelled::frozen("b").renamed());
    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    let removed = runtime.sweep(Leftovers::OfDeadRuns).await.unwrap().removed;
    assert!(removed.contains(&left.name), "{removed:?}");
    assert!(!left.is_there() && copy.is_there());
}
