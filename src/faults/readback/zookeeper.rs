use super::super::Proof;
use super::{ANSWER_DEADLINE, failed};
use crate::services::zookeeper::status;
use std::net::SocketAddr;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
/// A node that no lock uses.
const CLOCK: &str = "/fencepost-clock";

pub async fn leads(address: SocketAddr) -> Proof<bool> {
    let status = status(&address.to_string(), ANSWER_DEADLINE).await;
    status
        .map(|status| status.leads)
        .map_err(|error| failed(address, error))
}

/// Returns the realtime clock of a leader, in nanoseconds, between two readings of ours: it dates
/// every transaction.
pub async fn time(address: SocketAddr, ours: impl Fn() -> i64) -> Proof<(i64, i64, i64)> {
    let asking = async {
        let connector = Client::connector().with_fail_eagerly();
        let client = connector.connect(&address.to_string()).await?;
        let before = ours();
        let (stat, _) = client.create(CLOCK, b"", &EPHEMERAL).await?;
        let after = ours();
        client.delete(CLOCK, None).await?;
        Ok((before, stat.ctime * 1_000_000, after))
    };
    let read = timeout(ANSWER_DEADLINE, asking).await;
    let read = read.map_err(|_| failed(address, "no answer"))?;
    read.map_err(|error: zookeeper_client::Error| failed(address, error))
}
