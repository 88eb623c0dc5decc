//! Which member to ask. A request through a follower costs a hop more, and
//! ours go to the leader: the others get the same advantage.

use crate::Trouble;
use etcd_client::Client;

pub async fn leader(members: &[String]) -> Result<Client, Trouble> {
    for member in members {
        let mut client = Client::connect([member], None).await?;
        let status = client.status().await?;
        let id = status.header().map(|header| header.member_id());
        if id == Some(status.leader()) {
            return Ok(client);
        }
    }
    Err("no etcd member says that it is the leader".into())
}
