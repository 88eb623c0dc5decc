use crate::LockProblem;
use hyper::StatusCode;
use serde_json::Value;

/// An answer that is not the wanted one.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// The condition of a write was false, so it has changed nothing.
    Condition {
        /// The item, if the server says it.
        item: Option<Value>,
        /// Whether the same write was sent before and not answered: that one may have been
        /// carried out.
        sent_before: bool,
    },
    NoTable(String),
    /// The table is there, or is being made.
    TableInUse(String),
    /// Nothing was done, and it is worth another try after a while.
    Throttled(String),
    Problem(LockProblem),
}

impl From<LockProblem> for Failure {
    fn from(problem: LockProblem) -> Failure {
        Failure::Problem(problem)
    }
}

impl From<Failure> for LockProblem {
    fn from(failure: Failure) -> LockProblem {
        match failure {
            Failure::Problem(problem) => problem,
            Failure::Condition { .. } => LockProblem::Refused("a condition was false".to_owned()),
            Failure::NoTable(words) | Failure::TableInUse(words) | Failure::Throttled(words) => {
                LockProblem::Refused(words)
            }
        }
    }
}

impl Failure {
    /// Returns whether the request may have been carried out, or may still be.
    pub(super) fn may_have_happened(&self) -> bool {
        let unclear = |problem: &LockProblem| {
            matches!(
                problem,
                LockProblem::NoAnswer(_) | LockProblem::BadAnswer(_)
            )
        };
        matches!(self, Failure::Problem(problem) if unclear(problem))
    }

    /// Reads an answer whose status is not 200.
    pub(super) fn of(status: StatusCode, body: &[u8]) -> Failure {
        let said: Value = match serde_json::from_slice(body) {
            Ok(said @ Value::Object(_)) => said,
            // A load balancer says this without JSON.
            _ if status.is_server_error() => {
                return LockProblem::NoAnswer(status.to_string()).into();
            }
            // A server or a proxy that is not AWS's refuses a signature in its own words.
            _ if [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status) => {
                return LockProblem::Refused(format!("{status}{CHECK_THE_KEY}")).into();
            }
            _ => return LockProblem::BadAnswer(format!("{status} without JSON")).into(),
        };
        let kind = said["__type"].as_str().unwrap_or_default();
        let kind = kind.rsplit('#').next().unwrap_or_default();
        let message = said["message"].as_str().or(said["Message"].as_str());
        let message = message.unwrap_or("no reason given");
        let words = format!("{message} ({kind}){}", remedy(kind));
        match kind {
            "ConditionalCheckFailedException" => Failure::Condition {
                item: said.get("Item").cloned(),
                sent_before: false,
            },
            "ResourceNotFoundException" => Failure::NoTable(words),
            "ResourceInUseException" => Failure::TableInUse(words),
            "ProvisionedThroughputExceededException"
            | "RequestLimitExceeded"
            | "ThrottlingException"
            | "LimitExceededException" => Failure::Throttled(words),
            _ if status.is_server_error() => LockProblem::NoAnswer(words).into(),
            "" => LockProblem::BadAnswer(format!("{status}: {message}")).into(),
            _ => LockProblem::Refused(words).into(),
        }
    }
}

const CHECK_THE_KEY: &str =
    "; check the access key, its secret, the region and the clock of this machine";

fn remedy(kind: &str) -> &'static str {
    match kind {
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationTokenException"
        | "MissingAuthenticationToken"
        | "ExpiredTokenException" => CHECK_THE_KEY,
        "AccessDeniedException" | "AccessDenied" => {
            "; allow dynamodb:GetItem and dynamodb:UpdateItem on the table"
        }
        "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "ThrottlingException" => "; give the table more capacity",
        "ValidationException" => "; somebody else made this table: name another one",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Failure {
        Failure::of(StatusCode::from_u16(status).unwrap(), body.as_bytes())
    }

    #[test]
    fn answers_are_told_apart_by_their_type() {
        let is = |status, kind: &str| {
            let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{kind}"}}"#);
            read(status, &body)
        };
        let failed = is(400, "ConditionalCheckFailedException");
        assert!(matches!(failed, Failure::Condition { item: None, .. }));
        let missing = is(400, "ResourceNotFoundException");
        assert!(matches!(missing, Failure::NoTable(_)));
        for kind in [
            "ThrottlingException",
            "ProvisionedThroughputExceededException",
        ] {
            let Failure::Throttled(words) = is(400, kind) else {
                panic!("{kind}");
            };
            assert!(
                words.contains(kind) && words.contains("capacity"),
                "{words}"
            );
        }
        let Failure::Problem(LockProblem::Refused(words)) = is(400, "UnrecognizedClientException")
        else {
            panic!("not refused");
        };
        assert!(words.contains("check the access key"), "{words}");
        // What a server began before it failed may have happened.
        assert!(is(500, "InternalServerError").may_have_happened());
        assert!(read(503, "<html>").may_have_happened());
        assert!(!is(400, "ThrottlingException").may_have_happened());
        let nonsense = read(404, "<html>");
        assert!(matches!(
            nonsense,
            Failure::Problem(LockProblem::BadAnswer(_))
        ));
    }
}
