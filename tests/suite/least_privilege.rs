//! Every container has what it needs and nothing else, seen by a bystander.

use crate::support::*;
use fencepost::cluster::{ConsoleLine, Helper, NodeSpec, Shared, Topology, start_services};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const NOBODY_ELSE: &str = "65532:65532";
const ROOT: &str = "0:0";

#[test]
fn the_containers_of_a_run_have_the_least_rights_and_take_their_data_along() {
    let _turn = docker_shared();
    let results = fresh_folder("least-privilege");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--results", folder];
    let kept = fencepost(&[&run[..], &["--keep"]].concat()).expect_code(0);
    let mut seen = BTreeSet::new();
    let mut volumes = Vec::new();
    for container in owned_by(kept.pid) {
        // The network is among them.
        let Some(found) = inspect(&container) else {
            continue;
        };
        has_the_least_rights(&found, NOBODY_ELSE, &[]);
        seen.insert(
            found["Config"]["Labels"]["fencepost.node"]
                .clone()
                .to_string(),
        );
        let mounts = found["Mounts"].as_array().cloned().unwrap_or_default();
        for mount in mounts {
            assert_eq!(mount["Type"], "volume", "nothing of this machine: {mount}");
            volumes.extend(mount["Name"].as_str().map(str::to_owned));
        }
    }
    let nodes = ["a", "b", "redis", "resource", "toxiproxy-a", "toxiproxy-b"];
    let nodes: BTreeSet<String> = nodes.iter().map(|node| format!("{node:?}")).collect();
    assert_eq!(seen, nodes);
    assert!(!volumes.is_empty(), "the resource keeps its log");

    fencepost(&["clean"]).expect_cleaned();
    for volume in volumes {
        let left = docker(&["volume", "inspect", &volume]);
        assert!(!left.status.success(), "{volume} is left");
    }
}

/// Each kind, beside a server of ours.
#[tokio::test]
async fn helpers_have_their_one_capability_alone() {
    let cluster = own_cluster("least").await;
    let topology = Topology::load(project().join("compose/redis.yml")).unwrap();
    let redis: NodeSpec = topology.services["redis"].node(&named("redis"));
    let image = redis.image.clone();
    start_services(&*cluster, &[redis]).await.unwrap();
    for (shares, user, capabilities, mask) in [
        (Shared::Network, NOBODY_ELSE, &[][..], "0000000000000000"),
        (
            Shared::NetworkWithFilters,
            ROOT,
            &["NET_ADMIN"],
            "0000000000001000",
        ),
        (Shared::Processes, ROOT, &["SYS_PTRACE"], "0000000000080000"),
    ] {
        let helper = Helper {
            name: named("beside"),
            image: image.clone(),
            command: ["bash", "-c", LOOK].map(str::to_owned).into(),
            beside: named("redis"),
            shares,
        };
        let mut console = cluster.start_helper(&helper).await.unwrap();
        let found = inspect(&cluster.container("beside")).expect("it is there");
        has_the_least_rights(&found, user, capabilities);
        // What the kernel says is what counts.
        for wanted in [mask, "1", "denied"] {
            let line = console.lines.recv().await;
            assert_eq!(
                line,
                Some(ConsoleLine::Out(wanted.to_owned())),
                "{shares:?}"
            );
        }
        drop(console);
        cluster.discard(&named("beside")).await.unwrap();
    }
    cluster.remove().await.unwrap();
}

/// Its capabilities, whether it can get others, and whether it can write.
const LOOK: &str = "\
sed -n 's/^CapEff:.//p; s/^NoNewPrivs:.//p' /proc/self/status
touch /etc/it 2>/dev/null && echo wrote || echo denied
exec cat";

fn inspect(container: &str) -> Option<Value> {
    let found = docker(&["container", "inspect", container]);
    let found: Value = serde_json::from_slice(&found.stdout).ok()?;
    found.get(0).cloned()
}

#[track_caller]
fn has_the_least_rights(found: &Value, user: &str, capabilities: &[&str]) {
    let (config, host) = (&found["Config"], &found["HostConfig"]);
    assert_eq!(config["User"], user, "{found:#}");
    assert_eq!(host["CapDrop"], json!(["ALL"]), "{host:#}");
    let added = host["CapAdd"].as_array().cloned().unwrap_or_default();
    assert_eq!(added, capabilities, "{host:#}");
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["SecurityOpt"], json!(["no-new-privileges"]));
    assert_eq!(host["ReadonlyRootfs"], true);
    for limit in ["Memory", "PidsLimit"] {
        let limit = &host[limit];
        assert!(limit.as_i64().is_some_and(|limit| limit > 0), "{host:#}");
    }
}
