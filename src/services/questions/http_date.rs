//! The realtime clock of any HTTP server, from the `Date` of its answers.

use super::*;
use httpdate::parse_http_date;
use std::io;
use std::time::UNIX_EPOCH;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Returns the seconds since 1970.
pub async fn unix_s(server: &Reached) -> Proof<i64> {
    let address = server.address;
    let date = match server.env.is_played() {
        true => played_date(server).await?,
        false => date(address).await?,
    };
    parse(&date).ok_or_else(|| failed(address, format!("its date is {date:?}")))
}

async fn date(address: SocketAddr) -> Proof<String> {
    let asked = async {
        http()?
            .get(format!("http://{address}/version"))
            .send()
            .await
    };
    let answer = asked.await.map_err(|error| failed(address, error))?;
    let date = answer.headers().get("date");
    let date = date.and_then(|value| value.to_str().ok());
    Ok(date.unwrap_or_default().to_owned())
}

/// Asks a simulated server.
async fn played_date(server: &Reached) -> Proof<String> {
    let asked = async {
        let (host, port) = (server.address.ip().to_string(), server.address.port());
        let mut stream = server.env.dial(&host, port).await?;
        stream.write_all(b"GET /version HTTP/1.1\r\n\r\n").await?;
        let mut lines = BufReader::new(stream).lines();
        while let Some(line) = lines.next_line().await? {
            if let Some(date) = line.strip_prefix("Date: ") {
                return Ok(date.to_owned());
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    };
    let answer = timeout(ANSWER_DEADLINE, asked).await;
    let answer = answer.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    answer.map_err(|error: io::Error| failed(server.address, error))
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
