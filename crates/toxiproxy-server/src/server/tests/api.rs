//! Tests every route as its clients see it: status, type and body.

use super::*;
use reqwest::Method;
use serde_json::{Value, json};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub kind: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub fn text(&self, field: &str) -> String {
        self.json()[field].as_str().expect("text").to_owned()
    }

    #[track_caller]
    pub fn is(&self, status: u16, kind: &str) {
        assert_eq!(
            (self.status, self.kind.as_str()),
            (status, kind),
            "{self:?}"
        );
    }

    /// Asserts that the answer calls the body bad.
    #[track_caller]
    pub fn is_bad_body(&self, status: u16) {
        assert_eq!(self.status, status, "{self:?}");
        assert!(
            self.text("error").starts_with("bad request body: "),
            "{self:?}"
        );
    }
}

pub async fn ask(kit: &Kit, method: Method, path: &str, body: &str) -> Answer {
    let http = reqwest::Client::builder().no_proxy().build();
    let url = format!("{}{path}", kit.base);
    let request = http.expect("a client").request(method, url);
    let request = request.body(body.to_owned()).timeout(SOON);
    let response = request.send().await.expect("an answer");
    let kind = response.headers().get("content-type");
    let kind = kind.map(|kind| kind.to_str().expect("text").to_owned());
    Answer {
        status: response.status().as_u16(),
        kind: kind.unwrap_or_default(),
        body: response.text().await.expect("a body"),
    }
}

pub async fn get(kit: &Kit, path: &str) -> Answer {
    ask(kit, Method::GET, path, "").await
}

pub async fn post(kit: &Kit, path: &str, body: &str) -> Answer {
    ask(kit, Method::POST, path, body).await
}

#[tokio::test]
async fn the_version_is_the_one_it_stands_in_for() {
    let kit = Kit::new().await;
    let answer = get(&kit, "/version").await;
    assert_eq!(answer.body, "{\"version\": \"2.13.0\"}\n");
    assert_eq!(answer.kind, "application/json;charset=utf-8");
    assert_eq!(kit.client.version().await.unwrap(), "2.13.0");
}

#[tokio::test]
async fn a_proxy_is_made_shown_and_deleted() {
    let kit = Kit::new().await;
    assert_eq!(get(&kit, "/proxies").await.body, "{}");
    let new = r#"{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:9"}"#;
    let made = post(&kit, "/proxies", new).await;
    made.is(201, "application/json");
    let listen = made.text("listen");
    assert!(listen.starts_with("127.0.0.1:") && !listen.ends_with(":0"));
    let shown = format!(
        r#"{{"name":"p","listen":"{listen}","upstream":"127.0.0.1:9","enabled":true,"Logger":{{}},"toxics":[]}}"#
    );
    assert_eq!(made.body, shown);
    assert_eq!(get(&kit, "/proxies/p").await.body, shown);
    let all = get(&kit, "/proxies").await.body;
    assert_eq!(all, format!("{{\"p\":{shown}}}"));
    let deleted = ask(&kit, Method::DELETE, "/proxies/p", "").await;
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""));
    assert_eq!(get(&kit, "/proxies/p").await.status, 404);
    TcpStream::connect(listen).await.expect_err("it is closed");
}

