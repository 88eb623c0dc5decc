//! Tests every refusal, in the original's words, as text/plain.

use super::super::refusal::MAX_NAME_BYTES;
use super::api::{ask, get, post};
use super::*;
use crate::ToxiproxyError;
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
            answer.is(404, TEXT);
            assert_eq!(answer.body, body);
        }
    }
    assert_eq!(get(&kit, "/proxies/x/toxics").await.body, no_proxy);
    assert_eq!(post(&kit, "/proxies/x/toxics", "{}").await.body, no_proxy);
    let nowhere = get(&kit, "/nowhere").await;
    nowhere.is(404, TEXT);
    assert_eq!(nowhere.body, "404 page not found\n");
    let metrics = get(&kit, "/metrics").await;
    assert_eq!(metrics.status, 404, "no flag, no metrics");
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
        answer.is(400, TEXT);
        assert_eq!(answer.text("error"), message, "{body}");
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
        answer.is_bad_body(400);
    }
    kit.proxy("p", "127.0.0.1:9").await;
    let again = post(&kit, "/proxies", r#"{"name":"p","upstream":"127.0.0.1:9"}"#).await;
    assert_eq!(again.status, 409);
    let exists = "{\"error\":\"proxy already exists\",\"status\":409}\n";
    assert_eq!(again.body, exists);
}

#[tokio::test]
async fn an_address_that_cannot_be_had_is_an_internal_error() {
    let kit = Kit::new().await;
    let (_listens, taken) = listener().await;
    let in_use = format!("listen tcp {taken}: bind: address already in use");
    let by_name = taken.replace("127.0.0.1", "localhost");
    for (listen, message) in [
        (taken.as_str(), in_use.as_str()),
        (&by_name, &in_use),
        (
            "192.0.2.1:1",
            "listen tcp 192.0.2.1:1: bind: cannot assign requested address",
        ),
        (
            "no.such.host.invalid:1",
            "listen tcp: lookup no.such.host.invalid: no such host",
        ),
        ("x", "listen tcp: address x: missing port in address"),
    ] {
        let body = format!(r#"{{"name":"p","listen":"{listen}","upstream":"a:1"}}"#);
        let answer = post(&kit, "/proxies", &body).await;
        assert_eq!(answer.status, 500, "{listen}");
        assert_eq!(answer.text("error"), message);
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
        answer.is(status, TEXT);
        assert_eq!(answer.text("error"), message, "{body}");
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
        answer.is_bad_body(400);
    }
    assert_eq!(kit.client.toxics("p").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_change_that_makes_no_sense_changes_nothing() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let kind = slicer(5, 1, 0);
    let toxic = kit.add(Stream::Downstream, kind).await;
    let path = format!("/proxies/p/toxics/{}", toxic.name);
    for body in [
        r#"{"attributes":{"average_size":0}}"#,
        r#"{"attributes":{"delay":-5},"toxicity":0.5}"#,
        r#"{"attributes":{"delay":5},"toxicity":7}"#,
        // The delay is in microseconds: a year is the most.
        r#"{"attributes":{"delay":31536000000001}}"#,
        "",
    ] {
        assert_eq!(post(&kit, &path, body).await.status, 400, "{body}");
    }
    assert_eq!(kit.client.toxic("p", &toxic.name).await.unwrap(), toxic);
    let a_year = r#"{"attributes":{"delay":31536000000000}}"#;
    assert_eq!(post(&kit, &path, a_year).await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_in_json_as_all_else_is() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let long = format!("{{\"name\":\"{}\"}}", "x".repeat(3 << 20));
    for path in ["/proxies", "/proxies/p", "/populate", "/proxies/p/toxics"] {
        let answer = post(&kit, path, &long).await;
        assert_eq!(answer.json()["status"], 413);
        answer.is_bad_body(413);
    }
}

#[tokio::test]
async fn whatever_can_be_made_can_be_removed_again() {
    let kit = Kit::new().await;
    // Every byte of this name is escaped in an address.
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
    let expected = "(400): bad request body: the name";
    assert!(error.contains(expected), "{error}");
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
    let request = request.header("User-Agent", "Mozilla/5.0 (X11)");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 403);
    assert_eq!(answer.headers()["content-type"], TEXT);
    assert_eq!(answer.text().await.unwrap(), "User agent not allowed\n");
}

#[tokio::test]
async fn errors_of_the_client_name_the_call_and_what_was_said() {
    let kit = Kit::new().await;
    let error = kit.client.proxy("pay/ments").await.unwrap_err();
    assert_eq!(error.status(), Some(404));
    let expected = "Toxiproxy refused GET /proxies/pay/ments (404): proxy not found";
    assert_eq!(error.to_string(), expected);
    let error = kit.client.create(&new_proxy("p", "")).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("POST /proxies of p (400): missing"),
        "{error}"
    );
    for name in ["", ".", ".."] {
        let error = kit.client.delete(name).await.unwrap_err();
        assert!(matches!(error, ToxiproxyError::Name { .. }), "{error}");
    }
    let client = kit.client.clone();
    kit.stop().await;
    let told = client.reset().await.unwrap_err().to_string();
    assert!(told.contains("POST /reset"), "{told}");
    assert!(told.contains("is it running"), "{told}");
    for base in ["127.0.0.1:8474", "https://a", "nowhere"] {
        ToxiproxyClient::new(base, SOON).expect_err(base);
    }
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let kit = Kit::new().await;
    let address = kit.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.expect("a server");
    let headers = "x: y\r\n".repeat(bounded_io::serve::MAX_HEADERS + 1);
    let request = format!("GET /version HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = [0; 12];
    let read = timeout(SOON, stream.read_exact(&mut answer)).await;
    read.expect("an answer soon").expect("an answer");
    assert_eq!(&answer, b"HTTP/1.1 431");
    kit.stop().await;
}
