use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::Body;
use std::io;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::sleep;

/// How long a slow write rests after its first half. Nobody says when that half has arrived, so
/// this is time enough for it.
const REST: Duration = Duration::from_millis(300);

/// Returns a body whose second half waits until it may go.
pub fn halves(body: Bytes, begun: oneshot::Sender<()>, go: oneshot::Receiver<()>) -> Body {
    let (first, second) = (body.slice(..body.len() / 2), body.slice(body.len() / 2..));
    let first = stream::iter([Ok::<Bytes, io::Error>(first)]);
    let second = stream::once(async move {
        sleep(REST).await;
        let _ = begun.send(());
        // If nobody says so any more, its sender is gone too.
        let _ = go.await;
        Ok(second)
    });
    Body::wrap_stream(first.chain(second))
}
