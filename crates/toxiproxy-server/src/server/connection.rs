//! One client, its connection to the upstream, and one link in each direction.

use super::link::{Link, Reset};
use super::luck::Luck;
use super::metrics::Counted;
use super::toxics::Toxics;
use super::*;
use futures_util::future::try_join;
use socket2::SockRef;
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, timeout_at};

/// A client that has said nothing may not know yet that it is connected. To be reset by then would make
/// its connect() fail, so it is spared until it is this old.
const CONNECT_GRACE: Duration = Duration::from_millis(100);

pub struct Route {
    pub proxy: String,
    pub upstream: String,
    pub dial_timeout: Duration,
    pub toxics: Arc<Toxics>,
    pub seed: u64,
    pub counted: [Counted; 2],
}

/// Carries a client's data and returns when both directions have ended. If the upstream
/// cannot be reached, the client is closed, and the error says why.
pub async fn carry(mut client: TcpStream, number: u64, route: &Route) -> io::Result<()> {
    let accepted = Instant::now();
    // Subscribe before the dial: a toxic that is added in the meantime is a change for
    // the links.
    let subscribed = Stream::ALL.map(|stream| route.toxics.subscribe(stream));
    let luck = |stream| Luck::new(route.seed, &route.proxy, number, stream);
    let mut upstream = dial(&route.upstream, route.dial_timeout).await?;
    for side in [&client, &upstream] {
        // A socket that refuses TCP_NODELAY still works, only slower.
        let _ = side.set_nodelay(true);
    }

    let [client_spoke, server_spoke] = [(); 2].map(|()| AtomicBool::new(false));
    let ended = {
        let (mut from_client, mut to_client) = client.split();
        let (mut from_upstream, mut to_upstream) = upstream.split();
        let [toxics_up, toxics_down] = subscribed;
        let [counted_up, counted_down] = route.counted.clone();
        let up = Link::new(
            &mut from_client,
            &mut to_upstream,
            toxics_up,
            luck(Stream::Upstream),
            counted_up,
            &client_spoke,
        );
        let down = Link::new(
            &mut from_upstream,
            &mut to_client,
            toxics_down,
            luck(Stream::Downstream),
            counted_down,
            &server_spoke,
        );
        try_join(run(up), run(down)).await
    };
    if let Err(Reset) = ended {
        if !client_spoke.load(Ordering::Relaxed) {
            let _ = timeout_at(accepted + CONNECT_GRACE, client.readable()).await;
        }
        for side in [&client, &upstream] {
            // Closing sends RST now, and drops unsent data. If this fails, there is no
            // connection any more.
            let _ = side.set_zero_linger();
        }
    }
    Ok(())
}

/// Runs one direction, then closes its destination: the whole socket, like the original.
/// A side that ends its own stream gets no more of the other one; data that has come from
/// there already still passes, because the other link reads it before the end. Closing
/// fails only for a socket that is gone.
async fn run(link: Link<'_, ReadHalf<'_>, WriteHalf<'_>>) -> Result<(), Reset> {
    let destination = link.run().await?;
    let _ = SockRef::from(destination.as_ref()).shutdown(Shutdown::Both);
    Ok(())
}

async fn dial(upstream: &str, limit: Duration) -> io::Result<TcpStream> {
    let dialled = timeout(limit, TcpStream::connect(upstream)).await;
    dialled.unwrap_or_else(|_| {
        let message = format!("no answer within {limit:?}");
        Err(io::Error::new(io::ErrorKind::TimedOut, message))
    })
}
