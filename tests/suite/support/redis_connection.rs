use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use std::time::Duration;

/// The client's own timeout is half a second, which is too short on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects to a Redis directly, without our library.
pub async fn connection_to(address: &str) -> MultiplexedConnection {
    let client = redis::Client::open(format!("redis://{address}")).expect("an address");
    let patient = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(PATIENCE))
        .set_response_timeout(Some(PATIENCE));
    let connection = client.get_multiplexed_async_connection_with_config(&patient);
    connection.await.expect("the server is up")
}
