//! The same questions to a simulated member, over gRPC.

use super::questions::LEASE_S;
use crate::services::questions::*;
use fencing_lock::servers::{EtcdWire, etcd_wire_in};

pub async fn leads(server: &Reached) -> Proof<bool> {
    let status = ask(server, async |mut wire| wire.maintenance.status().await).await?;
    let own = status.header().map(|header| header.member_id());
    Ok(own == Some(status.leader()))
}

pub async fn grant(server: &Reached) -> Proof<i64> {
    let granted = ask(server, async |mut wire| {
        wire.lease.grant(LEASE_S, None).await
    });
    Ok(granted.await?.id())
}

pub async fn remaining_s(server: &Reached, lease: i64) -> Proof<i64> {
    let left = ask(server, async |mut wire| {
        wire.lease.time_to_live(lease, None).await
    });
    Ok(left.await?.ttl())
}

pub async fn revoke(server: &Reached, lease: i64) -> Proof {
    let revoked = ask(server, async |mut wire| wire.lease.revoke(lease).await);
    revoked.await.map(drop)
}

async fn ask<T>(
    server: &Reached,
    question: impl AsyncFnOnce(EtcdWire) -> Result<T, etcd_client::Error>,
) -> Proof<T> {
    let asked = async {
        let address = server.address.to_string();
        let wire = etcd_wire_in(&server.env, &address).await;
        let wire = wire.map_err(|failure| format!("{failure:?}"))?;
        question(wire).await.map_err(|error| error.to_string())
    };
    let answer = timeout(ANSWER_DEADLINE, asked).await;
    let answer = answer.unwrap_or_else(|_| Err("it does not answer".to_owned()));
    answer.map_err(|why| failed(server.address, why))
}
