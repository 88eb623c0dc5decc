use super::*;
use std::path::Path;

/// Makes a table with one row a line: `input => outcome;`.
macro_rules! rows {
    ($($input:expr => $outcome:expr;)*) => { [$(($input, $outcome)),*] };
}

const WORKERS: &str = "  worker:\n    image: w\n    profiles: [workers]\n    environment: { FENCEPOST_ENDPOINTS: 'redis:6379', FENCEPOST_RESOURCE: 'http://store:80' }\n  store: { image: s, ports: ['127.0.0.1:8000:80'] }\n";

/// Returns a topology whose redis is written as given.
fn with_redis(redis: &str) -> String {
    format!("services:\n  redis:\n{redis}{WORKERS}")
}

fn complaints(text: &str) -> Vec<String> {
    Topology::parse(Path::new("t.yml"), text)
        .unwrap_err()
        .lines()
}

#[test]
fn a_service_is_read_with_what_the_harness_needs() {
    let redis =
        "    image: x\n    ports: ['127.0.0.1::6379']\n    labels: { fencepost.ready: Ready }\n";
    let topology = Topology::parse(Path::new("t.yml"), &with_redis(redis)).unwrap();
    assert_eq!(topology.resource.node, "store");
    assert_eq!(topology.workers[0].lock_servers[0].port, 6379);
    let redis = &topology.services["redis"];
    assert_eq!(redis.ready.as_deref(), Some("Ready"));
    assert_eq!(
        redis.ports,
        [Port {
            host: 0,
            container: 6379
        }]
    );
    let started: Vec<_> = topology.started().map(|(name, _)| name.as_str()).collect();
    assert_eq!(started, ["redis", "store"]);
    // These settings of a worker are addresses, whatever the others look like.
    let worker = topology.workers[0].service.node(&"a".into());
    assert_eq!(worker.addressed, [ENDPOINTS, RESOURCE, METRICS]);
}

#[test]
fn keys_outside_the_subset_are_refused_by_name() {
    let redis = "    image: x\n    privileged: true\n    ports: ['127.0.0.1::6379']\n";
    let lines = complaints(&with_redis(redis));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("t.yml:4:5: unknown key"), "{lines:?}");
    assert!(lines[0].contains("privileged"));
}

#[test]
fn a_service_gets_the_rights_that_are_written_for_it_and_no_folder_of_this_machine() {
    let redis = "    image: x\n    ports: ['127.0.0.1::6379']\n";
    let with = |more: &str| with_redis(&format!("{redis}{more}"));
    let rights = |more: &str| {
        let topology = Topology::parse(Path::new("t.yml"), &with(more)).unwrap();
        topology.services["redis"].rights.clone()
    };
    assert_eq!(rights(""), Rights::default());
    assert_eq!(rights("    read_only: true\n"), Rights::default());
    let given = "    user: root\n    read_only: false\n    volumes: [/data]\n";
    let wanted = Rights {
        user: Some("root".to_owned()),
        writes_anywhere: true,
        volumes: vec!["/data".to_owned()],
    };
    assert_eq!(rights(given), wanted);
    for folder in ["/etc:/data", "./here", "data", "/data/../etc"] {
        let lines = complaints(&with(&format!("    volumes: ['{folder}']\n")));
        let complaint = format!("t.yml:5:15: `{folder}`: volumes are folders of the container");
        assert!(
            lines.len() == 1 && lines[0].starts_with(&complaint),
            "{lines:?}"
        );
    }
    let lines = complaints(&with("    read_only: yes\n"));
    assert_eq!(lines, ["t.yml:5:16: write true or false"]);
}

#[test]
fn a_service_comes_after_those_that_come_after_nobody() {
    let redis = "    image: x\n    ports: ['127.0.0.1::6379']\n    depends_on: ";
    let with = |names: &str| with_redis(&format!("{redis}{names}\n"));
    let topology = Topology::parse(Path::new("t.yml"), &with("[store]")).unwrap();
    for (name, after_others) in [("redis", true), ("store", false)] {
        let node = topology.services[name].node(&name.into());
        assert_eq!(node.after_others, after_others, "{name}");
    }
    for (names, complaint) in rows! {
        "[stor]" => "t.yml:5:18: unknown service `stor`; did you mean `store`?";
        "[redis]" => "t.yml:5:18: `redis` is a template or depends on others";
        "[worker]" => "t.yml:5:18: `worker` is a template or depends on others";
    } {
        let lines = complaints(&with(names));
        assert!(lines[0].starts_with(complaint), "{lines:?}");
    }
}

