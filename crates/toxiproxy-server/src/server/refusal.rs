use axum::http::StatusCode;
use std::fmt::Display;

/// The limit on a name: a proxy's and a toxic's name, with every byte escaped, fit into
/// one address.
pub const MAX_NAME_BYTES: usize = 8 * 1024;

/// An error answer to a request, in the original's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn bad_body(reason: impl Display) -> Refusal {
        Refusal::bad_request(format_args!("bad request body: {reason}"))
    }

    pub fn missing(field: &str) -> Refusal {
        Refusal::bad_request(format_args!("missing required field: {field}"))
    }

    /// Checks the length of a name, which is a part of an address: nobody could ask for a
    /// longer one.
    pub fn unless_short(name: &str) -> Result<(), Refusal> {
        if name.len() <= MAX_NAME_BYTES {
            return Ok(());
        }
        let reason = format!("the name has more than {MAX_NAME_BYTES} bytes");
        Err(Refusal::bad_body(reason))
    }

    pub fn bad_request(message: impl Display) -> Refusal {
        refusal(StatusCode::BAD_REQUEST, message)
    }

    pub fn unauthorized() -> Refusal {
        refusal(StatusCode::UNAUTHORIZED, "missing or invalid auth token")
    }

    pub fn no_proxy() -> Refusal {
        refusal(StatusCode::NOT_FOUND, "proxy not found")
    }

    pub fn no_toxic() -> Refusal {
        refusal(StatusCode::NOT_FOUND, "toxic not found")
    }

    pub fn proxy_exists() -> Refusal {
        refusal(StatusCode::CONFLICT, "proxy already exists")
    }

    pub fn toxic_exists() -> Refusal {
        refusal(StatusCode::CONFLICT, "toxic already exists")
    }

    pub fn internal(message: impl Display) -> Refusal {
        refusal(StatusCode::INTERNAL_SERVER_ERROR, message)
    }
}

fn refusal(status: StatusCode, message: impl Display) -> Refusal {
    let message = message.to_string();
    Refusal { status, message }
}
