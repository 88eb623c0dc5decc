use crate::services::guest::*;
use fencing_lock::servers::{
    PostgresConnection, check_postgres_schema, connect_postgres, postgres_problem,
};

pub const GUEST: Guest = Guest {
    port: 5432,
    has_login: true,
    has_database: true,
    writes: |prefix| format!("the schema {} and the tables in it", schema(prefix)),
    setting: None,
    // A trigger reports changes, and there is one on our own tables alone.
    sees_others: false,
    environment: |prefix| vec![("PGOPTIONS", search_path(prefix))],
    url,
    look: |url| Box::pin(look(url)),
    begin: |url, prefix| {
        Box::pin(async move {
            let connection = connect(url).await?;
            run(&connection, &format!("CREATE SCHEMA {}", schema(prefix))).await?;
            check_postgres_schema(&connection, &schema(prefix)).await
        })
    },
    remove: |url, prefix| {
        Box::pin(async move {
            let connection = connect(url).await?;
            // A session that still uses a table must not hold this up for ever.
            run(&connection, "SET lock_timeout = '30s'").await?;
            let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", schema(prefix));
            run(&connection, &drop).await
        })
    },
};

/// Returns the name of the schema, which needs no quotes.
fn schema(prefix: &str) -> String {
    prefix.trim_end_matches('-').replace('-', "_")
}

fn search_path(prefix: &str) -> String {
    format!("-csearch_path={}", schema(prefix))
}

fn url(door: &Door<'_>) -> String {
    let database = door.database.as_deref().unwrap_or("postgres");
    let address = format!(
        "postgres://{}{}/{}",
        userinfo(door),
        door.server,
        escaped(database)
    );
    // A session of ours reports its advisory locks only if it is asked to.
    let options = format!("{} -cfencing_lock.observed=on", search_path(door.prefix));
    format!("{address}?options={}", escaped(&options))
}

/// Counts the tables that are not the server's own, and not those of runs like this one.
const TABLES: &str = "SELECT count(*) FROM pg_tables \
    WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname NOT LIKE 'fencepost\\_%'";
const CLIENTS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
const REPLICAS: &str = "SELECT count(*) FROM pg_stat_replication";
const IDENTITY: &str = "SELECT pg_postmaster_start_time()::text || ' ' || current_database()";

async fn look(url: &str) -> Result<Sighting, LockProblem> {
    let connection = connect(url).await?;
    if text(&connection, "SELECT pg_is_in_recovery()::text").await? == "true" {
        let why = "it is a replica, where nothing can be written; name its primary";
        return Err(LockProblem::Refused(why.to_owned()));
    }
    let signs = [
        counted(count(&connection, TABLES).await?, "table", "tables"),
        counted(
            count(&connection, CLIENTS).await?,
            "other client",
            "other clients",
        ),
        counted(count(&connection, REPLICAS).await?, "replica", "replicas"),
    ];
    let version = text(&connection, "SHOW server_version").await?;
    Ok(Sighting {
        identity: text(&connection, IDENTITY).await?,
        version: version.split(' ').next().unwrap_or_default().to_owned(),
        signs: signs.into_iter().flatten().collect(),
    })
}

async fn connect(url: &str) -> Result<PostgresConnection, LockProblem> {
    connect_postgres(url, ANSWER_WITHIN, |_| {}).await
}

async fn run(connection: &PostgresConnection, statement: &str) -> Result<(), LockProblem> {
    let ran = connection.batch_execute(statement).await;
    ran.map_err(postgres_problem)
}

async fn text(connection: &PostgresConnection, question: &str) -> Result<String, LockProblem> {
    let rows = connection.query_typed(question, &[]).await;
    let rows = rows.map_err(postgres_problem)?;
    let said = rows.first().and_then(|row| row.try_get::<_, &str>(0).ok());
    Ok(said.unwrap_or_default().to_owned())
}

async fn count(connection: &PostgresConnection, question: &str) -> Result<u64, LockProblem> {
    let rows = connection.query_typed(question, &[]).await;
    let rows = rows.map_err(postgres_problem)?;
    let count = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
    Ok(count
        .and_then(|count| u64::try_from(count).ok())
        .unwrap_or(0))
}
