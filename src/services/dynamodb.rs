//! One DynamoDB, or a server that speaks its protocol.

use super::observe::observe_dynamodb;
use super::{Defect, LockServers, Opened, Program, Readback, Service};
use crate::model::{ClockName, ServicePlan, joined};
use fencing_lock::{AwsCredentials, DynamoDbBackend, DynamoDbSettings, LockError, LockProblem};
use std::net::SocketAddr;
use std::sync::Arc;

const PROGRAM: Program = Program {
    name: "dynamodb",
    about: "A DynamoDB, with the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    own_keys: "fencing_locks/",
    is_cluster: false,
    has_places: false,
    answers: Readback::DynamoDb,
    hints,
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
    ttl_conflict: |_| None,
    open: |_, servers, _: Option<Defect>| -> Opened {
        let [server] = servers else {
            let problem = format!("one server is needed, and {} are named", servers.len());
            let problem = LockProblem::BadServers(problem);
            return Err(LockError::new("dynamodb", servers.join(","), "", problem));
        };
        Ok(Arc::new(DynamoDbBackend::new(server, settings())?))
    },
};

/// Returns the settings of the environment. Without credentials there, they are those of
/// compose/dynamodb.yml, which a server in memory takes and AWS refuses.
pub fn settings() -> DynamoDbSettings {
    DynamoDbSettings::from_environment().unwrap_or_else(|| {
        DynamoDbSettings::new("us-east-1", AwsCredentials::new("fencepost", "fencepost"))
    })
}

fn hints(servers: &[SocketAddr]) -> Vec<String> {
    let all = joined(servers, ",");
    let look = servers.first().map(|server| {
        format!("aws dynamodb scan --endpoint-url http://{server} --table-name fencing_locks")
    });
    let contend = format!("fencepost contend --dynamodb {all} --duration 5s");
    look.into_iter().chain([contend]).collect()
}
