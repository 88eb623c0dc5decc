//! The resource as tables of a real Postgres, beside the resource of this program.

use crate::support::{
    a_write as write, decides_as_the_http_resource, docker_shared,
    one_of_many_writers_at_a_time_decides, own_postgres, resource_client as client,
};
use fencepost::model::{Fence, FencingToken, RowOutcome, WriteStyle};
use fencepost::resource::{ClientError, ResourceClient, WriteAnswer};
use fencing_lock::servers::connect_postgres;
use futures_util::StreamExt;
use std::future::pending;
use std::time::Duration;
use tokio::io::{copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(10);

/// The statement has to decide as the resource of this program does, whatever comes.
#[tokio::test]
async fn tables_decide_as_the_http_resource_does() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    for fence in [Fence::On, Fence::Off] {
        let tables = client(&format!("postgres://{}?fence={fence}", postgres.address));
        tables.prepare().await.unwrap();
        decides_as_the_http_resource(&[tables], fence, 7).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_writers_of_a_row_at_a_time_decides() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let tables = client(&format!("postgres://{}", postgres.address));
    tables.prepare().await.unwrap();
    one_of_many_writers_at_a_time_decides(|| tables.clone()).await;
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
async fn those_who_fall_behind_miss_no_row() {
    const ROWS: u64 = 10_000;
    let _turn = docker_shared();
    let postgres = own_postgres();
    let tables = client(&format!("postgres://{}?announce=on", postgres.address));
    tables.prepare().await.unwrap();
    let rows = tables.follow().await.unwrap();
    let writer = connect_postgres(&postgres.address, SECOND, |_| {}).await;
    let many = format!(
        "WITH logged AS (
            INSERT INTO fencepost_log (position, at, key, outcome, token_seq, body)
            SELECT n, clock_timestamp(), 'k', 'rejected', 0, '0' FROM generate_series(1, {ROWS}) AS n
            RETURNING position
        ) SELECT count(pg_notify('fencepost_log', position::text)::text) FROM logged"
    );
    writer.unwrap().batch_execute(&many).await.unwrap();
    let positions = rows.take(ROWS as usize).map(|row| row.unwrap().seq);
    let positions: Vec<u64> = timeout(TIMEOUT, positions.collect()).await.unwrap();
    assert!(positions.into_iter().eq(1..=ROWS));
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

/// The read of one holder keeps the next one waiting until its transaction ends, in either way.
#[tokio::test]
async fn a_locked_row_is_read_by_one_holder_at_a_time() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let url = format!("postgres://{}?fence=off", postgres.address);
    let holder = || client(&url).with_style(WriteStyle::LockRow).unwrap();
    let (one, other) = (holder(), holder());
    one.prepare().await.unwrap();
    // There is no row yet, which `FOR UPDATE` alone would not lock.
    assert_eq!(one.begin("k", FencingToken(1)).await.unwrap(), None);
    let mut waits = tokio::spawn(async move {
        let stored = other.begin("k", FencingToken(2)).await.unwrap();
        (other, stored)
    });
    let waited = timeout(SECOND, &mut waits).await;
    assert!(waited.is_err(), "the other one read a locked row");
    let first = one.put(&write("k", 1, 0, "a", "first")).await.unwrap();
    assert!(matches!(first, WriteAnswer::Accepted { .. }));
    let (other, stored) = waits.await.unwrap();
    let stored = stored.expect("the other one reads what the first one wrote");
    assert_eq!(stored.value.as_bytes(), b"first");
    // Without a write, the transaction is rolled back.
    other.leave();
    let again = one.begin("k", FencingToken(3)).await.unwrap();
    assert_eq!(again, Some(stored));
}

/// Nothing of a transaction counts that its server has ended, and the writer knows it.
#[tokio::test]
async fn a_write_in_a_transaction_that_was_ended_is_refused() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let url = format!("postgres://{}?fence=off", postgres.address);
    let holder = client(&url).with_style(WriteStyle::LockRow).unwrap();
    holder.prepare().await.unwrap();
    holder.begin("k", FencingToken(1)).await.unwrap();
    let server = connect_postgres(&postgres.address, SECOND, |_| ())
        .await
        .unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
        WHERE state = 'idle in transaction'";
    assert_eq!(server.query_typed(end, &[]).await.unwrap().len(), 1);
    let error = holder
        .put(&write("k", 1, 0, "a", "late"))
        .await
        .unwrap_err();
    assert!(matches!(error, ClientError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("nothing was written"), "{error}");
    assert_eq!(holder.get("k").await.unwrap(), None);
    assert_eq!(holder.log().await.unwrap(), []);
}

/// The answer to the first try stays in here, and somebody with a higher token writes before the next.
#[tokio::test]
async fn a_write_whose_answer_was_lost_is_not_said_to_be_refused() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let front = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = format!("postgres://{}?announce=on", front.local_addr().unwrap());
    let through = client(&through).with_style(WriteStyle::Retry).unwrap();
    let direct = client(&format!("postgres://{}?announce=on", postgres.address));
    direct.prepare().await.unwrap();
    let mut rows = direct.follow().await.unwrap();

    let reader = through.clone();
    let read = tokio::spawn(async move { reader.get("k").await });
    let (mut asks, _) = front.accept().await.unwrap();
    let mut server = TcpStream::connect(&postgres.address).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut asks, &mut server) => panic!("the client went away"),
        read = read => assert_eq!(read.unwrap().unwrap(), None),
    }
    let older = tokio::spawn(async move { through.put(&write("k", 1, 0, "old", "x")).await });
    let forwards = async {
        let _ = copy(&mut asks, &mut server).await;
        pending::<()>().await;
    };
    let applied = tokio::select! {
        row = timeout(TIMEOUT, rows.next()) => row.expect("a row in time").unwrap().unwrap(),
        () = forwards => unreachable!("it has no end"),
    };
    assert_eq!(applied.outcome, RowOutcome::Accepted);
    direct.put(&write("k", 2, 0, "new", "y")).await.unwrap();
    drop((asks, server));
    let relay = async {
        loop {
            let (mut asks, _) = front.accept().await.unwrap();
            let mut server = TcpStream::connect(&postgres.address).await.unwrap();
            let _ = copy_bidirectional(&mut asks, &mut server).await;
        }
    };
    let unknown = tokio::select! {
        answer = older => answer.unwrap().unwrap_err(),
        () = relay => unreachable!("it has no end"),
    };
    assert!(unknown.outcome_unknown(), "{unknown}");
}

#[test]
fn only_a_table_has_several_ways_to_write() {
    let http = client("http://127.0.0.1:1");
    assert!(http.clone().with_style(WriteStyle::LockRow).is_none());
    assert!(http.with_style(WriteStyle::Compare).is_some());
}
