//! Tests populate, reset, the config file, metrics and seeds.

use super::super::{ConfigError, read_config};
use super::api::{get, post};
use super::*;
use serde_json::json;

#[tokio::test]
async fn populate_keeps_what_is_the_same_and_replaces_what_is_not() {
    let kit = Kit::new().await;
    let (echo, p, mut client) = through_p(&kit).await;
    kit.proxy("bystander", "127.0.0.1:9").await;
    kit.add(Stream::Upstream, ToxicKind::Noop).await;
    let same = NewProxy {
        listen: p.listen.replace("127.0.0.1", "localhost"),
        enabled: false,
        ..new_proxy("p", &echo.address)
    };
    let wanted = [same.clone(), new_proxy("q", "127.0.0.1:9")];
    let made = kit.client.populate(&wanted).await.unwrap();
    assert_eq!(made.len(), 2);
    let first = (made[0].enabled, made[0].toxics.len());
    assert_eq!(first, (true, 1), "left as it is");
    assert_eq!(made[1].name, "q");
    ping(&mut client).await;
    assert_eq!(kit.client.proxies().await.unwrap().len(), 3);
    let other = NewProxy {
        upstream: "127.0.0.1:9".into(),
        enabled: true,
        ..same
    };
    let made = kit.client.populate(&[other]).await.unwrap();
    assert_eq!((&made[0].listen, made[0].toxics.len()), (&p.listen, 0));
    end_of(&mut client).await;
}

