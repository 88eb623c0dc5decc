use super::*;
use crate::support::*;
use fencepost::cluster::{ConsoleLine, Signal};

#[tokio::test]
async fn a_helper_sees_what_its_node_sees_and_may_do_no_more_than_it_has_to() {
    let cluster = own_cluster("helpers").await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    let run = async |shares: Shared, script: &str| {
        let helper = helper("beside", "a", shares, script);
        cluster.run_helper(&helper).await.unwrap()
    };
    let node = cluster
        .inner_address(&named("a"))
        .await
        .unwrap()
        .to_string();
    for shares in [Shared::Network, Shared::NetworkWithFilters] {
        let seen = run(shares, "hostname -I; hostname").await;
        assert_eq!(seen.split_whitespace().collect::<Vec<_>>(), [&node, "a"]);
    }
    let seen = run(Shared::Processes, "tr '\\0' ' ' < /proc/1/cmdline").await;
    assert_eq!(seen, "sleep 1000 ");
    // Only whoever may trace a process is told this.
    run(Shared::Processes, "readlink /proc/1/exe").await;
    let seen = run(Shared::Processes, "ls /sys/class/net").await;
    assert_eq!(seen, "lo\n");

    assert_eq!(cluster.containers(), [cluster.container("a")]);
    // A frozen node does not hold up those beside it.
    cluster.freeze(&named("a")).await.unwrap();
    run(Shared::Network, "true").await;
    run(Shared::Processes, "true").await;
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn a_helper_that_fails_is_told_with_its_last_lines_and_leaves_nothing() {
    let cluster = own_cluster("failing-helper").await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    let failing = "echo one; echo two >&2; exit 3";
    for _ in 0..2 {
        let error = seen_from(&*cluster, "a", failing).await.unwrap_err();
        let command = format!("could not run `bash -c {failing}` beside a: exit code 3");
        for part in [command.as_str(), "\n    one", "\n    two"] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(cluster.containers(), [cluster.container("a")]);
    }
    // Beside a node that has ended there is nothing to see.
    cluster.signal(&named("a"), Signal::Kill).await.unwrap();
    cluster.await_end(&named("a")).await.unwrap();
    seen_from(&*cluster, "a", "true").await.unwrap_err();
    let held = helper("held", "a", Shared::Processes, "cat");
    assert!(cluster.start_helper(&held).await.is_err());
    assert_eq!(cluster.containers(), [cluster.container("a")]);
    cluster.remove().await.unwrap();
}

#[tokio::test]
async fn a_helper_in_our_hands_ends_with_them() {
    let cluster = own_cluster("held-helper").await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    let echo = helper("echo", "a", Shared::Processes, "echo up >&2; exec cat");
    let mut console = cluster.start_helper(&echo).await.unwrap();
    let up = console.lines.recv().await;
    assert_eq!(up, Some(ConsoleLine::Err("up".to_owned())));
    console.stdin.say("hello").await.unwrap();
    let hello = console.lines.recv().await;
    assert_eq!(hello, Some(ConsoleLine::Out("hello".to_owned())));
    assert!(cluster.state(&named("echo")).await.unwrap().running);
    drop(console);
    cluster.await_end(&named("echo")).await.unwrap();
    cluster.discard(&named("echo")).await.unwrap();
    assert_eq!(cluster.containers(), [cluster.container("a")]);
    cluster.remove().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_helper_that_nobody_waits_for_is_removed_all_the_same() {
    // Alone: the event that it waits for could be another test's.
    let cluster = cluster_in(docker_alone(), "left-helper").await;
    bring_up(&*cluster, &script("a", "exec sleep 1000")).await;
    let events = Events::watch();
    let slow = helper("slow", "a", Shared::Network, "sleep 2");
    tokio::select! {
        biased;
        ran = cluster.run_helper(&slow) => panic!("{ran:?}"),
        () = tokio::task::yield_now() => {}
    }
    // The container comes about although its future is gone.
    events.await_container("start", std::process::id());
    cluster.remove().await.unwrap();
    assert_eq!(cluster.containers(), [""; 0]);
}
