//! The realtime clock of any HTTP server, from the `Date` of its answers.

use super::super::Proof;
use super::{failed, http};
use httpdate::parse_http_date;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

/// Returns the seconds since 1970.
pub async fn unix_s(address: SocketAddr) -> Proof<i64> {
    let asked = async {
        http()?
            .get(format!("http://{address}/version"))
            .send()
            .await
    };
    let answer = asked.await.map_err(|error| failed(address, error))?;
    let date = answer.headers().get("date");
    let date = date
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    parse(date).ok_or_else(|| failed(address, format!("its date is {date:?}")))
}

/// Parses a date: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn parse(text: &str) -> Option<i64> {
    let date = parse_http_date(text).ok()?;
    let since = date.duration_since(UNIX_EPOCH).ok()?;
    Some(since.as_secs() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read() {
        for (text, unix_s) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199),
        ] {
            assert_eq!(parse(text), Some(unix_s), "{text}");
        }
        for text in ["", "now", "Sun, 06 Foo 1994 08:49:37 GMT"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
