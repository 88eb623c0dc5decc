//! Who may use the API, and the number of each request.

use super::*;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-toxiproxy-request-id");
/// The letters of the original's numbers, which are made by the library xid.
const XID: &[u8] = b"0123456789abcdefghijklmnopqrstuv";
const XID_LETTERS: usize = 20;

/// Guards the routes, in the order of the original: unknown paths are told to everybody.
pub fn guard<S>(router: Router<S>, auth_token: Option<String>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let router = match auth_token {
        Some(token) => {
            let expected: Arc<str> = format!("Bearer {token}").into();
            router.route_layer(middleware::from_fn(move |request, next| {
                with_token(expected.clone(), request, next)
            }))
        }
        None => router,
    };
    router
        .route_layer(middleware::from_fn(no_browsers))
        .route_layer(middleware::from_fn(numbered))
}

/// Warns of an API that others can reach and that asks for nothing.
pub fn warn_if_open(listener: &TcpListener, auth_token: Option<&str>, log: LogLevel) {
    if let (Ok(address), None) = (listener.local_addr(), auth_token)
        && !address.ip().is_loopback()
    {
        log.warn(format_args!(
            "the API at {address} is not on loopback and asks for no token; set TOXIPROXY_AUTH_TOKEN"
        ));
    }
}

async fn with_token(expected: Arc<str>, request: Request, next: Next) -> Response {
    let sent = request.headers().get(header::AUTHORIZATION);
    if sent.is_some_and(|sent| is_same(sent.as_bytes(), expected.as_bytes())) {
        return next.run(request).await;
    }
    let mut response = Refusal::unauthorized().into_response();
    let scheme = HeaderValue::from_static("Bearer");
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, scheme);
    response
}

/// Compares in a time that does not depend on where the texts differ.
fn is_same(sent: &[u8], expected: &[u8]) -> bool {
    let pairs = sent.iter().zip(expected);
    let differing = pairs.fold(0, |differing, (a, b)| differing | (a ^ b));
    sent.len() == expected.len() && std::hint::black_box(differing) == 0
}

/// Refuses browsers: a page in somebody's browser must not control the proxies.
async fn no_browsers(request: Request, next: Next) -> Response {
    let agent = request.headers().get(header::USER_AGENT);
    if agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/")) {
        return reply::text(StatusCode::FORBIDDEN, "User agent not allowed");
    }
    next.run(request).await
}

async fn numbered(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let letters = std::iter::repeat_with(|| XID[fastrand::usize(..XID.len())] as char);
    let id: String = letters.take(XID_LETTERS).collect();
    // The letters are all allowed.
    if let Ok(id) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}
