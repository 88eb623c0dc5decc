//! Questions over etcd's JSON gateway, which every member has; a simulated one has none.

use super::super::Proof;
use super::super::field::Reached;
use super::{MAX_ANSWER_BYTES, etcd_played as played, failed, http};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Longer than any skew that is read this way.
pub(super) const LEASE_S: i64 = 3600;

pub async fn leads(server: &Reached) -> Proof<bool> {
    if server.env.is_played() {
        return played::leads(server).await;
    }
    let status: Value = ask(server.address, "maintenance/status", &json!({})).await?;
    let leader = &status["leader"];
    Ok(leader.is_string() && *leader == status["header"]["member_id"])
}

/// Grants a lease by which the monotonic clock is read.
pub async fn grant(server: &Reached) -> Proof<i64> {
    if server.env.is_played() {
        return played::grant(server).await;
    }
    let granted: Value = ask(server.address, "lease/grant", &json!({ "TTL": LEASE_S })).await?;
    let why = || format!("no lease was granted: {granted}");
    number(&granted["ID"]).ok_or_else(|| failed(server.address, why()))
}

/// Returns the seconds until the lease expires, by the leader's clock.
pub async fn remaining_s(server: &Reached, lease: i64) -> Proof<i64> {
    if server.env.is_played() {
        return played::remaining_s(server, lease).await;
    }
    let id = json!({ "ID": lease.to_string() });
    let left: Value = ask(server.address, "lease/timetolive", &id).await?;
    let why = || format!("nothing is known of the lease: {left}");
    number(&left["TTL"]).ok_or_else(|| failed(server.address, why()))
}

pub async fn revoke(server: &Reached, lease: i64) -> Proof {
    if server.env.is_played() {
        return played::revoke(server, lease).await;
    }
    let id = json!({ "ID": lease.to_string() });
    let revoked: Proof<Value> = ask(server.address, "lease/revoke", &id).await;
    revoked.map(drop)
}

/// Reads a large number, which is a text there.
fn number(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok()
}

async fn ask<T: DeserializeOwned>(address: SocketAddr, call: &str, body: &Value) -> Proof<T> {
    let asked = async {
        let url = format!("http://{address}/v3/{call}");
        http()?
            .post(url)
            .json(body)
            .send()
            .await?
            .error_for_status()
    };
    let answer = asked.await.map_err(|error| failed(address, error))?;
    let answer = bounded_io::body(answer, MAX_ANSWER_BYTES).await;
    let answer = answer.map_err(|error| failed(address, error))?;
    serde_json::from_slice(&answer).map_err(|error| failed(address, error))
}
