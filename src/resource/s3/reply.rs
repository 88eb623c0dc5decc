//! Answers of S3: its errors as XML, with the codes that its clients know.

use super::super::commit::Unanswered;
use super::super::reply::Refusal as BodyRefusal;
use super::store::Changed;
use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// A request that was not carried out. Clients go by the code.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

pub(super) fn refuse(status: u16, code: &'static str, message: impl Into<String>) -> Refusal {
    Refusal {
        status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
        code,
        message: message.into(),
    }
}

pub(super) fn xml(status: StatusCode, content: &str) -> Response {
    let text = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{content}");
    let kind = [(header::CONTENT_TYPE, "application/xml")];
    (status, kind, Body::from(text)).into_response()
}

/// Escapes text for an element.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, letter| {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#13;"),
            letter => escaped.push(letter),
        }
        escaped
    })
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (code, message) = (self.code, escaped(&self.message));
        let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
        xml(self.status, &error)
    }
}

impl From<BodyRefusal> for Refusal {
    fn from(refusal: BodyRefusal) -> Refusal {
        let code = match refusal.status {
            StatusCode::PAYLOAD_TOO_LARGE => "EntityTooLarge",
            StatusCode::REQUEST_TIMEOUT => "RequestTimeout",
            _ => "IncompleteBody",
        };
        // S3 itself answers a body that is too large or too slow with 400.
        refuse(400, code, refusal.message)
    }
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Refusal {
        let refusal = BodyRefusal::from(unanswered);
        refuse(503, "ServiceUnavailable", refusal.message)
    }
}

impl Changed {
    /// Returns the ETag and the id of what was done, or S3's word for the refusal.
    pub fn done(self) -> Result<(String, u64), Refusal> {
        Err(match self {
            Changed::Done { etag, id } => return Ok((etag, id)),
            Changed::ConditionFailed => refuse(
                412,
                "PreconditionFailed",
                "the object is not as If-Match or If-None-Match says",
            ),
            Changed::NoSuchKey => no_such_key(),
            Changed::NoSuchBucket => no_such_bucket(),
            Changed::BucketExists => refuse(
                409,
                "BucketAlreadyOwnedByYou",
                "the bucket is there already",
            ),
            Changed::BucketNotEmpty => refuse(
                409,
                "BucketNotEmpty",
                "the bucket holds objects: delete them first",
            ),
            Changed::Full => refuse(
                507,
                "InsufficientStorage",
                "all versions together take up to 256 MiB: nothing was written; use another data directory",
            ),
        })
    }
}

pub(super) fn no_such_bucket() -> Refusal {
    refuse(
        404,
        "NoSuchBucket",
        "there is no such bucket: create it with PUT /BUCKET, or name it with --bucket",
    )
}

pub(super) fn no_such_key() -> Refusal {
    refuse(404, "NoSuchKey", "there is no such object")
}
