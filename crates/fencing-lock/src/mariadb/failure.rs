use crate::LockProblem;
use mysql_async::{DriverError, Error, ServerError};

const BAD_FIELD: u16 = 1054;
const COLUMN_COUNT: u16 = 1136;
const NO_SUCH_TABLE: u16 = 1146;
const NO_DEFAULT: u16 = 1364;
const NO_BASE_TABLE: u16 = 1347;
const READ_ONLY: [u16; 3] = [1290, 1792, 1836];
/// The connection ends with it, or the statement was ended, and may have been carried out.
const CUT_OFF: [u16; 7] = [1053, 1077, 1205, 1213, 1317, 1927, 1969];
const TOO_MANY: [u16; 3] = [1040, 1203, 1226];

pub(super) const FOREIGN_TABLE: &str =
    "; somebody else made this table: rename it, or use another database";
pub(super) const NOT_A_REPLICA: &str = "; name the primary, and not a replica";

/// Makes a problem of the answer to a request.
pub fn problem_of(error: Error) -> LockProblem {
    match error {
        Error::Server(said) if CUT_OFF.contains(&said.code) => {
            LockProblem::NoAnswer(words_of(said))
        }
        Error::Server(said) => LockProblem::Refused(words_of(said)),
        error => other(error, LockProblem::NoAnswer),
    }
}

/// Makes a problem of a connection that could not be made.
pub(super) fn connect_problem_of(error: Error) -> LockProblem {
    match error {
        Error::Server(said) if CUT_OFF.contains(&said.code) || TOO_MANY.contains(&said.code) => {
            LockProblem::Unreachable(words_of(said))
        }
        Error::Server(said) => LockProblem::Refused(words_of(said)),
        Error::Driver(
            error @ (DriverError::UnknownAuthPlugin { .. }
            | DriverError::MysqlOldPasswordDisabled
            | DriverError::CleartextPluginDisabled),
        ) => LockProblem::Refused(error.to_string()),
        error => other(error, LockProblem::Unreachable),
    }
}

/// Returns whether the server refused a statement because its table is not there.
pub(super) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Server(said) if said.code == NO_SUCH_TABLE)
}

fn other(error: Error, cut_off: fn(String) -> LockProblem) -> LockProblem {
    match error {
        Error::Driver(DriverError::ConnectionClosed) => cut_off("the connection ended".to_owned()),
        Error::Io(mysql_async::IoError::Io(error)) => {
            use std::io::ErrorKind::{InvalidData, InvalidInput, Other};
            match error.kind() {
                // What its codec finds wrong is an error of no kind.
                InvalidData | InvalidInput | Other => LockProblem::BadAnswer(error.to_string()),
                _ => cut_off(error.to_string()),
            }
        }
        // It may quote what the server sent, in bytes.
        Error::Driver(DriverError::UnexpectedPacket { .. }) => {
            LockProblem::BadAnswer("unexpected packet".to_owned())
        }
        error => LockProblem::BadAnswer(error.to_string()),
    }
}

fn words_of(said: ServerError) -> String {
    let ServerError { code, message, .. } = said;
    let remedy = match code {
        BAD_FIELD | COLUMN_COUNT | NO_DEFAULT | NO_BASE_TABLE => FOREIGN_TABLE,
        code if READ_ONLY.contains(&code) => NOT_A_REPLICA,
        _ => "",
    };
    format!("{message} ({code}){remedy}")
}
