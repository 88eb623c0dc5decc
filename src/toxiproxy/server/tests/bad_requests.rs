//! Every refusal, in the original's words, as text/plain.

use super::super::refusal::MAX_NAME_BYTES;
use super::api::{ask, get, post};
use super::*;
use crate::toxiproxy::ToxiproxyError;
use reqwest::Method;

const TEXT: &str = "text/plain; charset=utf-8";

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let no_proxy = "{\"error\":\"proxy not found\",\"status\":404}\n";
    let no_toxic = "{\"error\":\"toxic not found\",\"status\":404}\n";
    for (path, body) in [
        ("/proxies/x", no_proxy),
        ("/proxies/x/toxics/t", no_proxy),
        ("/proxies/p/toxics/t", no_toxic),
    ] {
        for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE] {
            let answer = ask(&kit, method, path, "{}").await;
            assert_eq!((answer.status, answer.kind.as_str()), (404, TEXT), "{path}");
            assert_eq!(answer.body, body);
        }
    }
    assert_eq!(get(&kit, "/proxies/x/toxics").await.body, no_proxy);
    assert_eq!(post(&kit, "/proxies/x/toxics", "{}").await.body, no_proxy);
    let nowhere = get(&kit, "/nowhere").await;
    assert_eq!(
        (nowhere.status, nowhere.body.as_str()),
        (404, "404 page not found\n")
    );
    assert_eq!(
        get(&kit, "/metrics").await.status,
        404,
        "no flag, no metrics"
    );
    assert_eq!(ask(&kit, Method::PUT, "/proxies", "").await.status, 405);
}

