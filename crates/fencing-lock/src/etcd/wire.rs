use super::failure::Failure;
use crate::{Env, World};
use etcd_client::{
    Channel, Client, ConnectOptions, KvClient, LeaseClient, LockClient, MaintenanceClient,
    WatchClient,
};
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::{Endpoint, Uri};
use tower::service_fn;

/// The clients for one member.
#[derive(Clone)]
pub struct Wire {
    pub kv: KvClient,
    pub lease: LeaseClient,
    pub watch: WatchClient,
    pub lock: LockClient,
    pub maintenance: MaintenanceClient,
}

/// A connection on which nothing comes back is closed after both of these. Servers close
/// the connections of clients that ask more often than every 5 s, so this only removes
/// dead connections; time limits notice the problem much earlier.
const PING_EVERY: Duration = Duration::from_secs(6);
const PONG_WITHIN: Duration = Duration::from_secs(2);

/// Longer than any play.
const A_LONG_TIME: Duration = Duration::from_secs(86_400);

/// Makes clients that connect at the first request, and again after the connection broke.
pub async fn wire(address: &str, options: ConnectOptions) -> Result<Wire, Failure> {
    let client = Client::connect([address], Some(options)).await?;
    Ok(Wire::new(&client))
}

/// Makes the clients that a lock uses, in surroundings that may be simulated.
pub async fn wire_in(env: &Env, address: &str) -> Result<Wire, Failure> {
    let options = ConnectOptions::new()
        .with_keep_alive(PING_EVERY, PONG_WITHIN)
        // A member that lost its leader says so at once and ends its watches.
        .with_require_leader(true);
    let Some(world) = env.world() else {
        return wire(address, options).await;
    };
    let channel = Channel::Tonic(channel_in(world, address)?);
    let client = Client::from_channel(channel, Some(options)).await?;
    Ok(Wire::new(&client))
}

impl Wire {
    fn new(client: &Client) -> Wire {
        Wire {
            kv: client.kv_client(),
            lease: client.lease_client(),
            watch: client.watch_client(),
            lock: client.lock_client(),
            maintenance: client.maintenance_client(),
        }
    }
}

/// Makes a channel whose connections and tasks are those of the world. The client library
/// would make another channel for these options, with a balancer that draws at random and
/// a connector for TCP.
fn channel_in(world: &Arc<dyn World>, address: &str) -> Result<tonic::transport::Channel, Failure> {
    let plain = address.strip_prefix("http://").unwrap_or(address);
    let endpoint = Endpoint::from_shared(format!("http://{plain}"));
    let endpoint = endpoint.map_err(etcd_client::Error::from)?;
    let endpoint = endpoint
        .keep_alive_while_idle(true)
        .http2_keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        // By default h2 forgets streams that were reset after a second of real time, and answers
        // what still comes for them; then two plays would differ.
        .http2_reset_stream_duration(A_LONG_TIME)
        .http2_max_concurrent_reset_streams(usize::MAX)
        .executor(Executor(world.clone()));
    let world = world.clone();
    Ok(
        endpoint.connect_with_connector_lazy(service_fn(move |server: Uri| {
            let world = world.clone();
            async move {
                let (host, port) = (server.host(), server.port_u16());
                let (Some(host), Some(port)) = (host, port) else {
                    return Err(io::Error::from(io::ErrorKind::InvalidInput));
                };
                world.dial(host, port).await.map(TokioIo::new)
            }
        })),
    )
}

struct Executor(Arc<dyn World>);

impl hyper::rt::Executor<BoxFuture<'static, ()>> for Executor {
    fn execute(&self, task: BoxFuture<'static, ()>) {
        self.0.spawn(task);
    }
}
