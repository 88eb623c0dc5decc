//! The harness's client for a Toxiproxy, our own or the original.

use super::error::{ToxiproxyError, with_causes};
use super::proxy::{NewProxy, Proxy, ProxyChange};
use super::toxic::{Toxic, ToxicChange};
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::{Client, Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// The limit for the list of all proxies with their toxics.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

type Answer<T> = Result<T, ToxiproxyError>;

#[derive(Clone, Debug)]
pub struct ToxiproxyClient {
    http: Client,
    base: Url,
    /// Sensitive, so that it is not shown.
    authorization: Option<HeaderValue>,
}

impl ToxiproxyClient {
    /// Makes a client. `deadline` bounds each call.
    pub fn new(base: &str, deadline: Duration) -> Answer<ToxiproxyClient> {
        let address = |reason: String| ToxiproxyError::Address {
            base: base.to_owned(),
            reason,
        };
        let url = Url::parse(base).map_err(|error| address(error.to_string()))?;
        if url.scheme() != "http" {
            return Err(address("it must start with http://".into()));
        }
        let http = Client::builder()
            // The server is in our own network; another proxy would add its own faults.
            .no_proxy()
            .tcp_nodelay(true)
            .timeout(deadline)
            // The original refuses user agents that look like a browser.
            .user_agent(concat!("fencepost/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| address(with_causes(&error)))?;
        Ok(ToxiproxyClient {
            http,
            base: url,
            authorization: None,
        })
    }

    /// Sends this token with each call: that of the server's `TOXIPROXY_AUTH_TOKEN`.
    pub fn with_auth_token(mut self, token: &str) -> Answer<ToxiproxyClient> {
        let value = HeaderValue::try_from(format!("Bearer {token}"));
        let mut value = value.map_err(|_| ToxiproxyError::Token)?;
        value.set_sensitive(true);
        self.authorization = Some(value);
        Ok(self)
    }

    pub async fn version(&self) -> Answer<String> {
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let answer: Version = self.get(&["version"]).await?;
        Ok(answer.version)
    }

    pub async fn proxies(&self) -> Answer<BTreeMap<String, Proxy>> {
        self.get(&["proxies"]).await
    }

    pub async fn proxy(&self, name: &str) -> Answer<Proxy> {
        self.get(&["proxies", name]).await
    }

    pub async fn create(&self, proxy: &NewProxy) -> Answer<Proxy> {
        let call = self.call(Method::POST, &["proxies"])?.about(&proxy.name);
        self.ask(call, Some(proxy)).await
    }

    /// Creates the proxies that differ from the existing ones, and leaves the others
    /// alone.
    pub async fn populate(&self, proxies: &[NewProxy]) -> Answer<Vec<Proxy>> {
        #[derive(Deserialize)]
        struct Populated {
            // The original says null for none.
            proxies: Option<Vec<Proxy>>,
        }
        let names: Vec<&str> = proxies.iter().map(|proxy| proxy.name.as_str()).collect();
        let call = self.call(Method::POST, &["populate"])?;
        let call = call.about(names.join(", "));
        let answer: Populated = self.ask(call, Some(proxies)).await?;
        Ok(answer.proxies.unwrap_or_default())
    }

    pub async fn update(&self, name: &str, change: &ProxyChange) -> Answer<Proxy> {
        self.post(&["proxies", name], change).await
    }

    pub async fn delete(&self, name: &str) -> Answer<()> {
        self.remove(&["proxies", name]).await
    }

    pub async fn toxics(&self, proxy: &str) -> Answer<Vec<Toxic>> {
        self.get(&["proxies", proxy, "toxics"]).await
    }

    pub async fn toxic(&self, proxy: &str, name: &str) -> Answer<Toxic> {
        self.get(&["proxies", proxy, "toxics", name]).await
    }

    pub async fn add_toxic(&self, proxy: &str, toxic: &Toxic) -> Answer<Toxic> {
        let call = self.call(Method::POST, &["proxies", proxy, "toxics"])?;
        self.ask(call.about(&toxic.name), Some(toxic)).await
    }

    pub async fn update_toxic(
        &self,
        proxy: &str,
        name: &str,
        change: &ToxicChange,
    ) -> Answer<Toxic> {
        self.post(&["proxies", proxy, "toxics", name], change).await
    }

    pub async fn remove_toxic(&self, proxy: &str, name: &str) -> Answer<()> {
        self.remove(&["proxies", proxy, "toxics", name]).await
    }

    /// Enables every proxy and removes every toxic.
    pub async fn reset(&self) -> Answer<()> {
        let call = self.call(Method::POST, &["reset"])?;
        self.send(&call, None::<&()>).await.map(drop)
    }

    async fn get<T: DeserializeOwned>(&self, path: &[&str]) -> Answer<T> {
        let call = self.call(Method::GET, path)?;
        self.ask(call, None::<&()>).await
    }

    /// Sends a change by POST: the original knows PATCH only since 2.5, and POST in every
    /// version.
    async fn post<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Answer<T> {
        self.ask(self.call(Method::POST, path)?, Some(body)).await
    }

    async fn remove(&self, path: &[&str]) -> Answer<()> {
        let call = self.call(Method::DELETE, path)?;
        self.send(&call, None::<&()>).await.map(drop)
    }

    fn call(&self, method: Method, path: &[&str]) -> Answer<Call> {
        let shown = format!("{method} /{}", path.join("/"));
        let mut url = self.base.clone();
        // A path cannot contain these, encoded or not: it would be another path.
        if let Some(&name) = path.iter().find(|name| ["", ".", ".."].contains(*name)) {
            let name = name.to_owned();
            return Err(ToxiproxyError::Name { call: shown, name });
        }
        // Only addresses such as mailto: have no path, and `new` accepts none of them.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        Ok(Call { method, url, shown })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        call: Call,
        body: Option<&(impl Serialize + ?Sized)>,
    ) -> Answer<T> {
        let text = self.send(&call, body).await?;
        serde_json::from_str(&text)
            .map_err(|error| self.no_answer(&call, format!("{error} in {}", text.trim_end())))
    }

    fn no_answer(&self, call: &Call, reason: String) -> ToxiproxyError {
        ToxiproxyError::NoAnswer {
            call: call.shown.clone(),
            base: self.base.to_string(),
            reason,
        }
    }

    /// Returns the body of the answer.
    async fn send<B: Serialize + ?Sized>(&self, call: &Call, body: Option<&B>) -> Answer<String> {
        let mut request = self.http.request(call.method.clone(), call.url.clone());
        if let Some(body) = body {
            request = request.json(body);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let sent = request.send().await;
        let response = sent.map_err(|error| self.no_answer(call, with_causes(&error)))?;
        let status = response.status();
        let body = bounded_io::body(response, MAX_ANSWER_BYTES).await;
        let body = body.map_err(|error| self.no_answer(call, with_causes(&error)))?;
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() {
            return Ok(text);
        }
        Err(refused(call.shown.clone(), status, text))
    }
}

/// One request, with its name in errors.
struct Call {
    method: Method,
    url: Url,
    shown: String,
}

impl Call {
    /// Adds a name that is in the body and not in the path.
    fn about(mut self, name: impl fmt::Display) -> Call {
        self.shown = format!("{} of {name}", self.shown);
        self
    }
}

fn refused(call: String, status: StatusCode, text: String) -> ToxiproxyError {
    #[derive(Deserialize)]
    struct Said {
        error: String,
    }
    let said: Result<Said, _> = serde_json::from_str(&text);
    ToxiproxyError::Refused {
        call,
        status: status.as_u16(),
        message: said.map_or_else(|_| text.trim_end().to_owned(), |said| said.error),
    }
}
