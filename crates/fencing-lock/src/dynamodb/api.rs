use super::failure::Failure;
use super::sigv4::{self, Scope};
use super::{DynamoDbSettings, record};
use crate::address::http_server;
use crate::http::Http;
use crate::{Env, LockProblem};
use http_body_util::Full;
use hyper::{Method, Request, StatusCode};
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// The requests of DynamoDB, by its JSON protocol. Every one is signed.
pub struct DynamoDbApi {
    http: Http,
    node: String,
    settings: DynamoDbSettings,
    /// Held by the task that creates the table.
    creating: Mutex<()>,
}

const TABLES: &str = "DynamoDB_20120810";
#[cfg(feature = "servers")]
const STREAMS: &str = "DynamoDBStreams_20120810";

/// An unanswered request is sent so often, each time the same.
const SENDS_MAX: u32 = 3;
const PAUSE_MS: RangeInclusive<u32> = 10..=50;
/// A new table takes some seconds.
const CREATED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_AGAIN_MS: RangeInclusive<u32> = 100..=300;

impl DynamoDbApi {
    /// Takes `host:port` or `http://host:port`, and connects at the first request.
    pub fn new(
        address: &str,
        settings: DynamoDbSettings,
        env: Env,
    ) -> Result<DynamoDbApi, LockProblem> {
        let server = http_server(address, None)?;
        let node = address
            .strip_prefix("http://")
            .unwrap_or(address)
            .to_owned();
        Ok(DynamoDbApi {
            http: Http::new(server, settings.connect_timeout, env),
            node,
            settings,
            creating: Mutex::default(),
        })
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn env(&self) -> &Env {
        &self.http.env
    }

    pub(super) fn requests(&self) -> Counter {
        self.http.requests.clone()
    }

    pub(super) fn table(&self) -> &str {
        &self.settings.table
    }

    /// Sends one request about tables, and returns its answer.
    #[cfg(feature = "servers")]
    pub async fn ask(&self, operation: &str, request: &Value) -> Result<Value, LockProblem> {
        Ok(self.send(TABLES, operation, request).await?)
    }

    /// Sends one request about the streams of tables.
    #[cfg(feature = "servers")]
    pub async fn ask_streams(
        &self,
        operation: &str,
        request: &Value,
    ) -> Result<Value, LockProblem> {
        Ok(self.send(STREAMS, operation, request).await?)
    }

    /// Sends a request until it is answered and not throttled, three times at most and not
    /// after `until`. So it has to be one that can be carried out twice, and late: each send
    /// is made anew. If the table is missing, it is created.
    pub(super) async fn insist(
        &self,
        operation: &str,
        request: impl Fn() -> Value,
        until: Option<Instant>,
    ) -> Result<Value, Failure> {
        let mut failed: Option<Failure> = None;
        for _send in 0..SENDS_MAX {
            let mut answer = self.send(TABLES, operation, &request()).await;
            if let Err(Failure::NoTable(_)) = answer {
                answer = match self.create_table().await {
                    Ok(()) => self.send(TABLES, operation, &request()).await,
                    Err(failure) => Err(failure),
                };
            }
            match answer {
                Ok(answer) => return Ok(answer),
                Err(Failure::Condition { item, .. }) => {
                    let sent_before = failed.as_ref().is_some_and(Failure::may_have_happened);
                    return Err(Failure::Condition { item, sent_before });
                }
                Err(failure) => {
                    // Whoever talks nonsense does not stop to.
                    let is_worth_it = matches!(
                        failure,
                        Failure::Throttled(_) | Failure::Problem(LockProblem::NoAnswer(_))
                    );
                    // An earlier one may still have been carried out.
                    let unclear = failed.filter(Failure::may_have_happened);
                    let failure = unclear.unwrap_or(failure);
                    if !is_worth_it {
                        return Err(failure);
                    }
                    failed = Some(failure);
                }
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            self.pause(PAUSE_MS).await;
        }
        Err(failed.unwrap_or_else(|| LockProblem::NoAnswer("nothing was sent".to_owned()).into()))
    }

    async fn send(&self, api: &str, operation: &str, body: &Value) -> Result<Value, Failure> {
        let body = body.to_string();
        let target = format!("{api}.{operation}");
        let at = sigv4::timestamp(self.env().wall_clock());
        let mut headers = vec![
            ("content-type", "application/x-amz-json-1.0"),
            ("host", self.node.as_str()),
            ("x-amz-date", at.as_str()),
        ];
        let credentials = &self.settings.credentials;
        if let Some(token) = &credentials.session_token {
            headers.push(("x-amz-security-token", token));
        }
        headers.push(("x-amz-target", &target));
        let scope = Scope {
            region: &self.settings.region,
            service: "dynamodb",
            at: &at,
        };
        let authorization =
            sigv4::authorization(credentials, &scope, "POST", &headers, body.as_bytes());
        let mut request = Request::builder().method(Method::POST).uri("/");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let request = request.header("authorization", authorization);
        let request = request.body(Full::from(body)).map_err(|error| {
            // A region or a key with a line break in it cannot be sent.
            LockProblem::Refused(format!("a setting cannot be sent: {error}"))
        })?;
        let limit = self.settings.response_timeout;
        let answer = self.http.send(request, limit).await?;
        if answer.status() != StatusCode::OK {
            return Err(Failure::of(answer.status(), answer.body()));
        }
        let strange = |error: serde_json::Error| LockProblem::BadAnswer(error.to_string());
        Ok(serde_json::from_slice(answer.body()).map_err(strange)?)
    }

    /// Creates the table, and returns when it can be used.
    async fn create_table(&self) -> Result<(), Failure> {
        let _alone = self.creating.lock().await;
        let table = self.table();
        let create = record::new_table(table);
        match self.send(TABLES, "CreateTable", &create).await {
            Ok(_) | Err(Failure::TableInUse(_)) => {}
            Err(Failure::Problem(LockProblem::Refused(words))) => {
                let (table, key) = (self.table(), record::KEY);
                return Err(LockProblem::Refused(format!(
                    "the table {table} is not there, and cannot be created: {words}; create it with \
                     the partition key {key}, a string"
                ))
                .into());
            }
            Err(failure) => return Err(failure),
        }
        let give_up_at = Instant::now() + CREATED_WITHIN;
        loop {
            let request = json!({ "TableName": table });
            let described = self.send(TABLES, "DescribeTable", &request).await;
            match described {
                Ok(described) if described["Table"]["TableStatus"] == "ACTIVE" => return Ok(()),
                Ok(_) | Err(Failure::NoTable(_)) if Instant::now() < give_up_at => {}
                Ok(_) => {
                    let words = format!("the table {table} was created and is not active yet");
                    return Err(LockProblem::Refused(words).into());
                }
                Err(failure) => return Err(failure),
            }
            self.pause(LOOK_AGAIN_MS).await;
        }
    }

    pub(super) async fn pause(&self, within_ms: RangeInclusive<u32>) {
        let pause_ms = self.env().draw(within_ms);
        sleep(Duration::from_millis(pause_ms.into())).await;
    }
}
