use super::super::Proof;
use super::failed;
use crate::services::dynamodb_settings;
use fencing_lock::Env;
use fencing_lock::servers::{DynamoDbApi, new_dynamodb_table};
use serde_json::json;
use std::net::SocketAddr;

/// A table that no lock uses.
const MEMORY: &str = "fencepost_memory";

pub async fn remember(address: SocketAddr) -> Proof {
    let api = api(address)?;
    if remembers(address).await? {
        return Ok(());
    }
    let created = api.ask("CreateTable", &new_dynamodb_table(MEMORY)).await;
    created.map(drop).map_err(|error| failed(address, error))
}

pub async fn remembers(address: SocketAddr) -> Proof<bool> {
    let listed = api(address)?.ask("ListTables", &json!({})).await;
    let listed = listed.map_err(|error| failed(address, error))?;
    let tables = listed["TableNames"].as_array();
    Ok(tables.is_some_and(|tables| tables.contains(&json!(MEMORY))))
}

fn api(address: SocketAddr) -> Proof<DynamoDbApi> {
    let api = DynamoDbApi::new(&address.to_string(), dynamodb_settings(), Env::default());
    api.map_err(|error| failed(address, error))
}
