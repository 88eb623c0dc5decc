//! What goes into a statement, and what comes out of it.

use crate::LockProblem;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};

pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

pub(super) fn text<'a>(text: &'a &'a str) -> Parameter<'a> {
    (text, Type::TEXT)
}

/// Reads the first column.
pub(super) fn read<T: FromSqlOwned>(row: Option<&Row>) -> Result<T, LockProblem> {
    let row = row.ok_or_else(|| LockProblem::BadAnswer("no row".to_owned()))?;
    row.try_get(0)
        .map_err(|error| LockProblem::BadAnswer(error.to_string()))
}
