//! The API: routes, and the answers of each.

use super::reply::{Reply, Sent};
use super::toxics::ToxicPatch;
use super::*;
use crate::{Proxy, ProxyChange};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::header;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use std::collections::BTreeMap;

/// The version of Toxiproxy that this server replaces.
pub const VERSION: &str = "2.13.0";
/// The deadline of the original. Nothing here should take that long.
const DEADLINE: Duration = Duration::from_secs(25);

#[derive(Clone)]
pub struct App {
    pub proxies: Arc<Collection>,
    pub metrics: Arc<Metrics>,
}

type Proxies = State<App>;

pub fn router(app: App, auth_token: Option<String>) -> Router {
    let mut router = Router::new()
        .route("/version", get(version))
        .route("/proxies", get(list).post(create))
        .route("/populate", post(populate))
        .route("/reset", post(reset))
        .route(
            "/proxies/{proxy}",
            get(show).post(update).patch(update).delete(remove),
        )
        .route("/proxies/{proxy}/toxics", get(toxics).post(add_toxic))
        .route(
            "/proxies/{proxy}/toxics/{toxic}",
            get(toxic)
                .post(update_toxic)
                .patch(update_toxic)
                .delete(remove_toxic),
        );
    if app.metrics.are_wanted() {
        router = router.route("/metrics", get(show_metrics));
    }
    let router = router.route_layer(middleware::from_fn(in_time));
    access::guard(router, auth_token)
        .fallback(|| async { reply::text(StatusCode::NOT_FOUND, "404 page not found") })
        .with_state(app)
}

async fn version() -> Response {
    let body = format!("{{\"version\": \"{VERSION}\"}}\n");
    let kind = [(header::CONTENT_TYPE, "application/json;charset=utf-8")];
    (kind, body).into_response()
}

async fn list(State(app): Proxies) -> Reply {
    let proxies = app.proxies.all();
    let shown = proxies.iter().map(|(name, proxy)| (name, proxy.show()));
    reply::json(StatusCode::OK, &shown.collect::<BTreeMap<_, _>>())
}

async fn create(State(app): Proxies, Sent(body): Sent) -> Reply {
    let new: NewProxy = reply::parse(&body)?;
    let proxy = to_its_end(async move { app.proxies.create(new).await }).await??;
    reply::json(StatusCode::CREATED, &proxy.show())
}

async fn show(State(app): Proxies, Path(name): Path<String>) -> Reply {
    reply::json(StatusCode::OK, &app.proxies.get(&name)?.show())
}

async fn update(State(app): Proxies, Path(name): Path<String>, Sent(body): Sent) -> Reply {
    let proxy = app.proxies.get(&name)?;
    let change: ProxyChange = reply::parse(&body)?;
    let updated = proxy.clone();
    to_its_end(async move { updated.update(change).await }).await??;
    reply::json(StatusCode::OK, &proxy.show())
}

async fn remove(State(app): Proxies, Path(name): Path<String>) -> Reply {
    to_its_end(async move { app.proxies.delete(&name).await }).await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Creates several proxies. Unlike all others, its errors come as JSON and with the
/// proxies created before.
async fn populate(State(app): Proxies, Sent(body): Sent) -> Reply {
    #[derive(Serialize)]
    struct Populated {
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        proxies: Option<Vec<Proxy>>,
    }
    let (proxies, result) = match reply::parse_all(&body) {
        Ok(new) => to_its_end(async move { app.proxies.populate(new).await }).await?,
        Err(refusal) => (Vec::new(), Err(refusal)),
    };
    let shown: Vec<Proxy> = proxies.iter().map(|proxy| proxy.show()).collect();
    let refusal = result.err();
    let status = refusal.as_ref().map_or(StatusCode::CREATED, |r| r.status);
    let body = Populated {
        status: refusal.as_ref().map(|refusal| refusal.status.as_u16()),
        proxies: (!shown.is_empty()).then_some(shown),
        error: refusal.map(|refusal| refusal.message),
    };
    reply::json(status, &body)
}

async fn reset(State(app): Proxies) -> Reply {
    to_its_end(async move { app.proxies.reset().await }).await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn toxics(State(app): Proxies, Path(name): Path<String>) -> Reply {
    reply::json(StatusCode::OK, &app.proxies.get(&name)?.toxics.list())
}

async fn add_toxic(State(app): Proxies, Path(name): Path<String>, Sent(body): Sent) -> Reply {
    let proxy = app.proxies.get(&name)?;
    let toxic: Toxic = reply::parse_toxic(&body)?;
    reply::json(StatusCode::OK, &proxy.toxics.add(toxic)?)
}

async fn toxic(State(app): Proxies, Path((name, toxic)): Path<(String, String)>) -> Reply {
    reply::json(StatusCode::OK, &app.proxies.get(&name)?.toxics.get(&toxic)?)
}

async fn update_toxic(
    State(app): Proxies,
    Path((name, toxic)): Path<(String, String)>,
    Sent(body): Sent,
) -> Reply {
    let proxy = app.proxies.get(&name)?;
    proxy.toxics.get(&toxic)?;
    let patch: ToxicPatch = reply::parse(&body)?;
    reply::json(StatusCode::OK, &proxy.toxics.update(&toxic, patch)?)
}

async fn remove_toxic(State(app): Proxies, Path((name, toxic)): Path<(String, String)>) -> Reply {
    app.proxies.get(&name)?.toxics.remove(&toxic)?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn show_metrics(State(app): Proxies) -> Reply {
    let text = app.metrics.encode().map_err(Refusal::internal)?;
    let kind = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)];
    Ok((kind, text).into_response())
}

/// Runs `work` to its end, so that a client that disconnects in the middle leaves nothing
/// half done.
async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, Refusal> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| Refusal::internal(format!("a bug: {error}")))
}

async fn in_time(request: Request, next: Next) -> Response {
    let answered = timeout(DEADLINE, next.run(request)).await;
    answered.unwrap_or_else(|_| reply::timed_out())
}
