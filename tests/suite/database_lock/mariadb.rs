//! What is particular to the locks of a MariaDB.

use super::kit::*;
use super::observer::Observer;
use crate::support::{docker_shared, mariadb_address, own_mariadb};
use fencepost::model::LockEventKind::{Expired, Granted, Released};
use fencing_lock::servers::MariadbConnection;
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn a_holder_hears_at_its_next_look_that_its_session_was_ended() {
    let _turn = docker_shared();
    let (locks, _) = Kind::Mariadb.locks(6 * SECOND);
    let (others, _) = Kind::Mariadb.locks(LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    end_the_holder(&mariadb(&mariadb_address()).await, &key).await;
    let told = timeout(5 * SECOND, lease.lost()).await;
    assert_eq!(told, Ok(LostReason::SessionOver));
    let next = others.acquire(&key, soon()).await.unwrap();
    assert!(next.fence() > lease.fence());
    assert_eq!(lease.release().await, ReleaseOutcome::Unknown);
    assert_eq!(next.release().await, ReleaseOutcome::Released);
}

/// Their names at the server are hashes: it does not tell upper from lower case, and takes 64
/// characters.
#[tokio::test]
async fn keys_that_differ_in_case_or_at_their_end_do_not_exclude_each_other() {
    let _turn = docker_shared();
    let (locks, _) = Kind::Mariadb.locks(LONG);
    let stem = unique_key() + &"k".repeat(100);
    let keys = [stem.clone(), stem.to_uppercase(), stem.clone() + "2"];
    let mut leases = Vec::new();
    for key in &keys {
        leases.push(locks.acquire(key, soon()).await.unwrap());
    }
    for lease in leases {
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

/// A wait that nobody awaits any more would hold the lock for a moment when it is granted.
#[tokio::test]
async fn a_wait_that_is_given_up_is_ended_at_the_server() {
    let _turn = docker_shared();
    let address = Kind::Mariadb.database().await;
    let server = mariadb(&address).await;
    let (locks, metrics) = Kind::Mariadb.locks_at(&address, LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let sessions = "SELECT COUNT(*) FROM information_schema.PROCESSLIST
                    WHERE DB = DATABASE() AND STATE = 'User lock'";
    for _ in 0..3 {
        let waiting = locks.acquire(&key, Instant::now() + LONG);
        let until_it_waits = async {
            while server.number(sessions).await.unwrap() != Some(1) {
                sleep(SECOND / 100).await;
            }
        };
        tokio::select! {
            _ = waiting => panic!("somebody holds it"),
            waits = timeout(5 * SECOND, until_it_waits) => waits.expect("it waits at the server"),
        }
        let until_it_ended = async {
            while server.number(sessions).await.unwrap() != Some(0) {
                sleep(SECOND / 100).await;
            }
        };
        let ended = timeout(5 * SECOND, until_it_ended).await;
        ended.expect("the server ends it");
    }
    assert_eq!(metrics.queue_length.get(), 0);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

/// As a proxy does that gives one session to two clients.
#[tokio::test]
async fn a_session_that_serves_somebody_else_is_refused() {
    let _turn = docker_shared();
    let server = own_mariadb();
    let admin = mariadb(&server.address).await;
    admin
        .ask("SET GLOBAL init_connect = \"SET @fencing_lock_owner = 'another'\"")
        .await
        .unwrap();
    // Who may do anything is spared the setting.
    admin.ask("CREATE USER shared").await.unwrap();
    let grant = "GRANT ALL PRIVILEGES ON fencing_lock.* TO shared";
    admin.ask(grant).await.unwrap();
    let address = format!("mariadb://shared@{}", server.address);
    let (locks, _) = Kind::Mariadb.locks_at(&address, LONG);
    let error = locks.try_acquire("k").await.unwrap_err();
    let LockProblem::Refused(words) = &error.problem else {
        panic!("{error}");
    };
    assert!(words.contains("pooler"), "{words}");
    // A server that is set to read only is refused to those whom it would let write, too.
    admin.ask("SET GLOBAL read_only = 1").await.unwrap();
    let (locks, _) = Kind::Mariadb.locks_at(&server.address, LONG);
    let error = locks.try_acquire("k").await.unwrap_err();
    assert!(error.to_string().contains("name the primary"), "{error}");
}

#[tokio::test]
async fn a_table_of_somebody_else_and_a_stranger_are_refused_in_words() {
    let _turn = docker_shared();
    let server = mariadb_address();
    for (address, words) in [
        (
            database("CREATE TABLE fencing_lock_tokens (a INT)").await,
            "somebody else made this table",
        ),
        (
            // Without a primary key, tokens would begin again and again.
            database(
                "CREATE TABLE fencing_lock_tokens AS SELECT CAST('account-42' AS BINARY) AS
                 lock_key, 1 AS token, CAST('a' AS BINARY(64)) AS owner, 1 AS session",
            )
            .await,
            "somebody else made this table",
        ),
        (
            format!("mariadb://fencing_lock@{server}/nowhere"),
            "Unknown database",
        ),
        (format!("mariadb://nobody:s3cret@{server}"), "Access denied"),
        (
            format!("mariadb://fencing_lock:s3cret@{server}"),
            "Access denied",
        ),
    ] {
        let (locks, _) = Kind::Mariadb.locks_at(&address, LONG);
        let error = locks.try_acquire("account-42").await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, ("mariadb", server.as_str(), "account-42"));
        let text = error.to_string();
        assert!(text.contains(words) && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_lock_is_seen_from_its_grant_to_the_end_of_its_session() {
    let _turn = docker_shared();
    let address = Kind::Mariadb.database().await;
    let observer = Observer::start(Kind::Mariadb, address.clone()).await;
    let key = unique_key();
    let (locks, _) = Kind::Mariadb.locks_at(&address, LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    let owner = first.owner().to_owned();
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = locks.acquire(&key, soon()).await.unwrap();
    let next_owner = second.owner().to_owned();
    observer.has_told(&key, 3).await;
    end_the_holder(&mariadb(&address).await, &key).await;
    observer.has_told(&key, 4).await;
    let rows = observer.stop(&key).await;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.kind, row.owner.clone().unwrap(), row.token.unwrap().0))
        .collect();
    let expected = [
        (Granted, owner.clone(), 1),
        (Released, owner, 1),
        (Granted, next_owner.clone(), 2),
        (Expired, next_owner, 2),
    ];
    assert_eq!(told, expected);
    let left = "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE()";
    let left = mariadb(&address).await.number(left).await.unwrap();
    assert_eq!(left, Some(0), "nothing of the observer stays");
}

/// Makes a database of its own, with this in it, and returns its address.
async fn database(statement: &str) -> String {
    let address = Kind::Mariadb.database().await;
    mariadb(&address).await.ask(statement).await.unwrap();
    address
}

async fn end_the_holder(server: &MariadbConnection, key: &str) {
    let session = format!("SELECT session FROM fencing_lock_tokens WHERE lock_key = '{key}'");
    let session = server.number(session).await.unwrap().expect("a session");
    server.ask(format!("KILL {session}")).await.unwrap();
}
