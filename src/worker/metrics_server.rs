use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, StatusCode};
use axum::routing::get;
use bounded_io::serve;
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
    serve_on(TcpListener::bind(address).await?, registry).await;
    Ok(())
}

async fn serve_on(listener: TcpListener, registry: Registry) {
    let registry = Arc::new(registry);
    let page = move || std::future::ready(page(&registry));
    let router = Router::new().route("/metrics", get(page));
    serve::serve(listener, router, CancellationToken::new()).await;
}

type Page = Result<([(HeaderName, &'static str); 1], String), StatusCode>;

fn page(registry: &Registry) -> Page {
    let mut text = String::new();
    encode(&mut text, registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    #[tokio::test]
    async fn too_many_headers_are_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_on(listener, Registry::default()));
        for (count, status) in [(1, 200), (serve::MAX_HEADERS + 1, 431)] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let headers = "x: y\r\n".repeat(count);
            let request = format!("GET /metrics HTTP/1.1\r\n{headers}\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            let read = timeout(Duration::from_secs(20), stream.read_exact(&mut answer)).await;
            read.expect("an answer").unwrap();
            let expected = format!("HTTP/1.1 {status}");
            assert_eq!(String::from_utf8_lossy(&answer), expected);
        }
    }
}
