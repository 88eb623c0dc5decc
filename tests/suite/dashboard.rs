//! The dashboard and the page about metrics name exactly the metrics that there are.

use crate::support::*;
use fencepost::dlock::LockMetrics;
use prometheus_client::registry::Registry;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A resource of its own, which ends with the test.
struct Resource(Child);

impl Drop for Resource {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a running resource says about itself.
fn metrics_of_a_resource() -> String {
    let data = tempfile::tempdir().expect("a temporary folder");
    let folder = data.path().to_str().expect("a plain path");
    let mut program = command(["resource", "--listen", "127.0.0.1:0", "--data", folder]);
    let child = program.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut resource = Resource(child.expect("it starts"));
    let stdout = resource.0.stdout.take().expect("piped");
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line.strip_prefix("resource listening on ");
    let address = address.and_then(|rest| rest.split(',').next());
    let address = address.unwrap_or_else(|| panic!("{line}"));
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a deadline");
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn metrics_of_a_lock() -> String {
    let mut registry = Registry::default();
    LockMetrics::default().register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("text");
    text
}

/// `# TYPE lock_renews counter` → `lock_renews_total`.
fn names(text: &str) -> BTreeSet<String> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names = types.filter_map(|line| match line.split_once(' ')? {
        (name, "counter") => Some(format!("{name}_total")),
        (name, _) => Some(name.to_owned()),
    });
    names.collect()
}

/// Every metric of ours that is named in a text; parts of a histogram stand for it.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|word| word.starts_with("lock_") || word.starts_with("resource_"));
    let whole = ours.map(|name| {
        let parts = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
        match parts.iter().find_map(|part| name.strip_suffix(part)) {
            Some(histogram) => format!("{histogram}_seconds"),
            None => name.to_owned(),
        }
    });
    whole.collect()
}

fn all() -> BTreeSet<String> {
    let all = [metrics_of_a_resource(), metrics_of_a_lock()];
    let all: BTreeSet<String> = all.iter().flat_map(|text| names(text)).collect();
    assert!(all.len() > 15, "{all:?}");
    all
}

fn text_of(path: &str) -> String {
    fs::read_to_string(project().join(path)).expect(path)
}

#[test]
fn the_dashboard_asks_for_all_metrics_and_for_no_others() {
    let text = text_of("compose/monitoring/grafana/dashboards/fencepost.json");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array());
    let asked: BTreeSet<String> = targets
        .flatten()
        .flat_map(|target| named(target["expr"].as_str().expect("an expression")))
        .collect();
    assert_eq!(asked, all());
}

#[test]
fn the_page_about_metrics_names_all_of_them_and_no_others() {
    let contract = text_of("docs/contract.md");
    let page = contract.split("\n## Metrics\n").nth(1).expect("a section");
    let page = page.split("\n## ").next().expect("a section");
    assert_eq!(named(page), all());
}

#[test]
fn what_is_scraped_is_what_serves_metrics() {
    let scraped: serde_yaml::Value =
        serde_yaml::from_str(&text_of("compose/monitoring/prometheus.yml")).expect("YAML");
    let compose: serde_yaml::Value =
        serde_yaml::from_str(&text_of("compose/monitoring/compose.yml")).expect("YAML");
    let jobs = scraped["scrape_configs"].as_sequence().expect("jobs");
    let targets: Vec<&str> = jobs
        .iter()
        .filter_map(|job| job["static_configs"][0]["targets"][0].as_str())
        .collect();
    assert_eq!(targets, ["resource:8080", "worker:9464"]);
    let worker = &compose["services"]["worker"];
    assert_eq!(worker["command"][2].as_str(), Some("0.0.0.0:9464"));
    let resource = worker["environment"]["FENCEPOST_RESOURCE"].as_str();
    assert_eq!(resource, Some("http://resource:8080"));
    // On loopback or not at all, as everything here.
    for service in ["prometheus", "grafana"] {
        let port = compose["services"][service]["ports"][0].as_str();
        assert!(
            port.is_some_and(|port| port.starts_with("127.0.0.1:")),
            "{service}"
        );
    }
}
