use axum::http::StatusCode;

/// A proxy's and a toxic's, both of escaped bytes, fit into one address.
pub const MAX_NAME_BYTES: usize = 8 * 1024;

/// A request that is answered with an error, in the original's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
}

impl Refusal {
    pub fn bad_body(reason: impl std::fmt::Display) -> Refusal {
        refusal(
            StatusCode::BAD_REQUEST,
            format!("bad request body: {reason}"),
        )
    }

    pub fn missing(field: &str) -> Refusal {
        let message = format!("missing required field: {field}");
        refusal(StatusCode::BAD_REQUEST, message)
    }

    /// A name is a part of an address: with more than this, nobody could ask for it.
    pub fn unless_short(name: &str) -> Result<(), Refusal> {
        match name.len() <= MAX_NAME_BYTES {
            true => Ok(()),
            false => {
                let reason = format!("the name has more than {MAX_NAME_BYTES} bytes");
                Err(Refusal::bad_body(reason))
            }
        }
    }

    /// A toxic's problem that the original has its own words for.
    pub fn bad_request(message: impl std::fmt::Display) -> Refusal {
        refusal(StatusCode::BAD_REQUEST, message.to_string())
    }

    pub fn no_proxy() -> Refusal {
        refusal(StatusCode::NOT_FOUND, "proxy not found".into())
    }

    pub fn no_toxic() -> Refusal {
        refusal(StatusCode::NOT_FOUND, "toxic not found".into())
    }

    pub fn proxy_exists() -> Refusal {
        refusal(StatusCode::CONFLICT, "proxy already exists".into())
    }

    pub fn toxic_exists() -> Refusal {
        refusal(StatusCode::CONFLICT, "toxic already exists".into())
    }

    pub fn internal(message: impl std::fmt::Display) -> Refusal {
        refusal(StatusCode::INTERNAL_SERVER_ERROR, message.to_string())
    }
}

fn refusal(status: StatusCode, message: String) -> Refusal {
    Refusal { status, message }
}
