//! The body of a put: as it is, or in the chunks of AWS, which can be signed one by one.

use super::auth::{Signed, same, text};
use super::reply::{Refusal, refuse};
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};

/// Returns the body that was meant. Checksums in trailers are not compared.
pub(super) fn read(headers: &HeaderMap, signed: &Signed, sent: Bytes) -> Result<Bytes, Refusal> {
    match signed.payload.as_str() {
        "UNSIGNED-PAYLOAD" => Ok(sent),
        payload if payload.starts_with("STREAMING-") => {
            let is_signed = payload.starts_with("STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
            if !is_signed && payload != "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
                let message = format!("{payload} is not one of the payloads that are understood");
                return Err(refuse(501, "NotImplemented", message));
            }
            let body = chunks(&sent, is_signed.then_some(signed))?;
            let announced = text(headers, "x-amz-decoded-content-length");
            if announced.is_some_and(|length| length.parse() != Ok(body.len())) {
                return Err(incomplete("x-amz-decoded-content-length is another length"));
            }
            Ok(body)
        }
        payload if same(payload, &super::sha256(&sent)) => Ok(sent),
        _ => Err(refuse(
            400,
            "XAmzContentSHA256Mismatch",
            "x-amz-content-sha256 is not the hash of the body that arrived",
        )),
    }
}

/// Joins `LENGTH;chunk-signature=…`, the chunk and so on, up to the chunk of length 0.
fn chunks(mut rest: &[u8], signed: Option<&Signed>) -> Result<Bytes, Refusal> {
    let mut body = BytesMut::new();
    let mut before = signed.map(|signed| signed.signature().to_owned());
    loop {
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let end = end.ok_or_else(|| incomplete("the line before a chunk has no end"))?;
        let head = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        rest = &rest[end + 2..];
        let (length, extension) = head.split_once(';').unwrap_or((head, ""));
        let length = usize::from_str_radix(length.trim(), 16);
        let length = length.map_err(|_| incomplete("a chunk does not begin with its length"))?;
        let chunk = rest.get(..length);
        let chunk = chunk.ok_or_else(|| incomplete("a chunk is shorter than it says"))?;
        if let (Some(signed), Some(before)) = (signed, &mut before) {
            let own = signed.chunk(before, chunk);
            let sent = extension.trim().strip_prefix("chunk-signature=");
            if !sent.is_some_and(|sent| same(sent, &own)) {
                let message = "the signature of a chunk is not the one of its content";
                return Err(refuse(403, "SignatureDoesNotMatch", message));
            }
            *before = own;
        }
        if length == 0 {
            return Ok(body.freeze());
        }
        body.extend_from_slice(chunk);
        rest = rest[length..]
            .strip_prefix(b"\r\n")
            .ok_or_else(|| incomplete("a chunk is longer than it says"))?;
    }
}

fn incomplete(message: &str) -> Refusal {
    refuse(400, "IncompleteBody", message)
}
