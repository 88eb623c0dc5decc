//! One client, its connection to the upstream, and a link each way.

use super::link::{Link, Reset};
use super::luck::Luck;
use super::metrics::Counted;
use super::toxics::Toxics;
use crate::toxiproxy::Stream;
use futures_util::future::try_join;
use socket2::SockRef;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

pub struct Route {
    pub proxy: String,
    pub upstream: String,
    pub dial_timeout: Duration,
    pub toxics: Arc<Toxics>,
    pub seed: u64,
    pub counted: [Counted; 2],
}

/// Ends when both directions have. Where the upstream cannot be reached, the
/// client is closed, and the error says why.
pub async fn carry(mut client: TcpStream, number: u64, route: &Route) -> io::Result<()> {
    // Subscribed before the dial: what is added meanwhile is a change for the links.
    let subscribed = Stream::ALL.map(|stream| route.toxics.subscribe(stream));
    let luck = |stream| Luck::new(route.seed, &route.proxy, number, stream);
    let mut upstream = dial(&route.upstream, route.dial_timeout).await?;
    for side in [&client, &upstream] {
        // A socket that refuses TCP_NODELAY still works, only slower.
        let _ = side.set_nodelay(true);
    }

    let ended = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_upstream, mut to_upstream) = upstream.split();
        let [toxics_up, toxics_down] = subscribed;
        let [counted_up, counted_down] = route.counted.clone();
        let luck_up = luck(Stream::Upstream);
        let luck_down = luck(Stream::Downstream);
        let up = async {
            let link = Link::new(
                &mut from_client,
                &mut to_upstream,
                toxics_up,
                luck_up,
                counted_up,
            );
            link.run().await?;
            close(to_upstream.as_ref());
            Ok(())
        };
        let down = async {
            let link = Link::new(
                &mut from_upstream,
                &mut to_client,
                toxics_down,
                luck_down,
                counted_down,
            );
            link.run().await?;
            close(to_client.as_ref());
            Ok(())
        };
        try_join(up, down).await
    };
    if let Err(Reset) = ended {
        for side in [&client, &upstream] {
            // Closing sends RST now, and throws away what was not sent. Where
            // this fails, there is no connection any more.
            let _ = side.set_zero_linger();
        }
    }
    Ok(())
}

/// The whole socket, as the original does it: whoever ends its own stream gets
/// no more of the other one. What has already come from there still passes: the
/// other link reads it, and then the end. A socket that is gone is closed.
fn close(socket: &TcpStream) {
    let _ = SockRef::from(socket).shutdown(Shutdown::Both);
}

async fn dial(upstream: &str, limit: Duration) -> io::Result<TcpStream> {
    let dialled = timeout(limit, TcpStream::connect(upstream)).await;
    dialled.unwrap_or_else(|_| {
        let message = format!("no answer within {limit:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}
