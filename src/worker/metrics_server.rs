use crate::serve;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers `GET /metrics` for as long as it is polled.
pub(super) async fn serve_metrics(address: SocketAddr, registry: Registry) -> io::Result<()> {
    let registry = Arc::new(registry);
    let page = move || std::future::ready(page(&registry));
    let listener = TcpListener::bind(address).await?;
    let router = Router::new().route("/metrics", get(page));
    serve::serve(listener, router, CancellationToken::new()).await;
    Ok(())
}

type Page = Result<([(HeaderName, &'static str); 1], String), StatusCode>;

fn page(registry: &Registry) -> Page {
    let mut text = String::new();
    encode(&mut text, registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text))
}
