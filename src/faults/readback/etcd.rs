//! Questions over etcd's JSON gateway, which every member has.

use super::super::Proof;
use super::{MAX_ANSWER_BYTES, failed, http};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Longer than any skew that is read this way.
const LEASE_S: i64 = 3600;

pub async fn leads(address: SocketAddr) -> Proof<bool> {
    let status: Value = ask(address, "maintenance/status", &json!({})).await?;
    let leader = &status["leader"];
    Ok(leader.is_string() && *leader == status["header"]["member_id"])
}

/// Grants a lease by which the monotonic clock is read.
pub async fn grant(address: SocketAddr) -> Proof<String> {
    let granted: Value = ask(address, "lease/grant", &json!({ "TTL": LEASE_S })).await?;
    let id = granted["ID"].as_str().map(str::to_owned);
    id.ok_or_else(|| failed(address, format!("no lease was granted: {granted}")))
}

/// Returns the seconds until the lease expires, by the leader's clock.
pub async fn remaining_s(address: SocketAddr, lease: &str) -> Proof<i64> {
    let left: Value = ask(address, "lease/timetolive", &json!({ "ID": lease })).await?;
    let seconds = left["TTL"].as_str().and_then(|text| text.parse().ok());
    seconds.ok_or_else(|| failed(address, format!("nothing is known of the lease: {left}")))
}

pub async fn revoke(address: SocketAddr, lease: &str) -> Proof {
    let revoked: Proof<Value> = ask(address, "lease/revoke", &json!({ "ID": lease })).await;
    revoked.map(drop)
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
