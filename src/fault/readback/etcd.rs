//! Over etcd's JSON gateway, which every member has.

use super::{MAX_ANSWER_BYTES, http};
use crate::bounded;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Display;
use std::net::SocketAddr;

/// Longer than any skew that is looked at this way.
const LEASE_S: i64 = 3600;

/// Whether this member leads.
pub async fn leads(address: SocketAddr) -> Result<bool, String> {
    let status: Value = ask(address, "maintenance/status", &json!({})).await?;
    let leader = &status["leader"];
    Ok(leader.is_string() && *leader == status["header"]["member_id"])
}

/// A lease to see the monotonic clock by.
pub async fn grant(address: SocketAddr) -> Result<String, String> {
    let granted: Value = ask(address, "lease/grant", &json!({ "TTL": LEASE_S })).await?;
    let id = granted["ID"].as_str().map(str::to_owned);
    id.ok_or_else(|| format!("no lease was granted: {granted}"))
}

/// Seconds until it runs out, by the leader's clock.
pub async fn remaining_s(address: SocketAddr, lease: &str) -> Result<i64, String> {
    let left: Value = ask(address, "lease/timetolive", &json!({ "ID": lease })).await?;
    let seconds = left["TTL"].as_str().and_then(|text| text.parse().ok());
    seconds.ok_or_else(|| format!("nothing is known of the lease: {left}"))
}

pub async fn revoke(address: SocketAddr, lease: &str) -> Result<(), String> {
    let revoked: Result<Value, String> =
        ask(address, "lease/revoke", &json!({ "ID": lease })).await;
    revoked.map(drop)
}

async fn ask<T: DeserializeOwned>(
    address: SocketAddr,
    call: &str,
    body: &Value,
) -> Result<T, String> {
    let asked = async {
        let url = format!("http://{address}/v3/{call}");
        http()?
            .post(url)
            .json(body)
            .send()
            .await?
            .error_for_status()
    };
    let failed = |error: &dyn Display| format!("{address} gave no usable answer: {error}");
    let answer = asked.await.map_err(|error| failed(&error))?;
    let answer = bounded::body(answer, MAX_ANSWER_BYTES).await;
    let answer = answer.map_err(|error| failed(&error))?;
    serde_json::from_slice(&answer).map_err(|error| failed(&error))
}
