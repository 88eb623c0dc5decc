//! The rows of tables in a Postgres: answers, values, the log, and its clock beside ours.

use crate::clock::raw_monotonic_ns;
use crate::model::{BodyHash, FencingToken, LogRow, RowOutcome, RowValue};
use crate::resource::client::{Stored, WriteAnswer};
use crate::resource::state::WriteRequest;
use fencing_lock::servers::PostgresConnection;
use tokio_postgres::{Error, Row};

pub const ROWS: &str = "SELECT position, (extract(epoch FROM at) * 1000000)::bigint, key, outcome, \
    token, token_seq, seen, owner, based_on, body, value FROM fencepost_log";
const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const READINGS: usize = 5;

/// The difference between the server's clock and the raw monotonic clock, which times all other
/// rows.
pub struct Clock {
    ahead_ns: i128,
}

impl Clock {
    /// Compares the clocks several times. The shortest question is the most exact one.
    pub async fn read(connection: &PostgresConnection) -> Result<Clock, Error> {
        let mut best = (u64::MAX, 0);
        for _ in 0..READINGS {
            let before_ns = raw_monotonic_ns();
            let micros: i64 = connection.query_typed_one(NOW, &[]).await?.try_get(0)?;
            let took_ns = raw_monotonic_ns().saturating_sub(before_ns);
            let middle_ns = i128::from(before_ns) + i128::from(took_ns) / 2;
            best = best.min((took_ns, i128::from(micros) * 1_000 - middle_ns));
        }
        Ok(Clock { ahead_ns: best.1 })
    }

    fn raw_ns(&self, micros: i64) -> u64 {
        let ns = i128::from(micros) * 1_000 - self.ahead_ns;
        u64::try_from(ns).unwrap_or_default()
    }
}

/// Reads a row; the error says what is wrong with it.
pub fn row_of(row: &Row, clock: &Clock) -> Result<LogRow, String> {
    read(row, clock).map_err(|error| error.to_string())?
}

fn read(row: &Row, clock: &Clock) -> Result<Result<LogRow, String>, Error> {
    let outcome: &str = row.try_get(3)?;
    let outcome = match outcome {
        "accepted" => RowOutcome::Accepted,
        "duplicate" => RowOutcome::Duplicate,
        "rejected" => RowOutcome::Rejected,
        other => return Ok(Err(format!("{other:?} is not an outcome"))),
    };
    let token = |column: usize| -> Result<_, Error> {
        Ok(row.try_get::<_, Option<i64>>(column)?.map(token_of))
    };
    let body: &str = row.try_get(9)?;
    let Ok(body) = u64::from_str_radix(body, 16) else {
        return Ok(Err(format!("{body:?} is not the hash of a body")));
    };
    Ok(Ok(LogRow {
        seq: unsigned(row.try_get(0)?),
        at_ns: clock.raw_ns(row.try_get(1)?),
        key: row.try_get(2)?,
        outcome,
        token: token(4)?,
        token_seq: unsigned(row.try_get(5)?),
        seen: token(6)?,
        owner: row.try_get(7)?,
        based_on: row.try_get::<_, Option<i64>>(8)?.map(unsigned),
        body: Some(BodyHash(body)),
        value: row
            .try_get::<_, Option<&[u8]>>(10)?
            .map(RowValue::from_bytes),
    }))
}

/// The columns that `create.sql` makes, in the order of their names.
const COLUMNS: [&str; 19] = [
    "fencepost_log.at timestamp with time zone",
    "fencepost_log.based_on bigint",
    "fencepost_log.body text",
    "fencepost_log.key text",
    "fencepost_log.outcome text",
    "fencepost_log.owner text",
    "fencepost_log.position bigint",
    "fencepost_log.seen bigint",
    "fencepost_log.token bigint",
    "fencepost_log.token_seq bigint",
    "fencepost_log.value bytea",
    "fencepost_values.decision bigint",
    "fencepost_values.key text",
    "fencepost_values.owner text",
    "fencepost_values.position bigint",
    "fencepost_values.seen bigint",
    "fencepost_values.token bigint",
    "fencepost_values.token_seq bigint",
    "fencepost_values.value bytea",
];

/// Returns the first difference between the columns that are there and those that have to be.
pub fn strange_column(there: &[String]) -> Option<String> {
    let missing = COLUMNS
        .iter()
        .find(|&&own| !there.iter().any(|it| it == own));
    let missing = missing.map(|own| format!("there is no column {own}"));
    let strange = || there.iter().find(|it| !COLUMNS.contains(&it.as_str()));
    missing.or_else(|| strange().map(|it| format!("the column {it} is not ours")))
}

pub fn answer_of(row: &Row, write: &WriteRequest) -> Result<WriteAnswer, Error> {
    let (outcome, position, seen): (&str, i64, Option<i64>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    Ok(match outcome {
        "rejected" => WriteAnswer::Rejected {
            seen: token_of(seen.unwrap_or_default()),
            got: write.token.unwrap_or(FencingToken(0)),
        },
        _ => WriteAnswer::Accepted {
            position: unsigned(position),
        },
    })
}

pub fn stored_of(row: &Row) -> Result<Stored, Error> {
    let value: &[u8] = row.try_get(0)?;
    Ok(Stored {
        value: RowValue::from_bytes(value),
        max_fence: row.try_get::<_, Option<i64>>(1)?.map(token_of),
        position: unsigned(row.try_get(2)?),
    })
}

fn token_of(number: i64) -> FencingToken {
    FencingToken(unsigned(number))
}

/// No column here ever holds a number below 0.
fn unsigned(number: i64) -> u64 {
    number.unsigned_abs()
}
