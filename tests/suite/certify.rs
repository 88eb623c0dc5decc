//! `fencepost certify` on stores that fence, on some that do not, and on some that are not there.

mod mishaps;
mod peers;

use crate::support::{
    Ended, OwnS3, docker_shared, fencepost, http_resource, machine_shared, own_postgres,
};
use fencepost::model::Fence;
use fencepost::resource::open_bucket;
#[cfg(debug_assertions)]
use fencepost::resource::s3;
use fencepost::resource::s3::{DEFAULT_BUCKET, DEFAULT_KEY};
use fencing_lock::AwsCredentials;
use fencing_lock::servers::connect_postgres;
use futures_util::TryStreamExt;
use object_store::ObjectStore;
use serde_json::Value;
use std::time::Duration;
use tokio::task::spawn_blocking;

const DEADLINE: Duration = Duration::from_secs(10);

async fn certify(arguments: &[&str]) -> Ended {
    let arguments: Vec<String> = ["certify"]
        .iter()
        .chain(arguments)
        .map(|it| it.to_string())
        .collect();
    let ended = spawn_blocking(move || {
        fencepost(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
    });
    ended.await.expect("the program ran")
}

async fn certify_s3(endpoint: &str, more: &[&str]) -> Ended {
    let store = format!("s3://{DEFAULT_BUCKET}");
    let arguments = [&[store.as_str(), "--endpoint", endpoint], more].concat();
    certify(&arguments).await
}

/// The names of the properties with this verdict, as a program reads them.
fn with_verdict(told: &str, verdict: &str) -> Vec<String> {
    let told: Value = serde_json::from_str(told).expect("a document");
    let rows = told["properties"].as_array().expect("a list");
    let found = rows.iter().filter(|row| row["verdict"] == verdict);
    let names = found.map(|row| row["property"].as_str().expect("a name").to_owned());
    names.collect()
}

/// The keys that a store has.
async fn objects_at(endpoint: &str) -> Vec<String> {
    let credentials = AwsCredentials::new(DEFAULT_KEY, DEFAULT_KEY);
    let store = open_bucket(endpoint, DEFAULT_BUCKET, &credentials, DEADLINE).unwrap();
    let listed: Vec<_> = store.list(None).try_collect().await.expect("a list");
    let names = listed.iter().map(|object| object.location.to_string());
    names.collect()
}

#[tokio::test]
async fn our_own_s3_fences_and_nothing_is_left_in_it() {
    let _turn = machine_shared();
    let s3 = OwnS3::start().await;
    let endpoint = s3.endpoint();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let junit = folder.path().join("junit.xml");
    let file = junit.to_str().expect("a plain path");
    let ended = certify_s3(&endpoint, &["--format", "json", "--junit", file]).await;
    let ended = ended.expect_code(0);
    assert_eq!(with_verdict(&ended.stdout, "kept").len(), 10, "{ended}");
    assert_eq!(with_verdict(&ended.stdout, "not_asked"), ["restart"]);
    let junit = std::fs::read_to_string(junit).expect("the file was written");
    assert!(
        junit.contains("tests=\"11\" failures=\"0\" errors=\"0\""),
        "{junit}"
    );
    assert_eq!(objects_at(&endpoint).await, Vec::<String>::new());
    let rows = reqwest::get(format!("{endpoint}/-/log")).await.unwrap();
    let rows = rows.text().await.unwrap();
    assert!(rows.lines().count() > 20, "{rows}");
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn an_s3_that_ignores_conditions_is_found_out() {
    let _turn = machine_shared();
    let mutant = Some(s3::Mutant::IgnoreConditions);
    let s3 = OwnS3::with(|config| config.mutant = mutant).await;
    let endpoint = s3.endpoint();
    let ended = certify_s3(&endpoint, &["--format", "json"])
        .await
        .expect_code(1);
    let broken = with_verdict(&ended.stdout, "broken");
    for property in [
        "concurrent-creates",
        "stale-version",
        "slow-body",
        "lost-answer",
    ] {
        assert!(
            broken.iter().any(|it| it == property),
            "{property}: {ended}"
        );
    }
}

#[cfg(debug_assertions)]
#[tokio::test]
async fn an_s3_that_compares_before_the_body_is_there_is_found_out() {
    let _turn = machine_shared();
    let mutant = Some(s3::Mutant::CompareEarly);
    let s3 = OwnS3::with(|config| config.mutant = mutant).await;
    let endpoint = s3.endpoint();
    let ended = certify_s3(&endpoint, &["--format", "json"])
        .await
        .expect_code(1);
    let broken = with_verdict(&ended.stdout, "broken");
    assert!(broken.iter().any(|it| it == "slow-body"), "{ended}");
    assert!(!broken.iter().any(|it| it == "stale-version"), "{ended}");
}

#[tokio::test]
async fn our_own_resource_fences() {
    let _turn = machine_shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = http_resource(Fence::On, &folder.path().join("on")).await;
    let ended = certify(&[&url, "--format", "json"]).await.expect_code(0);
    assert_eq!(with_verdict(&ended.stdout, "broken"), Vec::<String>::new());
    let url = http_resource(Fence::Off, &folder.path().join("off")).await;
    let ended = certify(&[&url, "--format", "json"]).await.expect_code(1);
    let broken = with_verdict(&ended.stdout, "broken");
    for property in ["stale-version", "lost-answer"] {
        assert!(
            broken.iter().any(|it| it == property),
            "{property}: {ended}"
        );
    }
}

/// What others have in the database stays as it is, also tables with the names of ours.
#[tokio::test]
async fn a_postgres_fences_and_nothing_else_is_touched_in_it() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let url = format!("postgres://{}", postgres.address);
    let session = connect_postgres(&postgres.address, DEADLINE, |_| {}).await;
    let session = session.expect("a connection");
    let theirs = "CREATE TABLE fencepost_values (key text PRIMARY KEY, note text); \
        INSERT INTO fencepost_values VALUES ('theirs', 'stays'); \
        CREATE ROLE guest LOGIN;";
    session.batch_execute(theirs).await.expect("their table");
    let ended = certify(&[&url, "--format", "json"]).await.expect_code(0);
    assert_eq!(with_verdict(&ended.stdout, "broken"), Vec::<String>::new());
    // A guest may not make a schema.
    let guest = format!("postgres://guest@{}/postgres", postgres.address);
    certify(&[&guest]).await.expect_code(69).expect_said(&[
        "permission denied",
        "needs the right to create a schema in the database",
    ]);
    let left = "SELECT count(*), (SELECT string_agg(key || ' ' || note, ',') FROM fencepost_values) \
        FROM information_schema.schemata WHERE schema_name LIKE 'fencepost%'";
    let left = session.query_one(left, &[]).await.expect("an answer");
    assert_eq!(left.get::<_, i64>(0), 0);
    assert_eq!(left.get::<_, String>(1), "theirs stays");
}

#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_said_with_a_remedy() {
    let _turn = machine_shared();
    let s3 = OwnS3::start().await;
    let endpoint = s3.endpoint();
    let elsewhere = ["s3://elsewhere", "--endpoint", &endpoint];
    certify(&elsewhere)
        .await
        .expect_code(69)
        .expect_said(&["cannot certify s3://elsewhere", "create it first"]);
    certify_s3(&endpoint, &["--secret-key", "wrong"])
        .await
        .expect_code(69)
        .expect_said(&["check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"]);
    certify(&["s3://bucket"])
        .await
        .expect_code(64)
        .expect_said(&["give --endpoint"]);
    certify(&["s3://bucket", "--endpoint", "127.0.0.1:9000"])
        .await
        .expect_code(64)
        .expect_said(&[
            "cannot use the endpoint 127.0.0.1:9000",
            "give http://HOST:PORT",
        ]);
    certify(&["ftp://somewhere"])
        .await
        .expect_code(64)
        .expect_said(&["it is no address of a store"]);
    certify(&["http://127.0.0.1:1"])
        .await
        .expect_code(69)
        .expect_said(&["no connection: Connection refused"]);
    // A resource and a web server are no S3.
    let folder = tempfile::tempdir().expect("a temporary folder");
    let resource = http_resource(Fence::On, folder.path()).await;
    certify_s3(&resource, &[])
        .await
        .expect_code(69)
        .expect_said(&["404 Not Found is not an answer of an S3; check --endpoint"]);
    // An S3 answers 404 to what is not there, as a resource does.
    certify(&[&endpoint])
        .await
        .expect_code(69)
        .expect_said(&["check the address"]);
}