#[tokio::test]
async fn a_proxy_without_name_or_upstream_and_a_second_one_are_refused() {
    let kit = Kit::new().await;
    for (body, message) in [
        (r#"{}"#, "missing required field: name"),
        (r#"{"upstream":"a:1"}"#, "missing required field: name"),
        (
            r#"{"name":"p","upstream":null}"#,
            "missing required field: upstream",
        ),
        ("", "bad request body: EOF"),
    ] {
        let answer = post(&kit, "/proxies", body).await;
        assert_eq!((answer.status, answer.kind.as_str()), (400, TEXT), "{body}");
        assert_eq!(answer.json()["error"], message);
        assert_eq!(answer.json()["status"], 400);
    }
    for body in [
        "{",
        "[]",
        r#"["p","127.0.0.1:0","127.0.0.1:9"]"#,
        "7",
        r#"{"name":7}"#,
        r#"{"name":"p","enabled":"x"}"#,
    ] {
        let answer = post(&kit, "/proxies", body).await;
        assert_eq!(answer.status, 400, "{body}");
        let error = answer.json()["error"].as_str().expect("text").to_owned();
        assert!(error.starts_with("bad request body: "), "{error}");
    }
    kit.proxy("p", "127.0.0.1:9").await;
    let again = post(&kit, "/proxies", r#"{"name":"p","upstream":"127.0.0.1:9"}"#).await;
    assert_eq!(again.status, 409);
    assert_eq!(
        again.body,
        "{\"error\":\"proxy already exists\",\"status\":409}\n"
    );
}

#[tokio::test]
async fn an_address_that_cannot_be_had_is_an_internal_error() {
    let kit = Kit::new().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let taken = taken.local_addr().unwrap();
    for listen in [
        taken.to_string(),
        "no.such.host.invalid:1".into(),
        "x".into(),
    ] {
        let body = format!(r#"{{"name":"p","listen":"{listen}","upstream":"a:1"}}"#);
        let answer = post(&kit, "/proxies", &body).await;
        assert_eq!(answer.status, 500, "{listen}");
        let error = answer.json()["error"].as_str().expect("text").to_owned();
        assert!(
            error.starts_with(&format!("listen tcp {listen}: ")),
            "{error}"
        );
        assert_eq!(get(&kit, "/proxies").await.body, "{}");
    }
}

#[tokio::test]
async fn toxics_that_make_no_sense_are_refused() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    kit.add(Stream::Upstream, ToxicKind::Noop).await;
    let stream = "stream was invalid, can be either upstream or downstream";
    for (status, body, message) in [
        (400, r#"{"type":"latency","stream":"sideways"}"#, stream),
        (400, r#"{"type":"latency","stream":""}"#, stream),
        (400, r#"{"type":"no_such"}"#, "invalid toxic type"),
        (400, r#"{}"#, "invalid toxic type"),
        (
            409,
            r#"{"type":"noop","stream":"upstream"}"#,
            "toxic already exists",
        ),
        // Names are unique over both streams.
        (
            409,
            r#"{"type":"noop","name":"noop_upstream"}"#,
            "toxic already exists",
        ),
        (400, "", "bad request body: EOF"),
    ] {
        let answer = post(&kit, "/proxies/p/toxics", body).await;
        assert_eq!(
            (answer.status, answer.kind.as_str()),
            (status, TEXT),
            "{body}"
        );
        assert_eq!(answer.json()["error"], message);
    }
    let year = 365 * 24 * 60 * 60 * 1_000_u64;
    for body in [
        r#"{"type":"slicer"}"#.to_owned(),
        r#"{"type":"slicer","attributes":{"average_size":0}}"#.into(),
        r#"{"type":"slicer","attributes":{"average_size":5,"size_variation":6}}"#.into(),
        r#"{"type":"latency","attributes":{"latency":-1}}"#.into(),
        r#"{"type":"latency","attributes":{"latency":1.5}}"#.into(),
        r#"{"type":"latency","attributes":{"jitter":"1"}}"#.into(),
        format!(
            r#"{{"type":"timeout","attributes":{{"timeout":{}}}}}"#,
            year + 1
        ),
        r#"{"type":"bandwidth","attributes":{"rate":9223372036854775807}}"#.into(),
        r#"{"type":"noop","toxicity":1.5}"#.into(),
        r#"{"type":"noop","toxicity":-0.1}"#.into(),
        r#"{"type":"noop","attributes":7}"#.into(),
        r#"{"type":7}"#.into(),
        "{".into(),
    ] {
        let answer = post(&kit, "/proxies/p/toxics", &body).await;
        assert_eq!(answer.status, 400, "{body}");
        let error = answer.json()["error"].as_str().expect("text").to_owned();
        assert!(error.starts_with("bad request body: "), "{error}");
    }
    assert_eq!(kit.client.toxics("p").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_that_makes_no_sense_changes_nothing() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let kind = ToxicKind::Slicer {
        average_size: 5,
        size_variation: 1,
        delay_us: 0,
    };
    let toxic = kit.add(Stream::Downstream, kind).await;
    let path = format!("/proxies/p/toxics/{}", toxic.name);
    for body in [
        r#"{"attributes":{"average_size":0}}"#,
        r#"{"attributes":{"delay":-5},"toxicity":0.5}"#,
        r#"{"attributes":{"delay":5},"toxicity":7}"#,
        "",
    ] {
        assert_eq!(post(&kit, &path, body).await.status, 400, "{body}");
    }
    assert_eq!(kit.client.toxic("p", &toxic.name).await.unwrap(), toxic);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_in_json_as_all_else_is() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(3 << 20));
    for path in ["/proxies", "/proxies/p", "/populate", "/proxies/p/toxics"] {
        let answer = post(&kit, path, &long).await;
        assert_eq!(answer.status, 413, "{path}");
        assert_eq!(answer.json()["status"], 413);
        let error = answer.json()["error"].as_str().expect("text").to_owned();
        assert!(error.starts_with("bad request body: "), "{error}");
    }
}

#[tokio::test]
async fn whatever_can_be_made_can_be_removed_again() {
    let kit = Kit::new().await;
    // Every byte of it is escaped in an address.
    let name = "é".repeat(MAX_NAME_BYTES / 2);
    kit.proxy(&name, "127.0.0.1:9").await;
    let toxic = Toxic {
        name: name.clone(),
        ..Toxic::new(Stream::Upstream, ToxicKind::Noop)
    };
    kit.client.add_toxic(&name, &toxic).await.unwrap();
    kit.client.remove_toxic(&name, &name).await.unwrap();

    let long = name.clone() + "x";
    let error = kit.client.create(&new_proxy(&long, "127.0.0.1:9")).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("(400): bad request body: the name"),
        "{error}"
    );
    let toxic = Toxic {
        name: long,
        ..toxic
    };
    let error = kit.client.add_toxic(&name, &toxic).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    kit.client.delete(&name).await.unwrap();
}

#[tokio::test]
async fn a_browser_is_turned_away() {
    let kit = Kit::new().await;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = http.get(format!("{}/proxies", kit.base));
    let answer = request
        .header("User-Agent", "Mozilla/5.0 (X11)")
        .send()
        .await;
    let answer = answer.unwrap();
    assert_eq!(answer.status().as_u16(), 403);
    assert_eq!(answer.headers()["content-type"], TEXT);
    assert_eq!(answer.text().await.unwrap(), "User agent not allowed\n");
}

#[tokio::test]
async fn errors_of_the_client_name_the_call_and_what_was_said() {
    let kit = Kit::new().await;
    let error = kit.client.proxy("pay/ments").await.unwrap_err();
    assert_eq!(error.status(), Some(404));
    assert_eq!(
        error.to_string(),
        "Toxiproxy refused GET /proxies/pay/ments (404): proxy not found"
    );
    let error = kit.client.create(&new_proxy("p", "")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("POST /proxies of p (400): missing"),
        "{error}"
    );
    for name in ["", ".", ".."] {
        let error = kit.client.delete(name).await.unwrap_err();
        assert!(matches!(error, ToxiproxyError::Name { .. }), "{error}");
    }
    let client = kit.client.clone();
    kit.stop().await;
    let error = client.reset().await.unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("POST /reset") && told.contains("is it running"),
        "{told}"
    );
    for base in ["127.0.0.1:8474", "https://a", "nowhere"] {
        ToxiproxyClient::new(base, SOON).expect_err(base);
    }
}
