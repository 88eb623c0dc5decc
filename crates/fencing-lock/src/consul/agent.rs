use super::ConsulSettings;
use super::failure::refusal;
use crate::address::http_server;
use crate::http::Http;
use crate::{Env, LockProblem};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, StatusCode};
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use std::time::Duration;

/// The HTTP interface of one agent of Consul, which passes everything on to the leader.
pub struct Agent {
    http: Http,
    node: String,
    settings: ConsulSettings,
}

/// What a server answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The state that the answer is about, for a query that waits for the next one.
    pub(super) index: u64,
    pub(super) body: Bytes,
}

const DEFAULT_PORT: u16 = 8500;

impl Agent {
    /// Reads `host:port`, or `http://host:port`. It does not connect before the first use.
    pub fn at(address: &str, settings: ConsulSettings, env: Env) -> Result<Agent, LockProblem> {
        let (host, port) = http_server(address, Some(DEFAULT_PORT))?;
        if let Some(token) = &settings.acl_token
            && HeaderValue::from_str(token).is_err()
        {
            let why = "the ACL token has a character that cannot be sent".to_owned();
            return Err(LockProblem::Refused(why));
        }
        Ok(Agent {
            node: match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
            http: Http::new((host, port), settings.connect_timeout, env),
            settings,
        })
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn env(&self) -> &Env {
        &self.http.env
    }

    pub(super) fn settings(&self) -> &ConsulSettings {
        &self.settings
    }

    pub(super) fn requests(&self) -> &Counter {
        &self.http.requests
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Answer, LockProblem> {
        let body = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let limit = self.settings.response_timeout;
        self.ask(Method::PUT, path, body, limit).await
    }

    /// Asks for something that the server may put off for up to `waits`.
    pub(super) async fn get(&self, path: &str, waits: Duration) -> Result<Answer, LockProblem> {
        // The server adds up to a sixteenth, so that not everybody asks again at once.
        let limit = waits + waits / 16 + self.settings.response_timeout;
        self.ask(Method::GET, path, Bytes::new(), limit).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        limit: Duration,
    ) -> Result<Answer, LockProblem> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, &self.node);
        if let Some(token) = &self.settings.acl_token {
            request = request.header("X-Consul-Token", token);
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| LockProblem::Refused(error.to_string()))?;
        let answer = self.http.send(request, limit).await?;
        let index = answer.headers().get("X-Consul-Index");
        let index = index.and_then(|index| index.to_str().ok()?.parse().ok());
        Ok(Answer {
            status: answer.status(),
            index: index.unwrap_or(0),
            body: answer.into_body(),
        })
    }
}

impl Answer {
    /// Returns the body, or why the request was refused.
    pub(super) fn json(&self) -> Result<Value, LockProblem> {
        match self.status.is_success() {
            true => self.any_json(),
            false => Err(refusal(self.status, &self.body)),
        }
    }

    /// Returns the body whatever the status says.
    pub(super) fn any_json(&self) -> Result<Value, LockProblem> {
        serde_json::from_slice(&self.body)
            .map_err(|error| LockProblem::BadAnswer(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Result<Agent, LockProblem> {
        Agent::at(address, ConsulSettings::default(), Env::default())
    }

    #[test]
    fn an_address_is_a_host_with_its_port() {
        for (address, node) in [
            ("127.0.0.1:6", "127.0.0.1:6"),
            ("consul", "consul:8500"),
            ("http://consul:7", "consul:7"),
            ("http://consul:7/", "consul:7"),
            ("[::1]:6", "[::1]:6"),
        ] {
            assert_eq!(at(address).ok().unwrap().node(), node);
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_password() {
        for address in [
            "",
            "not an address",
            "h:x",
            "h:",
            "h:1:2",
            "redis://h:1",
            "http://h:1/path",
            "http://me:s3cret@h:1",
        ] {
            let refused = at(address).err().expect(address);
            assert!(matches!(refused, LockProblem::BadAddress { .. }));
            assert!(!refused.to_string().contains("s3cret"), "{refused}");
        }
    }
}
