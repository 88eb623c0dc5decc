//! The dashboard and the page about metrics name exactly the metrics that there are.

use crate::support::*;
use crate::worker_rounds::kit::{PATIENCE, Place};
use fencepost::model::Fence;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::net::TcpListener;
use tokio::time::timeout;

async fn page(url: &str) -> String {
    let asked = async { reqwest::get(url).await?.text().await };
    let answer = timeout(PATIENCE, asked).await.expect("an answer in time");
    answer.unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// What a worker that holds a lock and its resource say about themselves.
async fn served() -> [String; 2] {
    let place = Place::new(Fence::On).await;
    // A port that was free a moment ago, at an address of its own: nobody else takes it.
    static ASKED: AtomicU8 = AtomicU8::new(100);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, ASKED.fetch_add(1, Ordering::Relaxed), high, low);
    let listener = TcpListener::bind((own, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let flags = format!("--metrics {address} --gates before_release");
    let mut worker = place.worker("a", &flags);
    worker.told_until("at_gate").await;
    [
        page(&format!("http://{address}/metrics")).await,
        page(&format!("{}/metrics", place.resource)).await,
    ]
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

async fn all() -> BTreeSet<String> {
    let all = served().await;
    let all: BTreeSet<String> = all.iter().flat_map(|text| names(text)).collect();
    assert!(all.len() > 15, "{all:?}");
    all
}

fn text_of(path: &str) -> String {
    fs::read_to_string(project().join(path)).expect(path)
}

#[tokio::test]
async fn the_dashboard_asks_for_all_metrics_and_for_no_others() {
    let _turn = docker_shared();
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
    assert_eq!(asked, all().await);
}

#[tokio::test]
async fn the_page_about_metrics_names_all_of_them_and_no_others() {
    let _turn = docker_shared();
    let contract = text_of("docs/contract.md");
    let page = contract.split("\n## Metrics\n").nth(1).expect("a section");
    let page = page.split("\n## ").next().expect("a section");
    assert_eq!(named(page), all().await);
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
