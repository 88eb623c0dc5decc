use super::settings;
use crate::services::questions::*;
use fencing_lock::servers::{DynamoDbApi, new_dynamodb_table};
use fencing_lock::{DynamoDbSettings, Env};
use serde_json::{Value, json};

pub struct DynamoDbServer;

/// A table that no lock uses.
const MEMORY: &str = "fencepost_memory";

#[async_trait]
impl Questions for DynamoDbServer {
    async fn remember(&self, server: &Reached) -> Proof<bool> {
        if !is_there(server.address).await? {
            let table = new_dynamodb_table(MEMORY);
            ask(server.address, "CreateTable", &table).await?;
        }
        Ok(true)
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        is_there(server.address).await.map(Some)
    }
}

async fn is_there(address: SocketAddr) -> Proof<bool> {
    let listed = ask(address, "ListTables", &json!({})).await?;
    let tables = listed["TableNames"].as_array();
    Ok(tables.is_some_and(|tables| tables.contains(&json!(MEMORY))))
}

async fn ask(address: SocketAddr, action: &str, body: &Value) -> Proof<Value> {
    let asked = async {
        // A server that has just been started takes longer than a lock may wait.
        let patient = DynamoDbSettings {
            connect_timeout: ANSWER_DEADLINE,
            response_timeout: ANSWER_DEADLINE,
            ..settings()
        };
        let api = DynamoDbApi::new(&address.to_string(), patient, Env::default())?;
        api.ask(action, body).await
    };
    asked.await.map_err(|error| failed(address, error))
}
