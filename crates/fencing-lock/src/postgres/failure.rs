use crate::LockProblem;
use std::error::Error as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Makes a problem of the answer to a request.
pub fn problem_of(error: Error) -> LockProblem {
    match error.as_db_error() {
        // The connection ends with it, and what was asked may have happened before.
        Some(said) if is_fatal(said) => LockProblem::NoAnswer(words_of(said)),
        Some(said) => LockProblem::Refused(words_of(said)),
        None if error.is_closed() => LockProblem::NoAnswer("the connection ended".to_owned()),
        None => other(error, LockProblem::NoAnswer),
    }
}

/// Makes a problem of a connection that could not be made.
pub(super) fn connect_problem_of(error: Error) -> LockProblem {
    let Some(said) = error.as_db_error() else {
        if error.is_closed() {
            return LockProblem::Unreachable("the connection ended".to_owned());
        }
        return other(error, LockProblem::Unreachable);
    };
    let code = said.code();
    let comes_back = *code == SqlState::CANNOT_CONNECT_NOW
        || *code == SqlState::TOO_MANY_CONNECTIONS
        || *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN;
    match comes_back {
        true => LockProblem::Unreachable(words_of(said)),
        false => LockProblem::Refused(words_of(said)),
    }
}

/// Returns whether the server refused a statement because what it names is not there.
pub(super) fn is_missing(error: &Error) -> bool {
    error.code() == Some(&SqlState::UNDEFINED_TABLE)
}

/// Returns whether somebody else has just created the same.
pub(super) fn is_there_already(error: &Error) -> bool {
    let codes = [
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
        SqlState::UNIQUE_VIOLATION,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}

fn other(error: Error, cut_off: fn(String) -> LockProblem) -> LockProblem {
    let source = error.source();
    let words = source.map_or(error.to_string(), |source| format!("{error}: {source}"));
    let io = source.and_then(|source| source.downcast_ref::<io::Error>());
    let is_nonsense = |io: &io::Error| {
        matches!(
            io.kind(),
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
        )
    };
    match io {
        Some(io) if !is_nonsense(io) => cut_off(words),
        // The cause is of this side: a password that is missing, or a kind of it that is not known.
        None if source.is_some() => LockProblem::Refused(words),
        _ => LockProblem::BadAnswer(words),
    }
}

/// Poolers leave out the severity that is not translated.
fn is_fatal(said: &DbError) -> bool {
    match said.parsed_severity() {
        Some(severity) => matches!(severity, Severity::Fatal | Severity::Panic),
        None => ["FATAL", "PANIC"].contains(&said.severity()),
    }
}

fn words_of(said: &DbError) -> String {
    let (message, code) = (said.message(), said.code().code());
    let strange = [
        SqlState::UNDEFINED_COLUMN,
        SqlState::DATATYPE_MISMATCH,
        SqlState::INVALID_COLUMN_REFERENCE,
        SqlState::WRONG_OBJECT_TYPE,
    ];
    let remedy = match said.code() {
        code if strange.contains(code) => {
            "; somebody else made this table: rename it, or use another database or schema"
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            "; name the primary, and not a replica"
        }
        _ => "",
    };
    format!("{message} ({code}){remedy}")
}
