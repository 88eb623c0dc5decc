//! The resource as tables of a real Postgres, beside the resource of this program.

use crate::support::{docker_shared, own_postgres};
use fencepost::model::{Fence, FencingToken, LogRow, RowOutcome};
use fencepost::resource::{
    self, ClientError, Config, ResourceClient, Stored, WriteAnswer, WriteRequest,
};
use fencing_lock::servers::connect_postgres;
use futures_util::StreamExt;
use futures_util::future::join_all;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::timeout;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

fn client(url: &str) -> ResourceClient {
    ResourceClient::new(url, TIMEOUT).unwrap()
}

fn write(key: &str, token: u64, seq: u64, owner: &str, body: &str) -> WriteRequest {
    WriteRequest {
        key: key.to_owned(),
        token: Some(FencingToken(token)),
        token_seq: seq,
        owner: (!owner.is_empty()).then(|| owner.to_owned()),
        based_on: Some(token),
        body: body.to_owned().into(),
    }
}

/// Starts the resource of this program, which stops with the test.
async fn http_resource(fence: Fence) -> (tempfile::TempDir, ResourceClient) {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let opened = resource::open(Config::new(fence, folder.path())).unwrap();
    tokio::spawn(opened.serve(listener, std::future::pending()));
    (folder, client(&url))
}

/// A row as both kinds of resource have to have it. Positions may have gaps in one of them, so
/// each row is named by its place in the log.
fn comparable(log: &[LogRow]) -> Vec<LogRow> {
    let numbered = log.iter().zip(1..);
    let row = |(row, place): (&LogRow, u64)| LogRow {
        seq: place,
        at_ns: 0,
        ..row.clone()
    };
    numbered.map(row).collect()
}

fn value_of(stored: Option<Stored>) -> Option<(String, Option<FencingToken>)> {
    stored.map(|stored| (format!("{:?}", stored.value), stored.max_fence))
}

/// The statement has to decide as the resource of this program does, whatever comes.
#[tokio::test]
async fn tables_decide_as_the_http_resource_does() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    for fence in [Fence::On, Fence::Off] {
        let (_folder, http) = http_resource(fence).await;
        let tables = client(&format!("postgres://{}?fence={fence}", postgres.address));
        tables.prepare().await.unwrap();
        let before = tables.log().await.unwrap().len();
        let mut random = fastrand::Rng::with_seed(7);
        for number in 0..400 {
            let key = format!("{fence}-{}", random.u8(0..3));
            let owner = ["", "a", "b"][random.usize(0..3)];
            let body = ["x", "y"][random.usize(0..2)];
            let attempt = write(&key, random.u64(1..12), random.u64(0..3), owner, body);
            let answers = (
                http.put(&attempt).await.unwrap(),
                tables.put(&attempt).await.unwrap(),
            );
            match answers {
                (WriteAnswer::Accepted { .. }, WriteAnswer::Accepted { .. }) => {}
                (one, other) => assert_eq!(one, other, "write {number}: {attempt:?}"),
            }
            let values = (
                http.get(&key).await.unwrap(),
                tables.get(&key).await.unwrap(),
            );
            assert_eq!(value_of(values.0), value_of(values.1), "write {number}");
        }
        let (http, tables) = (http.log().await.unwrap(), tables.log().await.unwrap());
        assert_eq!(comparable(&http), comparable(&tables[before..]));
        let outcomes = [
            RowOutcome::Accepted,
            RowOutcome::Duplicate,
            RowOutcome::Rejected,
        ];
        let came = |outcome: &&RowOutcome| http.iter().any(|row| row.outcome == **outcome);
        let expected = if fence == Fence::On { 3 } else { 1 };
        assert_eq!(outcomes.iter().filter(came).count(), expected);
    }
}

