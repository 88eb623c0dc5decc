use super::status;
use crate::clock::wall_clock_ns;
use crate::services::questions::*;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

pub struct ZookeeperServer;

const EPHEMERAL: CreateOptions<'static> = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
/// A node that no lock uses.
const CLOCK: &str = "/fencepost-clock";

#[async_trait]
impl Questions for ZookeeperServer {
    fn greeting(&self) -> Option<&'static str> {
        Some("ruok")
    }

    async fn leads(&self, server: &Reached) -> Proof<Option<bool>> {
        leads(server.address).await.map(Some)
    }

    /// Only a leader has a clock to be read: it dates every transaction.
    async fn time(&self, server: &Reached) -> Proof<Option<TimeBetween>> {
        let address = server.address;
        if !leads(address).await? {
            return Err(UnprovenReason::ClockOfNoLeader);
        }
        let asking = async {
            let connector = Client::connector().with_fail_eagerly();
            let client = connector.connect(&address.to_string()).await?;
            let before = wall_clock_ns();
            let (stat, _) = client.create(CLOCK, b"", &EPHEMERAL).await?;
            let after = wall_clock_ns();
            client.delete(CLOCK, None).await?;
            Ok(Some((before, stat.ctime * 1_000_000, after)))
        };
        let read = timeout(ANSWER_DEADLINE, asking).await;
        let read = read.map_err(|_| failed(address, "no answer"))?;
        read.map_err(|error: zookeeper_client::Error| failed(address, error))
    }
}

async fn leads(address: SocketAddr) -> Proof<bool> {
    let status = status(&address.to_string(), ANSWER_DEADLINE).await;
    status
        .map(|status| status.leads)
        .map_err(|error| failed(address, error))
}