#[test]
fn nothing_is_published_but_on_loopback() {
    for port in ["6379:6379", "0.0.0.0:1:2", "6379", "127.0.0.1:0:70000"] {
        let redis = format!("    image: x\n    ports: ['{port}']\n");
        let lines = complaints(&with_redis(&redis)).join("\n");
        assert!(lines.contains("loopback only"), "{port}: {lines}");
    }
}

#[test]
fn workers_need_a_template_that_says_where_everything_is() {
    let lines = complaints("services:\n  redis: { image: x }\n");
    assert!(lines[0].contains("needs a service `worker`"), "{lines:?}");
    let lines = complaints(&with_redis("    image: x\n"));
    assert!(lines[0].contains("needs FENCEPOST_ENDPOINTS"), "{lines:?}");
}

/// Returns a topology whose redis has these labels.
fn with_label(label: &str) -> String {
    let redis = "    image: x\n    ports: ['127.0.0.1::6379']\n    labels: ";
    with_redis(&format!("{redis}{{ {label} }}\n"))
}

#[test]
fn services_say_whom_they_connect_to_and_whose_copy_they_are() {
    let text = with_label("fencepost.links: 'store:81', fencepost.replica_of: store");
    let topology = Topology::parse(Path::new("t.yml"), &text).unwrap();
    let to = |node: &str, port| Endpoint {
        node: node.into(),
        port,
    };
    let links: Vec<_> = topology.links().collect();
    assert_eq!(links, [(&Name::from("redis"), &[to("store", 81)][..])]);
    let replica_of = topology.services["redis"].replica_of.as_deref();
    assert_eq!(replica_of, Some("store"));
    assert_eq!(topology.behind(&to("redis", 6379)), to("redis", 6379));
    let text = with_label("fencepost.pools: 'store:80'");
    let pooled = Topology::parse(Path::new("t.yml"), &text).unwrap();
    assert_eq!(pooled.behind(&to("redis", 6379)), to("store", 80));
    let expected = [to("redis", 6379), to("store", 80)];
    assert_eq!(topology.reached_by(&topology.workers[0]), expected);
}

#[test]
fn labels_that_lead_nowhere_are_refused_where_they_stand() {
    for (label, complaint) in rows! {
        "fencepost.links: 'stor:80'" => "t.yml:5:32: unknown service `stor`; did you mean `store`?";
        "fencepost.links: 'redis:80'" => "t.yml:5:32: `redis` names itself";
        "fencepost.links: 'worker:80'" => "t.yml:5:32: unknown service `worker`";
        "fencepost.links: store" => "t.yml:5:32: `store` is not a link; write SERVICE:PORT";
        "fencepost.pools: 'store:81'" => "t.yml:5:32: `store:81`: write SERVICE:PORT of another service here";
        "fencepost.pools: 'redis:6379'" => "t.yml:5:32: `redis:6379`: write SERVICE:PORT of another service here";
        "fencepost.replica_of: stor" => "t.yml:5:37: unknown service `stor`; did you mean `store`?";
        "fencepost.link: 'store:80'" => "t.yml:5:15: unknown label `fencepost.link`; did you mean `fencepost.links`?";
    } {
        let lines = complaints(&with_label(label));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(complaint), "{lines:?}");
    }
    let labelled_by_others = with_label("com.example.team: us");
    Topology::parse(Path::new("t.yml"), &labelled_by_others).unwrap();
}

#[test]
fn what_one_node_reaches_has_different_ports() {
    let lines = complaints(&with_label("fencepost.links: 'store:80,store:80'"));
    let complaint = "t.yml:5:32: `redis` reaches `store` and `store` at the same port 80;";
    assert!(lines[0].starts_with(complaint), "{lines:?}");
    let redis = "    image: x\n    ports: ['127.0.0.1::80']\n";
    let text = with_redis(redis).replace("redis:6379", "redis:80");
    let lines = complaints(&text);
    assert_eq!(lines.len(), 1, "{lines:?}");
    let complaint = "`worker` reaches `redis` and `store` at the same port 80;";
    assert!(lines[0].contains(complaint), "{lines:?}");
}

#[test]
fn a_service_by_itself_needs_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.yml");
    let text = "services:\n  proxy: { image: x, ports: ['127.0.0.1::8474'], labels: { fencepost.ready: listening } }\n";
    std::fs::write(&file, text).unwrap();
    let service = load_service(&file, "proxy").unwrap();
    assert_eq!(service.image.name, "x");
    assert_eq!(service.ready.as_deref(), Some("listening"));
    let other = load_service(&file, "other").unwrap_err().to_string();
    assert!(
        other.ends_with("server.yml:1:1: there has to be a service `other`"),
        "{other}"
    );
}
