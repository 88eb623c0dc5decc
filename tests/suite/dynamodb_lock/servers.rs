//! Tables and credentials that are not as a lock needs them.

use super::kit::*;
use crate::support::{
    contenders_exclude_each_other, docker_shared, dynamodb_address, own_dynamodb,
};
use fencing_lock::{AwsCredentials, DynamoDbSettings, LockProblem, ReleaseOutcome};
use serde_json::json;
use uuid::Uuid;

fn in_table(table: &str) -> DynamoDbSettings {
    DynamoDbSettings {
        table: table.to_owned(),
        ..settings()
    }
}

fn unique_table() -> String {
    format!("locks_{}", Uuid::new_v4().simple())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_missing_is_made_by_whoever_comes_first() {
    let _turn = docker_shared();
    let (address, table) = (dynamodb_address(), unique_table());
    let clients = (0..5).map(|_| locks_at(&address, in_table(&table), LONG).0);
    contenders_exclude_each_other(&unique_key(), clients.collect()).await;
}

#[tokio::test]
async fn a_table_of_somebody_else_is_refused_in_words() {
    let _turn = docker_shared();
    let (address, table) = (dynamodb_address(), unique_table());
    let create = json!({
        "TableName": table,
        "KeySchema": [{ "AttributeName": "id", "KeyType": "HASH" }],
        "AttributeDefinitions": [{ "AttributeName": "id", "AttributeType": "N" }],
        "BillingMode": "PAY_PER_REQUEST",
    });
    api(&address).ask("CreateTable", &create).await.unwrap();
    let (locks, _) = locks_at(&address, in_table(&table), LONG);
    let error = locks.try_acquire("account-42").await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
    let named = (error.backend, error.node.as_str(), error.key.as_str());
    assert_eq!(named, ("dynamodb", address.as_str(), "account-42"));
    let text = error.to_string();
    assert!(text.contains("somebody else made this table"), "{text}");
}

#[tokio::test]
async fn an_item_that_is_not_a_lock_is_an_error_and_stays() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let key = unique_key();
    // The table is there then.
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;
    update(&key, "SET note = :v", json!({ "S": "mine" })).await;
    let error = locks.try_acquire(&key).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("somebody else wrote it"), "{text}");
}

/// moto checks signatures once it is told to, with code that is not ours.
#[tokio::test]
async fn requests_are_signed_so_that_a_server_accepts_them_and_wrong_ones_are_refused() {
    let _turn = docker_shared();
    let server = own_dynamodb();
    let address = &server.address;
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let iam = async |body: String| {
        let scope = "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/iam/aws4_request";
        let request = http
            .post(format!("http://{address}/"))
            .header("authorization", scope)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("{body}&UserName=me&Version=2010-05-08"));
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success());
        answer.text().await.unwrap()
    };
    iam("Action=CreateUser".to_owned()).await;
    let policy = "%7B%22Version%22%3A%222012-10-17%22%2C%22Statement%22%3A%5B%7B%22Effect%22%3A%22Allow\
                  %22%2C%22Action%22%3A%22dynamodb%3A%2A%22%2C%22Resource%22%3A%22%2A%22%7D%5D%7D";
    iam(format!(
        "Action=PutUserPolicy&PolicyName=p&PolicyDocument={policy}"
    ))
    .await;
    let key = iam("Action=CreateAccessKey".to_owned()).await;
    let part = |name: &str| {
        let rest = key.split(&format!("<{name}>")).nth(1);
        let part = rest.and_then(|rest| rest.split('<').next());
        part.expect(name).to_owned()
    };
    let check = http
        .post(format!("http://{address}/moto-api/reset-auth"))
        .header("content-type", "text/plain")
        .body("0");
    assert!(check.send().await.unwrap().status().is_success());

    let (access_key, secret) = (part("AccessKeyId"), part("SecretAccessKey"));
    let with = |access_key: &str, secret: &str| {
        let credentials = AwsCredentials::new(access_key, secret);
        let settings = DynamoDbSettings {
            credentials,
            ..settings()
        };
        locks_at(address, settings, LONG).0
    };
    let lease = with(&access_key, &secret).acquire("ü", soon()).await;
    assert_eq!(lease.unwrap().release().await, ReleaseOutcome::Released);
    for locks in [with(&access_key, "s3cret"), with("AKIDNOBODY", &secret)] {
        let error = locks.try_acquire("account-42").await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains("check the access key"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
