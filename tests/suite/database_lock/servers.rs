//! Databases that are not as a lock needs them.

use super::kit::*;
use crate::support::{contenders_exclude_each_other, docker_shared, postgres_address};
use fencing_lock::LockProblem;

/// Makes a Postgres database of its own, with these statements in it, and returns its address.
async fn database(statements: &str) -> String {
    let address = Kind::Lease.database().await;
    let (_, name) = address.rsplit_once('/').expect("its name");
    let statements = statements.replace("DB", name);
    let inside = connection_to(&address).await;
    inside.batch_execute(&statements).await.unwrap();
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_missing_is_made_by_whoever_comes_first() {
    let _turn = docker_shared();
    for kind in KINDS {
        let address = kind.database().await;
        let clients = (0..10).map(|_| kind.locks_at(&address, LONG).0).collect();
        contenders_exclude_each_other(&unique_key(), clients).await;
    }
}

#[tokio::test]
async fn a_table_of_somebody_else_a_replica_and_a_stranger_are_refused_in_words() {
    let _turn = docker_shared();
    let server = postgres_address();
    for (address, words) in [
        (
            database("CREATE TABLE fencing_locks (key int)").await,
            "somebody else made this table",
        ),
        (
            database(
                "CREATE TABLE fencing_locks (key text, token bigint, owner text,
                 expires_at timestamptz, gone jsonb)",
            )
            .await,
            "somebody else made this table",
        ),
        (
            database(
                "CREATE TABLE fencing_locks (key text PRIMARY KEY, token bigint, owner text,
                 expires_at timestamptz, gone jsonb);
                 ALTER DATABASE DB SET default_transaction_read_only = on",
            )
            .await,
            "name the primary",
        ),
        (
            format!("postgres://postgres@{server}/nowhere"),
            "does not exist",
        ),
        (
            format!("postgres://nobody:s3cret@{server}"),
            "does not exist",
        ),
    ] {
        let (locks, _) = Kind::Lease.locks_at(&address, LONG);
        let error = locks.try_acquire("account-42").await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, ("postgres-lease", server.as_str(), "account-42"));
        let text = error.to_string();
        assert!(text.contains(words) && !text.contains("s3cret"), "{text}");
    }
}
