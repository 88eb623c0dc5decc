//! Addresses and headers in the one form that AWS signs.

use std::fmt::Write;

/// Encodes everything but letters, digits and `-_.~`; a slash only if it is told to.
pub fn encode(text: &str, keeps_slash: bool) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(byte as char);
            }
            b'/' if keeps_slash => encoded.push('/'),
            _ => {
                let _infallible = write!(encoded, "%{byte:02X}");
            }
        }
        encoded
    })
}

/// Decodes `%41`; None if the result is not text.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        decoded.push((high * 16 + low) as u8);
    }
    String::from_utf8(decoded).ok()
}

/// Returns the decoded parameters of a query.
pub fn parameters(query: &str) -> Option<Vec<(String, String)>> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let parts = parts.map(|part| {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        Some((decode(name)?, decode(value)?))
    });
    parts.collect()
}

/// Returns the request as it is signed. Headers are in the order of the signature.
pub fn request(
    method: &str,
    path: &str,
    parameters: &[(String, String)],
    headers: &[(&str, String)],
    payload: &str,
) -> String {
    let encoded = parameters
        .iter()
        .map(|(name, value)| (encode(name, false), encode(value, false)));
    let mut encoded: Vec<_> = encoded.collect();
    encoded.sort();
    let query: Vec<String> = encoded
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let mut canonical = format!("{method}\n{}\n{}\n", encode(path, true), query.join("&"));
    for (name, value) in headers {
        let words: Vec<&str> = value.split_whitespace().collect();
        let _infallible = writeln!(canonical, "{name}:{}", words.join(" "));
    }
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let _infallible = write!(canonical, "\n{}\n{payload}", names.join(";"));
    canonical
}
