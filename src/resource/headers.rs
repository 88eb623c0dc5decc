//! Reads the headers of a write strictly: a guessed token would not fence anything.

use super::limits::MAX_OWNER_BYTES;
use super::reply::{Refusal, bad_request};
use crate::model::FencingToken;
use axum::http::{HeaderMap, HeaderValue};

pub(super) const TOKEN: &str = "x-fence-token";
pub(super) const SEQ: &str = "x-fence-seq";
pub(super) const OWNER: &str = "x-owner";
pub(super) const BASED_ON: &str = "x-based-on";

/// The digits of 2^64 - 1.
const MAX_DIGITS: usize = 20;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct WriteHeaders {
    pub token: Option<FencingToken>,
    pub token_seq: u64,
    pub owner: Option<String>,
    pub based_on: Option<u64>,
}

impl WriteHeaders {
    pub fn parse(headers: &HeaderMap) -> Result<WriteHeaders, Refusal> {
        Ok(WriteHeaders {
            token: number(headers, TOKEN)?.map(FencingToken),
            token_seq: number(headers, SEQ)?.unwrap_or(0),
            owner: owner(headers)?,
            based_on: number(headers, BASED_ON)?,
        })
    }
}

fn number(headers: &HeaderMap, name: &'static str) -> Result<Option<u64>, Refusal> {
    let Some(value) = only(headers, name)? else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits && text.len() <= MAX_DIGITS {
        text.parse().ok()
    } else {
        None
    };
    number.map(Some).ok_or_else(|| {
        bad_request(format!(
            "{name} must be a whole number from 0 to {}, in digits only",
            u64::MAX
        ))
    })
}

fn owner(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = only(headers, OWNER)? else {
        return Ok(None);
    };
    match value.to_str() {
        Ok(text) if !text.is_empty() && text.len() <= MAX_OWNER_BYTES => Ok(Some(text.to_owned())),
        _ => Err(bad_request(format!(
            "{OWNER} must be 1 to {MAX_OWNER_BYTES} ASCII characters, or be left out"
        ))),
    }
}

/// Returns the only value of a header. Two values contradict each other, even if they are equal.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(bad_request(format!(
            "{name} is given more than once: send it once"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&'static str, &str)]) -> Result<WriteHeaders, Refusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        WriteHeaders::parse(&headers)
    }

    #[test]
    fn good_headers_are_read() {
        let max = u64::MAX.to_string();
        let parsed = parse(&[(TOKEN, &max), (SEQ, "3"), (OWNER, "a"), (BASED_ON, "0")]);
        let expected = WriteHeaders {
            token: Some(FencingToken(u64::MAX)),
            token_seq: 3,
            owner: Some("a".into()),
            based_on: Some(0),
        };
        assert_eq!(parsed, Ok(expected));
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        let too_long = "0".repeat(MAX_DIGITS + 1);
        let bad = [
            "",
            "-1",
            "+5",
            "1.0",
            "0x1",
            "1 2",
            "1,2",
            "one",
            "१",
            "18446744073709551616",
            &too_long,
        ];
        for name in [TOKEN, SEQ, BASED_ON] {
            for value in bad {
                let refusal = parse(&[(name, value)]).unwrap_err();
                assert_eq!(refusal.status, 400);
                assert!(refusal.message.contains(name), "{value}: {refusal:?}");
            }
        }
    }

    #[test]
    fn what_is_said_twice_is_refused() {
        for name in [TOKEN, SEQ, BASED_ON, OWNER] {
            let refusal = parse(&[(name, "1"), (name, "1")]).unwrap_err();
            assert!(refusal.message.contains("more than once"), "{refusal:?}");
        }
    }

    #[test]
    fn an_owner_is_short_and_not_empty() {
        let longest = "o".repeat(MAX_OWNER_BYTES);
        assert!(parse(&[(OWNER, &longest)]).is_ok());
        for bad in ["", "é", &format!("{longest}o")] {
            assert!(parse(&[(OWNER, bad)]).is_err(), "{bad}");
        }
    }
}