#[tokio::test]
async fn without_a_listen_address_it_is_any_port_everywhere() {
    let kit = Kit::new().await;
    let made = post(&kit, "/proxies", r#"{"name":"p","upstream":"127.0.0.1:9"}"#).await;
    let listen = made.text("listen");
    let port = listen.strip_prefix("[::]:").expect("every address");
    let connected = TcpStream::connect(format!("127.0.0.1:{port}")).await;
    connected.expect("IPv4 too");
}

#[tokio::test]
async fn every_ipv4_address_is_every_address_as_in_go() {
    let kit = Kit::new().await;
    let new = r#"{"name":"p","listen":"0.0.0.0:0","upstream":"127.0.0.1:9"}"#;
    let listen = post(&kit, "/proxies", new).await.text("listen");
    let port = listen.strip_prefix("[::]:").expect("every address");
    for host in ["127.0.0.1", "[::1]"] {
        let connected = TcpStream::connect(format!("{host}:{port}")).await;
        connected.unwrap_or_else(|error| panic!("{host}: {error}"));
    }
}

#[tokio::test]
async fn a_client_in_pascal_case_is_understood() {
    let kit = Kit::new().await;
    let (_echo, proxy, _client) = through_p(&kit).await;
    let new = r#"{"Name":"q","Listen":"127.0.0.1:0","Upstream":"127.0.0.1:9","Enabled":true}"#;
    assert_eq!(post(&kit, "/proxies", new).await.status, 201);
    let populated = format!("[{}]", new.replace("\"q\"", "\"r\""));
    assert_eq!(post(&kit, "/populate", &populated).await.status, 201);
    let disabled = post(&kit, "/proxies/p", r#"{"Enabled":false}"#).await;
    assert_eq!(disabled.json()["enabled"], false);
    TcpStream::connect(&proxy.listen)
        .await
        .expect_err("it is closed");

    let toxic = r#"{"Name":null,"Type":"latency","Stream":"UpStream","Attributes":{"Latency":7}}"#;
    let added = post(&kit, "/proxies/p/toxics", toxic).await;
    let shown = added.json();
    assert_eq!(
        (&shown["name"], &shown["stream"]),
        (&json!("latency_UpStream"), &json!("upstream"))
    );
    assert_eq!(shown["attributes"]["latency"], 7);
    let change = r#"{"Attributes":{"Latency":900,"Jitter":null},"Toxicity":0.5}"#;
    let changed = post(&kit, "/proxies/p/toxics/latency_UpStream", change)
        .await
        .json();
    assert_eq!(changed["attributes"], json!({"latency": 900, "jitter": 0}));
    assert_eq!(changed["toxicity"], 0.5);
}

#[tokio::test]
async fn each_answer_has_another_request_id() {
    let kit = Kit::new().await;
    let mut ids = Vec::new();
    for path in ["version", "proxies", "proxies/none"] {
        let response = reqwest::get(format!("{}/{path}", kit.base)).await.unwrap();
        let id = response.headers()["x-toxiproxy-request-id"].clone();
        assert_eq!(id.len(), 20, "{id:?}");
        ids.push(id);
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2], "{ids:?}");
}

#[tokio::test]
async fn with_a_token_set_every_request_has_to_bring_it() {
    let kit = Kit::with(Settings {
        auth_token: Some("secret".into()),
        proxy_metrics: true,
        ..Settings::default()
    });
    let kit = kit.await;
    for path in ["/version", "/proxies", "/metrics"] {
        let refused = get(&kit, path).await;
        refused.is(401, "text/plain; charset=utf-8");
        let said = "{\"error\":\"missing or invalid auth token\",\"status\":401}\n";
        assert_eq!(refused.body, said);
    }
    let client = |token| kit.client.clone().with_auth_token(token).expect("a header");
    for wrong in ["", "secre", "secret2", "Secret"] {
        let refused = client(wrong).version().await.unwrap_err();
        assert_eq!(refused.status(), Some(401), "{wrong:?}");
    }
    assert_eq!(client("secret").version().await.unwrap(), "2.13.0");
    let asked = reqwest::get(format!("{}/version", kit.base)).await.unwrap();
    assert_eq!(asked.headers()["www-authenticate"], "Bearer");
    let shown = format!("{:?}", client("secret"));
    assert!(!shown.contains("secret"), "{shown}");
    kit.client
        .clone()
        .with_auth_token("a\nb")
        .expect_err("no header");
}

#[tokio::test]
async fn a_disabled_proxy_is_made_without_listening() {
    let kit = Kit::new().await;
    let new = NewProxy {
        enabled: false,
        listen: "localhost:0".into(),
        ..new_proxy("p", "127.0.0.1:9")
    };
    let proxy = kit.client.create(&new).await.unwrap();
    assert!(!proxy.enabled);
    assert_eq!(proxy.listen, "localhost:0");
    let proxy = kit.update(&enabled(true)).await;
    assert!(proxy.enabled && proxy.listen.starts_with("127.0.0.1:"));
    connect(&proxy).await;
}

#[tokio::test]
async fn an_update_keeps_what_it_does_not_name_and_takes_patch_as_well() {
    let kit = Kit::new().await;
    let made = kit.proxy("p", "127.0.0.1:9").await;
    for method in [Method::POST, Method::PATCH] {
        let body = r#"{"name":"another","enabled":null}"#;
        let same = ask(&kit, method.clone(), "/proxies/p", body).await;
        assert_eq!(same.status, 200);
        let same: Proxy = serde_json::from_str(&same.body).unwrap();
        assert_eq!(same, made);
        let toxic = post(&kit, "/proxies/p/toxics", r#"{"type":"latency"}"#).await;
        assert_eq!(toxic.status, 200);
        let path = "/proxies/p/toxics/latency_downstream";
        let body = r#"{"attributes":{"jitter":3},"type":"noop","stream":"upstream","name":"x"}"#;
        let changed = ask(&kit, method, path, body).await;
        assert_eq!(changed.status, 200);
        let attributes = json!({"latency": 0, "jitter": 3});
        assert_eq!(changed.json()["attributes"], attributes);
        assert_eq!(changed.json()["stream"], "downstream");
        assert_eq!(ask(&kit, Method::DELETE, path, "").await.status, 204);
    }
}

#[tokio::test]
async fn toxics_have_defaults_and_are_listed_upstream_first() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let added = post(&kit, "/proxies/p/toxics", r#"{"type":"latency","more":1}"#).await;
    added.is(200, "application/json");
    let expected = r#"{"attributes":{"jitter":0,"latency":0},"name":"latency_downstream","type":"latency","stream":"downstream","toxicity":1}"#;
    assert_eq!(added.body, expected);
    let up = r#"{"type":"bandwidth","stream":"upstream","toxicity":0.25,"name":"slow","attributes":{"rate":7,"other":1}}"#;
    post(&kit, "/proxies/p/toxics", up).await;
    let listed = get(&kit, "/proxies/p/toxics").await.json();
    let names = listed.as_array().expect("an array").iter();
    let names: Vec<&Value> = names.map(|toxic| &toxic["name"]).collect();
    assert_eq!(names, ["slow", "latency_downstream"]);
    let slow = kit.client.toxic("p", "slow").await.unwrap();
    assert_eq!(slow.kind, bandwidth(7));
    assert_eq!(slow.toxicity, 0.25);
    let proxy = kit.client.proxy("p").await.unwrap();
    assert_eq!(proxy.toxics, kit.client.toxics("p").await.unwrap());
    assert_eq!(proxy.toxics.len(), 2);
}

#[tokio::test]
async fn a_changed_toxic_merges_attributes_and_sets_toxicity() {
    let kit = Kit::new().await;
    kit.proxy("p", "127.0.0.1:9").await;
    let kind = latency(5, 1);
    let toxic = kit.add(Stream::Upstream, kind).await;
    let body = r#"{"attributes":{"latency":9},"toxicity":0.5}"#;
    let path = format!("/proxies/p/toxics/{}", toxic.name);
    post(&kit, &path, body).await;
    let changed = kit.client.toxic("p", &toxic.name).await.unwrap();
    let kind = latency(9, 1);
    assert_eq!((changed.kind, changed.toxicity), (kind, 0.5));
    let (kind_stays, toxicity) = (None, Some(1.0));
    let change = ToxicChange {
        kind: kind_stays,
        toxicity,
    };
    let changed = kit.client.update_toxic("p", &toxic.name, &change).await;
    let changed = changed.unwrap();
    assert_eq!((changed.kind, changed.toxicity), (kind, 1.0));
}

#[tokio::test]
async fn names_with_odd_characters_are_names_like_others() {
    let kit = Kit::new().await;
    for name in ["a/b", "ä ö", "50%", "a?b#c", "..."] {
        kit.proxy(name, "127.0.0.1:9").await;
        let toxic = Toxic {
            name: name.into(),
            ..Toxic::new(Stream::Upstream, ToxicKind::Noop)
        };
        kit.client.add_toxic(name, &toxic).await.unwrap();
        assert_eq!(kit.client.toxic(name, name).await.unwrap(), toxic);
        kit.client.remove_toxic(name, name).await.unwrap();
        assert_eq!(kit.client.proxy(name).await.unwrap().name, name);
        kit.client.delete(name).await.unwrap();
    }
    assert!(kit.client.proxies().await.unwrap().is_empty());
}
