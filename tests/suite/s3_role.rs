//! The S3 role as clients of S3 see it, and what it keeps when it is killed.

mod killed;

use crate::support::{OwnS3, docker_shared};
use fencepost::resource::open_bucket;
use fencepost::resource::s3::{DEFAULT_BUCKET, DEFAULT_KEY};
use fencing_lock::AwsCredentials;
use futures_util::TryStreamExt;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use reqwest::StatusCode;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(10);

fn bucket(endpoint: &str, secret: &str) -> AmazonS3 {
    let credentials = AwsCredentials::new(DEFAULT_KEY, secret);
    open_bucket(endpoint, DEFAULT_BUCKET, &credentials, DEADLINE).expect("a client")
}

/// Runs a program with boto3 on this S3, to its end. Returns what it printed.
async fn with_boto3(s3: &OwnS3, program: String) -> String {
    // moto brings boto3 along.
    let run = "run --rm -i --network host fencepost/moto:5.2 /moto/bin/python -";
    let (endpoint, keys) = (s3.endpoint(), [DEFAULT_BUCKET, DEFAULT_KEY, DEFAULT_KEY]);
    let output = tokio::task::spawn_blocking(move || {
        let mut python = Command::new("docker");
        python.args(run.split(' ')).arg(endpoint).args(keys);
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.stderr(Stdio::piped()).spawn().expect("docker");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(program.as_bytes()).expect("a program");
        drop(stdin);
        child.wait_with_output().expect("its output")
    });
    let output = output.await.expect("it ran");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn boto3_does_not_notice() {
    let _turn = docker_shared();
    let s3 = OwnS3::start().await;
    let said = with_boto3(&s3, include_str!("s3_role/boto3_client.py").to_owned()).await;
    let last = said.lines().last();
    assert_eq!(
        (said.lines().count(), last),
        (12, Some("wrong keys")),
        "{said}"
    );
}

/// The example in the documents is run as it stands there.
#[tokio::test(flavor = "multi_thread")]
async fn the_put_of_the_guide_fences() {
    let _turn = docker_shared();
    let s3 = OwnS3::start().await;
    let guide = include_str!("../../docs/fencing-a-real-resource.md");
    let (_, example) = guide.split_once("```python\n").expect("an example");
    let (example, _) = example.split_once("```").expect("its end");
    let program = include_str!("s3_role/guide.py").replace("# EXAMPLE\n", example);
    assert_eq!(with_boto3(&s3, program).await, "fenced\n");
}

#[tokio::test]
async fn object_store_does_not_notice() {
    let s3 = OwnS3::start().await;
    let store = bucket(&s3.endpoint(), DEFAULT_KEY);
    let path = Path::from("folder/object");
    let put = async |content: &'static str, mode: PutMode| {
        let options = PutOptions::from(mode);
        let payload = PutPayload::from_static(content.as_bytes());
        store.put_opts(&path, payload, options).await
    };
    let first = put("one", PutMode::Create).await.unwrap();
    let twice = put("again", PutMode::Create).await.unwrap_err();
    assert!(matches!(twice, Error::AlreadyExists { .. }), "{twice}");

    let first = UpdateVersion::from(first);
    let second = put("two", PutMode::Update(first.clone())).await.unwrap();
    let late = put("late", PutMode::Update(first.clone())).await;
    let late = late.unwrap_err();
    assert!(matches!(late, Error::Precondition { .. }), "{late}");

    let mut old = GetOptions::default();
    old.version.clone_from(&first.version);
    let old = store.get_opts(&path, old).await.unwrap();
    assert_eq!(old.bytes().await.unwrap(), "one");
    let now = store.get(&path).await.unwrap();
    assert_eq!(now.meta.e_tag, second.e_tag);
    assert_eq!(store.get_range(&path, 1..3).await.unwrap(), "wo");

    let listed: Vec<_> = store.list(None).try_collect().await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((&listed[0].location, listed[0].size), (&path, 3));
    let grouped = store.list_with_delimiter(None).await.unwrap();
    assert_eq!(grouped.common_prefixes, [Path::from("folder")]);

    store.delete(&path).await.unwrap();
    let gone = store.get(&path).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound { .. }), "{gone}");
    put("three", PutMode::Create).await.unwrap();

    let stranger = bucket(&s3.endpoint(), "wrong");
    let denied = stranger.get(&path).await.unwrap_err();
    assert!(matches!(denied, Error::PermissionDenied { .. }), "{denied}");
}

/// Whoever sends something else than a client of S3 is told what is wrong, and nothing is kept.
#[tokio::test]
async fn a_request_that_is_not_signed_is_refused() {
    let s3 = OwnS3::start().await;
    let url = format!("{}/{DEFAULT_BUCKET}/key", s3.endpoint());
    let client = reqwest::Client::new();
    for (header, value, status, code) in [
        ("x-plain", "", StatusCode::FORBIDDEN, "AccessDenied"),
        (
            "authorization",
            "Basic bWU6bWU=",
            StatusCode::BAD_REQUEST,
            "AuthorizationHeaderMalformed",
        ),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=fencepost, SignedHeaders=host, Signature=0",
            StatusCode::BAD_REQUEST,
            "AuthorizationHeaderMalformed",
        ),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=fencepost/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0",
            StatusCode::FORBIDDEN,
            "AccessDenied",
        ),
    ] {
        let answer = client.put(&url).header(header, value).body("x").send();
        let answer = answer.await.expect("an answer");
        assert_eq!(answer.status(), status);
        let text = answer.text().await.expect("a text");
        assert!(text.contains(&format!("<Code>{code}</Code>")), "{text}");
    }
    let log = reqwest::get(format!("{}/-/log", s3.endpoint()))
        .await
        .unwrap();
    // The bucket was made at the start.
    assert_eq!(log.text().await.unwrap().lines().count(), 1);
}
