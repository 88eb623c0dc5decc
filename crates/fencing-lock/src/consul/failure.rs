use crate::LockProblem;
use hyper::StatusCode;

/// The part of an answer that is shown.
const SHOWN: usize = 300;

/// Makes a problem of an answer that refuses the request. Consul says the reason in words
/// only, whatever it is.
pub(super) fn refusal(status: StatusCode, body: &[u8]) -> LockProblem {
    let said = words(body);
    let said = match said.is_empty() {
        true => status.to_string(),
        false => format!("{said} ({})", status.as_u16()),
    };
    let remedy = match status {
        StatusCode::FORBIDDEN => {
            "; give the token `key:write` for `locks/`, and `session:write` for the agent's node"
        }
        _ if said.contains("No cluster leader") => {
            "; wait for an election, or start a majority of the servers"
        }
        _ if said.contains("Invalid Session TTL") => "",
        StatusCode::TOO_MANY_REQUESTS => "; raise http_max_conns_per_client of the agent",
        status if status.is_server_error() => "",
        // A Consul answers these requests with none of the others.
        _ => return LockProblem::BadAnswer(said),
    };
    LockProblem::Refused(format!("{said}{remedy}"))
}

pub(super) fn words(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let shown = text.trim().chars().filter(|letter| !letter.is_control());
    shown.take(SHOWN).collect()
}
