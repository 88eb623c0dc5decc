//! What the tests of the locks in a DynamoDB share.

pub use crate::database_lock::kit::{LONG, NOBODY, SECOND, soon, unique_key};

use crate::support::dynamodb_address;
use fencing_lock::servers::{DynamoDbApi, DynamoDbRecord};
use fencing_lock::{
    AwsCredentials, DynamoDbBackend, DynamoDbSettings, Env, LockClient, LockMetrics, LockSettings,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A busy machine takes its time, and a test that waits for silence has its own.
pub fn settings() -> DynamoDbSettings {
    let mut settings = DynamoDbSettings::new("us-east-1", AwsCredentials::new("me", "s3cret"));
    settings.response_timeout = 3 * SECOND;
    settings
}

/// A client of its own, as another process would have one.
pub fn locks(ttl: Duration) -> (LockClient, LockMetrics) {
    locks_at(&dynamodb_address(), settings(), ttl)
}

pub fn locks_at(
    address: &str,
    settings: DynamoDbSettings,
    ttl: Duration,
) -> (LockClient, LockMetrics) {
    let metrics = LockMetrics::default();
    let backend = Arc::new(DynamoDbBackend::new(address, settings).unwrap());
    let client = LockClient::new(backend, LockSettings { ttl, seed: 1 }, metrics.clone());
    (client.unwrap(), metrics)
}

/// A way past the locks.
pub fn api(address: &str) -> DynamoDbApi {
    DynamoDbApi::new(address, settings(), Env::default()).unwrap()
}

pub async fn record_at(address: &str, key: &str) -> Option<DynamoDbRecord> {
    let look = json!({
        "TableName": DynamoDbSettings::TABLE,
        "Key": { "lock_key": { "S": key } },
        "ConsistentRead": true,
    });
    let answer = api(address).ask("GetItem", &look).await.unwrap();
    DynamoDbRecord::read(&answer["Item"]).unwrap()
}

pub async fn holder(key: &str) -> Option<String> {
    let record = record_at(&dynamodb_address(), key).await;
    record.and_then(|record| record.hold).map(|hold| hold.owner)
}

pub async fn fence(key: &str) -> u64 {
    let record = record_at(&dynamodb_address(), key).await;
    record.map_or(0, |record| record.fence)
}

/// Changes an item past the library.
pub async fn update(key: &str, change: &str, value: Value) {
    let update = json!({
        "TableName": DynamoDbSettings::TABLE,
        "Key": { "lock_key": { "S": key } },
        "UpdateExpression": change,
        "ExpressionAttributeValues": { ":v": value },
    });
    let updated = api(&dynamodb_address()).ask("UpdateItem", &update).await;
    updated.unwrap();
}

/// Fails where a lock stays behind: no TTL here is short enough to free it.
pub async fn until_free(address: &str, key: &str) {
    let (locks, _) = locks_at(address, settings(), LONG);
    let free = async {
        loop {
            if let Ok(Some(lease)) = locks.try_acquire(key).await {
                lease.release().await;
                return;
            }
            sleep(SECOND / 50).await;
        }
    };
    timeout(15 * SECOND, free).await.expect("no lock stays");
}
