//! One DynamoDB, or a server that speaks its protocol.

mod observer;
mod questions;
mod rows;

use super::floor::{BareWrites, Floor, twice};
use super::{Defect, LockServers, Opened, Program, Service, only};
use crate::model::{ClockName, ServicePlan};
use fencing_lock::servers::{DynamoDbApi, new_dynamodb_table};
use fencing_lock::{AwsCredentials, DynamoDbBackend, DynamoDbSettings, Env, LockProblem};
use observer::observe_dynamodb;
use serde_json::json;
use std::sync::Arc;

const PROGRAM: Program = Program {
    name: "dynamodb",
    about: "A DynamoDB, with the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    own_keys: "fencing_locks/",
    is_cluster: false,
    has_places: false,
    answers: &questions::DynamoDbServer,
    look: |server| {
        format!("aws dynamodb scan --endpoint-url http://{server} --table-name fencing_locks")
    },
    guest: None,
    observe: |watch, layout| Box::pin(observe_dynamodb(watch, layout)),
};

pub(super) const DYNAMODB: Service = Service {
    group: "dynamodb",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: Some(1),
        words: "one DynamoDB",
        topology: "dynamodb",
    },
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
    in_order: |_| false,
    plan: ServicePlan {
        // No clock of a server ends a lease. Those of the clients do, and a moved clock of a
        // worker excuses nothing.
        leases_by: ClockName::Monotonic,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "a number of the item, in the conditional write that grants",
    floor: Floor {
        words: "two PutItems of one item",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |_| None,
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("dynamodb", servers)?;
        Ok(Arc::new(DynamoDbBackend::new(server, settings())?))
    },
};

/// Returns the settings of the environment. Without credentials there, they are those of
/// compose/dynamodb.yml, which a server in memory takes and AWS refuses.
fn settings() -> DynamoDbSettings {
    DynamoDbSettings::from_environment().unwrap_or_else(|| {
        DynamoDbSettings::new("us-east-1", AwsCredentials::new("fencepost", "fencepost"))
    })
}

/// A table that no lock uses.
const BARE_TABLE: &str = "fencepost_floor";

async fn bare_writes(servers: &[String]) -> Result<BareWrites, LockProblem> {
    let server = servers.first().map_or("", String::as_str);
    let api = Arc::new(DynamoDbApi::new(server, settings(), Env::default())?);
    // A table that is there already is as good; the first write would say otherwise.
    let _ = api
        .ask("CreateTable", &new_dynamodb_table(BARE_TABLE))
        .await;
    Ok(twice(api, |api| async move {
        let item = json!({ "TableName": BARE_TABLE, "Item": { "lock_key": { "S": "floor" } } });
        api.ask("PutItem", &item).await.map(drop)
    }))
}
