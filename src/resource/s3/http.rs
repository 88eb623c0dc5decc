//! The requests of S3: which one it is, who sends it, and the routes of our own below `/-/`.

use super::super::commit::Committer;
use super::super::http as resource;
use super::super::metrics::{self, Metrics};
use super::super::reply::Refusal as LogRefusal;
use super::auth::{self, Signed};
use super::canonical;
use super::reply::{Refusal, refuse, xml};
use super::store::{Change, Found, Question, Store};
use super::{Action, Config, bucket_problem, listing, objects};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct App {
    pub committer: Committer<Store>,
    pub metrics: Arc<Metrics>,
    pub log_path: PathBuf,
    pub config: Config,
}

/// The head of a request whose signature is right.
pub(super) struct Asked {
    pub parts: Parts,
    pub parameters: Vec<(String, String)>,
    pub signed: Signed,
    pub bucket: String,
    pub key: String,
}

impl Asked {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let found = parameters.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }
}

pub(super) fn router(app: App) -> Router {
    Router::new()
        .route("/-/log", get(log))
        .route("/-/metrics", get(show_metrics))
        .route("/-/healthz", get(|| async { "ok\n" }))
        .fallback(handle)
        .with_state(Arc::new(app))
}

async fn log(
    State(app): State<Arc<App>>,
    query: Result<Query<resource::LogQuery>, QueryRejection>,
) -> Result<Response, LogRefusal> {
    resource::log_of(&app.committer, &app.log_path, query).await
}

async fn show_metrics(State(app): State<Arc<App>>) -> Response {
    let text = app.metrics.encode().unwrap_or_default();
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let _under_way = app.committer.announce();
    match asked(&app, parts) {
        Ok(asked) => answer(&app, asked, body).await,
        Err(refusal) => Err(refusal),
    }
    .unwrap_or_else(IntoResponse::into_response)
}

fn asked(app: &App, parts: Parts) -> Result<Asked, Refusal> {
    let bad = || {
        refuse(
            400,
            "InvalidURI",
            "the address is not UTF-8 once its %XX are decoded",
        )
    };
    let path = canonical::decode(parts.uri.path()).ok_or_else(bad)?;
    let parameters = canonical::parameters(parts.uri.query().unwrap_or_default());
    let parameters = parameters.ok_or_else(bad)?;
    let signed = auth::verify(&parts, &path, &parameters, &app.config.credentials)?;
    let names = path.trim_start_matches('/');
    let (bucket, key) = names.split_once('/').unwrap_or((names, ""));
    let (bucket, key) = (bucket.to_owned(), key.to_owned());
    Ok(Asked {
        parts,
        parameters,
        signed,
        bucket,
        key,
    })
}

/// Parameters that ask for something that is not offered, on a bucket or an object.
const NOT_OFFERED: [&str; 12] = [
    "acl",
    "cors",
    "lifecycle",
    "object-lock",
    "partNumber",
    "policy",
    "retention",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versions",
];

async fn answer(app: &App, asked: Asked, body: Body) -> Result<Response, Refusal> {
    let not_offered = || {
        let message = "the S3 of fencepost reads, writes, deletes and lists objects of up to 64 KiB in one piece, and nothing else";
        refuse(501, "NotImplemented", message)
    };
    let is_copy = asked.parts.headers.contains_key("x-amz-copy-source");
    if is_copy
        || NOT_OFFERED
            .iter()
            .any(|name| asked.parameter(name).is_some())
    {
        return Err(not_offered());
    }
    let method = asked.parts.method.clone();
    if asked.bucket.is_empty() {
        return match method {
            Method::GET => listing::buckets(app).await,
            _ => Err(not_offered()),
        };
    }
    if asked.key.is_empty() {
        return match method {
            Method::PUT => change_bucket(app, &asked, Action::MakeBucket).await,
            Method::DELETE => change_bucket(app, &asked, Action::RemoveBucket).await,
            Method::HEAD => known_bucket(app, &asked, "").await,
            Method::GET if asked.parameter("location").is_some() => {
                known_bucket(app, &asked, "<LocationConstraint/>").await
            }
            Method::GET if asked.parameter("versioning").is_some() => {
                let enabled =
                    "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
                known_bucket(app, &asked, enabled).await
            }
            Method::GET => listing::objects(app, &asked).await,
            Method::POST if asked.parameter("delete").is_some() => {
                objects::delete_many(app, &asked, body).await
            }
            _ => Err(not_offered()),
        };
    }
    match method {
        Method::GET | Method::HEAD => objects::read(app, &asked).await,
        Method::PUT => objects::put(app, asked, body).await,
        Method::DELETE => objects::delete(app, &asked).await,
        _ => Err(not_offered()),
    }
}

async fn change_bucket(app: &App, asked: &Asked, action: Action) -> Result<Response, Refusal> {
    let name = &asked.bucket;
    if let Some(message) = bucket_problem(name) {
        return Err(refuse(400, "InvalidBucketName", message));
    }
    let changed = app.committer.write(Change::bucket(action, name)).await?;
    changed.done()?;
    let location = [(header::LOCATION, format!("/{name}"))];
    Ok(match action {
        Action::MakeBucket => (StatusCode::OK, location).into_response(),
        _ => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn known_bucket(app: &App, asked: &Asked, content: &str) -> Result<Response, Refusal> {
    match app
        .committer
        .get(Question::Bucket(asked.bucket.clone()))
        .await?
    {
        Found::NoSuchBucket => Err(super::reply::no_such_bucket()),
        _ => Ok(xml(StatusCode::OK, content)),
    }
}
