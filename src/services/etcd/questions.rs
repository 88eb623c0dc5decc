//! Questions over etcd's JSON gateway, which every member has; a simulated one has none.

use super::played;
use crate::services::questions::*;
use serde_json::{Value, json};

pub struct EtcdServer;

/// Longer than any skew that is read this way.
pub(super) const LEASE_S: i64 = 3600;

#[async_trait]
impl Questions for EtcdServer {
    async fn leads(&self, server: &Reached) -> Proof<Option<bool>> {
        if server.env.is_played() {
            return played::leads(server).await.map(Some);
        }
        let status = ask(server.address, "maintenance/status", &json!({})).await?;
        let leader = &status["leader"];
        let leads = leader.is_string() && *leader == status["header"]["member_id"];
        Ok(Some(leads))
    }

    fn has_lease_clock(&self) -> bool {
        true
    }

    async fn grant_lease(&self, server: &Reached) -> Proof<i64> {
        if server.env.is_played() {
            return played::grant(server).await;
        }
        let granted = ask(server.address, "lease/grant", &json!({ "TTL": LEASE_S })).await?;
        let why = || format!("no lease was granted: {granted}");
        number(&granted["ID"]).ok_or_else(|| failed(server.address, why()))
    }

    async fn lease_left_s(&self, server: &Reached, lease: i64) -> Proof<i64> {
        if server.env.is_played() {
            return played::remaining_s(server, lease).await;
        }
        let id = json!({ "ID": lease.to_string() });
        let left = ask(server.address, "lease/timetolive", &id).await?;
        let why = || format!("nothing is known of the lease: {left}");
        number(&left["TTL"]).ok_or_else(|| failed(server.address, why()))
    }

    async fn revoke_lease(&self, server: &Reached, lease: i64) -> Proof {
        if server.env.is_played() {
            return played::revoke(server, lease).await;
        }
        let id = json!({ "ID": lease.to_string() });
        ask(server.address, "lease/revoke", &id).await.map(drop)
    }

    fn survives_setting_back(&self) -> bool {
        false
    }
}

/// Reads a large number, which is a text there.
fn number(value: &Value) -> Option<i64> {
    value.as_str()?.parse().ok()
}

async fn ask(address: SocketAddr, call: &str, body: &Value) -> Proof<Value> {
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