#[tokio::test]
async fn populate_validates_everything_before_it_does_anything() {
    let kit = Kit::new().await;
    let good = json!({"name": "a", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9"});
    for (bad, field) in [
        (json!({"upstream": "x:1"}), "name"),
        (json!({"name": "b"}), "upstream"),
    ] {
        let answer = post(&kit, "/populate", &json!([good, bad]).to_string()).await;
        answer.is(400, "application/json");
        let message = format!("missing required field: {field} at proxy 2");
        let body = json!({"error": message, "status": 400, "proxies": null});
        assert_eq!(answer.json(), body);
    }
    post(&kit, "/populate", "{}").await.is_bad_body(400);
    assert_eq!(get(&kit, "/proxies").await.body, "{}");
}

#[tokio::test]
async fn populate_tells_what_it_made_before_one_failed_and_ignores_toxics() {
    let kit = Kit::new().await;
    let body = json!([
        {"name": "a", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9", "toxics": [{"type": "noop"}]},
        {"name": "b", "listen": "no.such.host.invalid:1", "upstream": "127.0.0.1:9"},
        {"name": "c", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9"},
    ]);
    let answer = post(&kit, "/populate", &body.to_string()).await;
    assert_eq!(answer.status, 500);
    assert_eq!(answer.json()["status"], 500);
    assert_eq!(answer.json()["proxies"][0]["name"], "a");
    assert_eq!(answer.json()["proxies"][0]["toxics"], json!([]));
    assert_eq!(kit.client.proxies().await.unwrap().len(), 1);
    for none in ["[]", "null"] {
        let nothing = post(&kit, "/populate", none).await;
        assert_eq!(
            (nothing.status, nothing.body.as_str()),
            (201, r#"{"proxies":null}"#)
        );
    }
    assert_eq!(kit.client.populate(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn reset_enables_every_proxy_and_removes_every_toxic() {
    let kit = Kit::new().await;
    let (_echo, p, mut client) = through_p(&kit).await;
    let q = kit.proxy("q", "127.0.0.1:9").await;
    kit.client.update("q", &enabled(false)).await.unwrap();
    kit.add(Stream::Upstream, bandwidth(0)).await;
    client.write_all(b"held").await.unwrap();
    kit.client.reset().await.unwrap();
    assert_eq!(read_text(&mut client, 4).await, "held");
    let proxies = kit.client.proxies().await.unwrap();
    assert_eq!(proxies, [("p".into(), p), ("q".into(), q)].into());
}

#[tokio::test]
async fn a_config_may_have_toxics() {
    let echo = echo("").await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let config = json!([
        {"name": "p", "listen": "127.0.0.1:0", "upstream": echo.address,
         "toxics": [{"type": "latency", "attributes": {"latency": 100}}]},
        {"name": "off", "listen": "127.0.0.1:0", "upstream": "127.0.0.1:9", "enabled": false},
    ]);
    std::fs::write(&file, config.to_string()).unwrap();
    let kit = Kit::with(Settings {
        proxies: read_config(&file).unwrap(),
        ..Settings::default()
    });
    let kit = kit.await;
    let proxies = kit.client.proxies().await.unwrap();
    assert_eq!(proxies["p"].toxics[0].name, "latency_downstream");
    assert!(!proxies["off"].enabled);
    let start = tokio::time::Instant::now();
    ping(&mut connect(&proxies["p"]).await).await;
    assert!(start.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn a_config_that_is_wrong_says_what_and_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.json");
    let error = read_config(&file).unwrap_err();
    assert!(matches!(error, ConfigError::Unreadable { .. }), "{error}");
    let unknown = "[{\"name\":\"p\",\n\"toxics\":[{\"type\":\"nope\"}]}]";
    std::fs::write(&file, unknown).unwrap();
    let told = read_config(&file).unwrap_err().to_string();
    assert!(told.contains("config.json"), "{told}");
    assert!(told.contains("invalid toxic type"), "{told}");
    assert!(told.contains("proxy 1"), "{told}");
    std::fs::write(&file, "[{\"name\":\"p\"}]").unwrap();
    let opened = open(Settings {
        proxies: read_config(&file).unwrap(),
        log: LogLevel::Off,
        ..Settings::default()
    });
    let told = opened.await.err().expect("no upstream").to_string();
    assert!(told.contains("missing required field: upstream"), "{told}");
}

#[tokio::test]
async fn metrics_count_bytes_where_they_are_asked_for() {
    let kit = Kit::with(Settings {
        proxy_metrics: true,
        ..Settings::default()
    });
    let kit = kit.await;
    let (echo, proxy, _client) = through_p(&kit).await;
    let text = get(&kit, "/metrics").await.body;
    for what in ["received", "sent"] {
        for stream in Stream::ALL {
            let line = format!(
                "toxiproxy_proxy_{what}_bytes_total{{direction=\"{stream}\",listener=\"{}\",proxy=\"p\",upstream=\"{}\"}} 4\n",
                proxy.listen, echo.address
            );
            assert!(text.contains(&line), "{line} is not in {text}");
        }
    }
    assert!(!text.contains("tokio_alive_tasks"));

    // The counts of a proxy are removed with it, and with the address that it had.
    kit.update(&led_to("127.0.0.1:9")).await;
    let text = get(&kit, "/metrics").await.body;
    assert!(!text.contains(&echo.address), "{text}");
    assert!(text.contains("upstream=\"127.0.0.1:9\""), "{text}");
    let other = [new_proxy("p", "127.0.0.1:7")];
    kit.client.populate(&other).await.unwrap();
    let text = get(&kit, "/metrics").await.body;
    assert!(!text.contains("127.0.0.1:9\""), "{text}");
    kit.client.delete("p").await.unwrap();
    let text = get(&kit, "/metrics").await.body;
    assert!(!text.contains("proxy=\"p\""), "{text}");
    let kit = Kit::with(Settings {
        runtime_metrics: true,
        ..Settings::default()
    });
    let text = get(&kit.await, "/metrics").await.body;
    assert!(text.contains("tokio_alive_tasks") && !text.contains("toxiproxy_proxy"));
}

/// Returns which of the first connections a toxic closes that affects half of them.
async fn victims(seed: u64) -> Vec<bool> {
    let kit = Kit::with(Settings {
        seed: Some(seed),
        ..Settings::default()
    });
    let kit = kit.await;
    let echo = echo("").await;
    let proxy = kit.proxy("p", &echo.address).await;
    let toxic = Toxic {
        toxicity: 0.5,
        ..Toxic::new(Stream::Upstream, ToxicKind::LimitData { bytes: 0 })
    };
    kit.client.add_toxic("p", &toxic).await.unwrap();
    let mut victims = Vec::new();
    for _ in 0..32 {
        let mut client = connect(&proxy).await;
        client.write_all(b"x").await.unwrap();
        let mut byte = [0];
        let read = timeout(SOON, client.read(&mut byte)).await.expect("an end");
        victims.push(read.map_or(true, |read| read == 0));
    }
    victims
}

#[tokio::test]
async fn the_same_seed_has_the_same_victims() {
    let once = victims(7).await;
    assert_eq!(once, victims(7).await);
    assert_ne!(once, victims(8).await);
    assert!(once.contains(&true) && once.contains(&false), "{once:?}");
}
