use crate::support::servers::own_postgres;
use crate::targets::{Bound, Targets};
use crate::turns::{Writer, contest};
use crate::{Arguments, Trouble, VALUE};
use fencepost::model::FencingToken;
use fencepost::resource::{ResourceClient, WriteAnswer, WriteRequest};
use fencing_lock::servers::{PostgresConnection, connect_postgres};
use std::time::Duration;
use tokio_postgres::Statement;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
const CREATE: &str = "CREATE TABLE IF NOT EXISTS bare \
    (key text PRIMARY KEY, value bytea NOT NULL, fence bigint NOT NULL)";
const MAKE: &str = "INSERT INTO bare VALUES ($1, '', 0)";
const UPDATE: &str = "UPDATE bare SET value = $2, fence = $3 WHERE key = $1 AND fence < $3";

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let server = own_postgres();
    let client = ResourceClient::new(&format!("postgres://{}", server.address), ANSWER_DEADLINE)?;
    client.prepare().await?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for number in 0..arguments.connections {
        floor.push(BareWriter::connect(&server.address, number).await?);
        ours.push(TableWriter {
            client: client.clone(),
            key: format!("key-{number}"),
            token: 0,
        });
    }
    let ratio = contest(
        arguments,
        ("a prepared conditional UPDATE of one row", &mut floor),
        ("resource: postgres, its statement with the log", &mut ours),
    );
    let ratio = ratio.await?;
    let mut targets = Targets::default();
    let what = "writes of resource: postgres to bare conditional updates".to_owned();
    targets.expect(what, ratio, Bound::AtLeast(0.8));
    Ok(targets)
}

/// A connection whose write is one prepared statement.
struct BareWriter {
    connection: PostgresConnection,
    update: Statement,
    key: String,
    token: i64,
}

impl BareWriter {
    async fn connect(address: &str, number: usize) -> Result<BareWriter, Trouble> {
        let connection = connect_postgres(address, ANSWER_DEADLINE, |_| {}).await;
        let connection = connection.map_err(|problem| problem.to_string())?;
        connection.batch_execute(CREATE).await?;
        let key = format!("key-{number}");
        connection.execute(MAKE, &[&key]).await?;
        let update = connection.prepare(UPDATE).await?;
        Ok(BareWriter {
            connection,
            update,
            key,
            token: 0,
        })
    }
}

impl Writer for BareWriter {
    async fn write(&mut self) -> Result<(), Trouble> {
        self.token += 1;
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
            [&self.key, &VALUE.as_bytes(), &self.token];
        match self.connection.execute(&self.update, &parameters).await? {
            1 => Ok(()),
            rows => Err(format!("{rows} rows were updated").into()),
        }
    }
}

/// A worker with the client of `resource: postgres`.
struct TableWriter {
    client: ResourceClient,
    key: String,
    token: u64,
}

impl Writer for TableWriter {
    async fn write(&mut self) -> Result<(), Trouble> {
        self.token += 1;
        let write = WriteRequest {
            key: self.key.clone(),
            token: Some(FencingToken(self.token)),
            token_seq: 0,
            owner: Some("worker-1".to_owned()),
            based_on: None,
            body: VALUE.into(),
        };
        match self.client.put(&write).await? {
            WriteAnswer::Accepted { .. } => Ok(()),
            refused => Err(format!("{refused:?}").into()),
        }
    }
}
