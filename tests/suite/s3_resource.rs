//! The resource as objects of an S3, beside the resource of this program.

use crate::support::{
    OwnS3, a_write, decides_as_the_http_resource, docker_shared, fencepost, fresh_folder,
    one_of_many_writers_at_a_time_decides, resource_client,
};
use fencepost::model::{Fence, FencingToken};
use fencepost::resource::{ClientError, MAX_BODY_BYTES, ResourceClient, WriteAnswer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const DEADLINE: Duration = Duration::from_secs(10);

/// Whoever has read the object of a newer holder must not replace it either.
#[tokio::test]
async fn a_holder_that_has_read_a_newer_token_is_refused() {
    let s3 = OwnS3::start().await;
    let url = format!("s3://{}", s3.address);
    let (old, new) = (resource_client(&url), resource_client(&url));
    let written = new.put(&a_write("k", 2, 0, "new", "y")).await.unwrap();
    old.get("k").await.unwrap().expect("the newer value");
    let refused = WriteAnswer::Rejected {
        seen: FencingToken(2),
        got: FencingToken(1),
    };
    let late = a_write("k", 1, 0, "old", "x");
    assert_eq!(old.put(&late).await.unwrap(), refused);
    // The same write again is the same write.
    let again = new.put(&a_write("k", 2, 0, "new", "y")).await.unwrap();
    assert_eq!(again, written);
    assert_eq!(old.log().await.unwrap().len(), 3);
}

/// The first connection through here ends when the answer comes, after somebody with a higher token
/// has written.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_said_to_be_refused() {
    let s3 = OwnS3::start().await;
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = resource_client(&format!("s3://{}", front.local_addr().unwrap()));
    let direct = resource_client(&format!("s3://{}", s3.address));
    let relay = async {
        let (mut client, _) = front.accept().await.unwrap();
        let mut server = TcpStream::connect(&s3.address).await.unwrap();
        let ((mut asks, _), (mut answers, mut asked)) = (client.split(), server.split());
        tokio::select! {
            _ = copy(&mut asks, &mut asked) => panic!("the client went away"),
            first = answers.read_u8() => first.expect("an answer"),
        };
        let newer = direct.put(&a_write("k", 2, 0, "new", "y")).await;
        newer.expect("a higher token");
        drop(client);
        loop {
            let (mut client, _) = front.accept().await.unwrap();
            let mut server = TcpStream::connect(&s3.address).await.unwrap();
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    };
    let older = a_write("k", 1, 0, "old", "x");
    let unknown = tokio::select! {
        answer = through.put(&older) => answer.unwrap_err(),
        () = relay => unreachable!("it has no end"),
    };
    assert!(unknown.outcome_unknown(), "{unknown}");
    let log = direct.log().await.unwrap();
    assert_eq!(log[0].owner.as_deref(), Some("old"), "it was applied");
}

/// Puts to a server that answers one connection after the other, and closes those without an answer.
/// Returns the error of the put, and how many connections came.
async fn answered_with(answers: &[Option<&str>]) -> (ClientError, usize) {
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = resource_client(&format!("s3://{}", front.local_addr().unwrap()));
    let mut answered = Vec::new();
    let server = async {
        loop {
            let (mut stream, _) = front.accept().await.unwrap();
            stream.read_u8().await.unwrap();
            let answer = answers.get(answered.len()).copied().flatten();
            if let Some(status) = answer {
                let head =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
            }
            // A connection that is closed with something unread takes its answer back.
            answered.push(answer.is_some().then_some(stream));
        }
    };
    let write = a_write("k", 1, 0, "a", "x");
    let error = tokio::select! {
        answer = client.put(&write) => answer.unwrap_err(),
        () = server => unreachable!("it has no end"),
    };
    (error, answered.len())
}

#[tokio::test]
async fn what_a_server_has_answered_is_not_asked_again() {
    for status in ["400 Bad Request", "501 Not Implemented", "503 Slow Down"] {
        let (error, asked) = answered_with(&[Some(status)]).await;
        assert!(error.outcome_unknown(), "{error}");
        assert_eq!(asked, 1, "{error}");
    }
}

/// The keys may have been taken away after the first try was applied.
#[tokio::test]
async fn a_refusal_after_a_lost_answer_leaves_the_outcome_open() {
    let (error, asked) = answered_with(&[None, Some("403 Forbidden")]).await;
    assert_eq!(asked, 2, "{error}");
    assert!(error.outcome_unknown(), "{error}");
    let (error, _) = answered_with(&[Some("403 Forbidden")]).await;
    assert!(!error.outcome_unknown(), "{error}");
}

/// A client remembers what it has seen last; several of them remember different things.
#[tokio::test]
async fn objects_decide_as_the_http_resource_does() {
    for fence in [Fence::On, Fence::Off] {
        for (seed, clients) in [(7, 1), (8, 2), (9, 3)] {
            let s3 = OwnS3::start().await;
            let url = format!("s3://{}?fence={fence}", s3.address);
            let clients: Vec<_> = (0..clients).map(|_| resource_client(&url)).collect();
            decides_as_the_http_resource(&clients, fence, seed).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writers_of_an_object_at_a_time_decides() {
    let s3 = OwnS3::start().await;
    let client = || resource_client(&format!("s3://{}", s3.address));
    one_of_many_writers_at_a_time_decides(client).await;
}

#[tokio::test]
async fn what_is_wrong_is_said_and_nothing_is_written() {
    let s3 = OwnS3::start().await;
    let objects = resource_client(&format!("s3://{}", s3.address));
    let mut tokenless = a_write("k", 1, 0, "a", "x");
    tokenless.token = None;
    let large = "x".repeat(MAX_BODY_BYTES);
    for attempt in [
        tokenless,
        a_write("", 1, 0, "a", "x"),
        a_write("a//b", 1, 0, "a", "x"),
        a_write("k", 1, 0, "a", &large),
    ] {
        let refused = objects.put(&attempt).await.unwrap_err();
        assert!(!refused.outcome_unknown(), "{refused}");
    }
    for (url, cause) in [
        (format!("s3://{}/elsewhere", s3.address), "NoSuchBucket"),
        (
            format!("s3://me:wrong@{}", s3.address),
            "InvalidAccessKeyId",
        ),
        (
            format!("s3://fencepost:wrong@{}", s3.address),
            "SignatureDoesNotMatch",
        ),
    ] {
        let refused = resource_client(&url)
            .put(&a_write("k", 1, 0, "a", "x"))
            .await;
        let refused = refused.unwrap_err();
        assert!(!refused.outcome_unknown(), "{refused}");
        assert!(refused.to_string().contains(cause), "{refused}");
        assert!(!refused.to_string().contains("wrong@"), "{refused}");
    }
    assert_eq!(objects.log().await.unwrap(), []);
    for url in ["s3://h:1?fence=maybe", "s3://h:1?announce=on", "s3://h"] {
        let error = ResourceClient::new(url, DEADLINE).unwrap_err();
        assert!(error.to_string().contains("is not an address"), "{error}");
    }
}

#[test]
fn scenarios_come_out_as_expected_on_objects() {
    let _turn = docker_shared();
    for scenario in [
        "pause-gt-ttl",
        "delayed-write",
        "lost-update-behind-a-fence",
    ] {
        let folder = fresh_folder(&format!("s3-{scenario}"));
        let folder = folder.to_str().expect("a readable path");
        let run = ["run", scenario, "--runtime", "docker", "--results", folder];
        let ended = fencepost(&[&run[..], &["--set", "resource=s3", "--format", "json"]].concat());
        ended.expect_code(0);
    }
}