/// Writers of one key come at the same moment, and each sees what the one before it left.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writers_at_a_time_decides() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let tables = client(&format!("postgres://{}", postgres.address));
    tables.prepare().await.unwrap();
    for round in 0..10 {
        let key = format!("key-{round}");
        let writers = (1..=16).map(|token| {
            let (tables, key) = (tables.clone(), key.clone());
            let owner = format!("owner-{token}");
            tokio::spawn(async move { tables.put(&write(&key, token, 0, &owner, "x")).await })
        });
        for answer in join_all(writers).await {
            if let WriteAnswer::Rejected { seen, got } = answer.unwrap().unwrap() {
                assert!(
                    seen >= got,
                    "{got} was refused although {seen} was the highest"
                );
            }
        }
        let log = tables.log().await.unwrap();
        let mut highest = None;
        for row in log.iter().filter(|row| row.key == key) {
            assert_eq!(row.seen, highest, "{row:?}");
            assert_eq!(
                row.outcome == RowOutcome::Accepted,
                row.token > highest,
                "{row:?}"
            );
            highest = highest.max(row.token);
        }
        let stored = tables.get(&key).await.unwrap().unwrap();
        assert_eq!(stored.max_fence, Some(FencingToken(16)));
        assert_eq!(highest, Some(FencingToken(16)));
    }
}

#[tokio::test]
async fn those_who_follow_hear_of_every_row() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let tables = client(&format!("postgres://{}?announce=on", postgres.address));
    tables.prepare().await.unwrap();
    tables.put(&write("k", 1, 0, "a", "x")).await.unwrap();
    let mut rows = tables.follow().await.unwrap();
    tables.put(&write("k", 3, 0, "b", "y")).await.unwrap();
    tables.put(&write("k", 2, 0, "c", "z")).await.unwrap();
    for (token, outcome) in [
        (1, RowOutcome::Accepted),
        (3, RowOutcome::Accepted),
        (2, RowOutcome::Rejected),
    ] {
        let row = timeout(TIMEOUT, rows.next()).await.expect("a row in time");
        let row = row.unwrap().unwrap();
        assert_eq!(
            (row.token, row.outcome),
            (Some(FencingToken(token)), outcome)
        );
    }
}

#[tokio::test]
async fn what_is_wrong_is_said_and_nothing_is_written() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let admin = connect_postgres(&postgres.address, 5 * SECOND, |_| {})
        .await
        .unwrap();
    let others = "CREATE DATABASE theirs";
    admin.batch_execute(others).await.unwrap();
    let theirs = format!("postgres://{}/theirs", postgres.address);
    let inside = connect_postgres(&theirs, 5 * SECOND, |_| {}).await.unwrap();
    let table = "CREATE TABLE fencepost_values (key text PRIMARY KEY, note text)";
    inside.batch_execute(table).await.unwrap();
    let wrong = client(&theirs).prepare().await.unwrap_err();
    assert!(matches!(wrong, ClientError::Refused { .. }), "{wrong:?}");
    assert!(wrong.to_string().contains("fencepost_values"), "{wrong}");
    assert!(
        wrong.to_string().contains("somebody else made this table"),
        "{wrong}"
    );

    let tables = client(&format!("postgres://{}", postgres.address));
    let missing = tables.put(&write("k", 1, 0, "a", "x")).await.unwrap_err();
    assert!(
        matches!(missing, ClientError::Refused { .. }),
        "{missing:?}"
    );
    tables.prepare().await.unwrap();
    let mut tokenless = write("k", 1, 0, "a", "x");
    tokenless.token = None;
    for attempt in [
        tokenless,
        write("", 1, 0, "a", "x"),
        write("k", u64::MAX, 0, "a", "x"),
    ] {
        let refused = tables.put(&attempt).await.unwrap_err();
        assert!(!refused.outcome_unknown(), "{refused}");
    }
    assert_eq!(tables.log().await.unwrap(), []);

    let nobody = client("postgres://127.0.0.1:1");
    let unanswered = nobody.put(&write("k", 1, 0, "a", "x")).await.unwrap_err();
    assert!(
        unanswered.to_string().contains("the write to k"),
        "{unanswered}"
    );
    for url in ["postgres://h:1?fence=maybe", "postgres://h:1?announce=1"] {
        let error = ResourceClient::new(url, TIMEOUT).unwrap_err();
        assert!(error.to_string().contains("it is on or off"), "{error}");
    }
}
