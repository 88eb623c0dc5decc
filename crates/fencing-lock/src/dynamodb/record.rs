//! The item of a lock, and the requests that read and change it.

use crate::LockProblem;
use serde_json::{Value, json};
use std::time::Duration;

/// The partition key of the table.
pub const KEY: &str = "lock_key";

/// The item of one key. It stays when the lock is free, because the fence has to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamoDbRecord {
    /// A new random one at every change.
    pub version: String,
    /// Absent if nobody holds the lock.
    pub hold: Option<DynamoDbHold>,
    /// The token of the latest grant.
    pub fence: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DynamoDbHold {
    pub owner: String,
    pub lease: Duration,
}

/// The state of an item that a write demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    NoItem,
    Version(String),
}

impl DynamoDbRecord {
    /// Reads an item; null is none.
    pub fn read(item: &Value) -> Result<Option<DynamoDbRecord>, LockProblem> {
        if item.is_null() {
            return Ok(None);
        }
        let record = DynamoDbRecord::of(item);
        let record = record.ok_or_else(|| {
            let what = "the item of this key is not a lock; somebody else wrote it";
            LockProblem::BadAnswer(what.to_owned())
        });
        record.map(Some)
    }

    fn of(item: &Value) -> Option<DynamoDbRecord> {
        let text = |name: &str| item[name]["S"].as_str().map(str::to_owned);
        let number = |name: &str| item[name]["N"].as_str()?.parse::<u64>().ok();
        let hold = match text("holder") {
            Some(owner) => {
                let lease = Duration::from_millis(number("lease_ms")?);
                Some(DynamoDbHold { owner, lease })
            }
            None => None,
        };
        Some(DynamoDbRecord {
            version: text("record_version")?,
            hold,
            fence: number("fence")?,
        })
    }

    pub(super) fn owner(&self) -> Option<&str> {
        self.hold.as_ref().map(|hold| hold.owner.as_str())
    }
}

pub fn new_table(table: &str) -> Value {
    json!({
        "TableName": table,
        "KeySchema": [{ "AttributeName": KEY, "KeyType": "HASH" }],
        "AttributeDefinitions": [{ "AttributeName": KEY, "AttributeType": "S" }],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

pub(super) fn look(table: &str, key: &str) -> Value {
    json!({ "TableName": table, "Key": { KEY: { "S": key } }, "ConsistentRead": true })
}

/// Grants the lock if the item is still as it was seen, and increments the fence in the same
/// write.
pub(super) fn grant(
    table: &str,
    key: &str,
    seen: &Seen,
    owner: &str,
    version: &str,
    lease: Duration,
) -> Value {
    let mut values = json!({
        ":owner": { "S": owner },
        ":version": { "S": version },
        ":lease": { "N": lease.as_millis().to_string() },
        ":none": { "N": "0" },
        ":one": { "N": "1" },
    });
    let condition = match seen {
        Seen::NoItem => "attribute_not_exists(lock_key)",
        Seen::Version(seen) => {
            values[":seen"] = json!({ "S": seen });
            "record_version = :seen"
        }
    };
    let update = "SET holder = :owner, record_version = :version, lease_ms = :lease, \
                  fence = if_not_exists(fence, :none) + :one";
    change(table, key, update, condition, values)
}

/// Gives the hold of the owner a new version, by which everybody sees that it is alive.
pub(super) fn renew(table: &str, key: &str, owner: &str, version: &str, lease: Duration) -> Value {
    let values = json!({
        ":owner": { "S": owner },
        ":version": { "S": version },
        ":lease": { "N": lease.as_millis().to_string() },
    });
    let update = "SET record_version = :version, lease_ms = :lease";
    change(table, key, update, "holder = :owner", values)
}

/// Frees the lock if the owner holds it.
pub(super) fn release(table: &str, key: &str, owner: &str, version: &str) -> Value {
    let values = json!({ ":owner": { "S": owner }, ":version": { "S": version } });
    let update = "SET record_version = :version REMOVE holder, lease_ms";
    change(table, key, update, "holder = :owner", values)
}

/// Undoes a try that demanded `seen`, whether it was carried out or not.
///
/// If it was, the lock is freed. If it was not, the item is no longer as the try demands, so
/// the try is refused whenever it comes: a version never comes back, and an item is never
/// deleted. A hold that the try was about to take over had expired, so it is ended too.
pub(super) fn undo(table: &str, key: &str, seen: &Seen, owner: &str, version: &str) -> Value {
    let mut values = json!({
        ":owner": { "S": owner },
        ":version": { "S": version },
        ":none": { "N": "0" },
    });
    let condition = match seen {
        Seen::NoItem => "attribute_not_exists(lock_key) OR holder = :owner",
        Seen::Version(seen) => {
            values[":seen"] = json!({ "S": seen });
            "record_version = :seen OR holder = :owner"
        }
    };
    let update = "SET record_version = :version, fence = if_not_exists(fence, :none) \
                  REMOVE holder, lease_ms";
    change(table, key, update, condition, values)
}

fn change(table: &str, key: &str, update: &str, condition: &str, values: Value) -> Value {
    json!({
        "TableName": table,
        "Key": { KEY: { "S": key } },
        "UpdateExpression": update,
        "ConditionExpression": condition,
        "ExpressionAttributeValues": values,
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_free_or_held_or_not_a_lock() {
        let free = json!({ "lock_key": { "S": "k" }, "record_version": { "S": "v" },
            "fence": { "N": "7" } });
        let record = DynamoDbRecord::read(&free).unwrap().unwrap();
        assert_eq!((record.fence, record.owner()), (7, None));
        let mut held = free.clone();
        held["holder"] = json!({ "S": "me" });
        assert!(DynamoDbRecord::read(&held).is_err(), "no lease");
        held["lease_ms"] = json!({ "N": "2000" });
        let record = DynamoDbRecord::read(&held).unwrap().unwrap();
        assert_eq!(record.owner(), Some("me"));
        assert_eq!(record.hold.unwrap().lease, Duration::from_secs(2));
        assert_eq!(DynamoDbRecord::read(&Value::Null), Ok(None));
        for strange in [
            json!({}),
            json!({ "record_version": { "N": "1" }, "fence": { "N": "1" } }),
        ] {
            assert!(DynamoDbRecord::read(&strange).is_err(), "{strange}");
        }
    }
}
