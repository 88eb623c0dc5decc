//! Who asks: AWS Signature Version 4 in the header `Authorization`.

use super::canonical;
use super::reply::{Refusal, refuse};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use fencing_lock::AwsCredentials;
use fencing_lock::servers::SignatureScope;

/// A request whose head was signed by our key. Its body has to be checked as `payload` says.
pub(super) struct Signed {
    pub payload: String,
    signature: String,
    at: String,
    region: String,
    secret: String,
}

impl Signed {
    /// Signs a chunk of a body after the one before it.
    pub fn chunk(&self, before: &str, chunk: &[u8]) -> String {
        let scope = scope(&self.region, &self.at);
        let (at, place) = (&self.at, scope.place());
        let (nothing, hash) = (super::sha256(b""), super::sha256(chunk));
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{at}\n{place}\n{before}\n{nothing}\n{hash}");
        scope.sign(&self.secret, &text)
    }

    pub fn signature(&self) -> &str {
        &self.signature
    }
}

fn scope<'a>(region: &'a str, at: &'a str) -> SignatureScope<'a> {
    SignatureScope {
        region,
        service: "s3",
        at,
    }
}

/// Checks the signature of a request's head. Its age is not looked at, so that clocks may be skewed.
pub(super) fn verify(
    parts: &Parts,
    path: &str,
    parameters: &[(String, String)],
    credentials: &AwsCredentials,
) -> Result<Signed, Refusal> {
    let denied = |message: &str| refuse(403, "AccessDenied", message);
    let authorization = text(&parts.headers, "authorization").ok_or_else(|| {
        denied(
            "the request is not signed: send AWS Signature Version 4 in the header Authorization",
        )
    })?;
    let malformed = || {
        let message = "the header Authorization is not AWS4-HMAC-SHA256 Credential=…, SignedHeaders=…, Signature=…";
        refuse(400, "AuthorizationHeaderMalformed", message)
    };
    let fields = authorization.strip_prefix("AWS4-HMAC-SHA256");
    let fields = fields.ok_or_else(malformed)?;
    let field = |name: &str| {
        let mut fields = fields.split(',').map(str::trim);
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    };
    let named = || {
        Some((
            field("Credential")?,
            field("SignedHeaders")?,
            field("Signature")?,
        ))
    };
    let (credential, names, signature) = named().ok_or_else(malformed)?;
    // An access key may hold slashes, the scope after it does not.
    let mut credential = credential.rsplitn(5, '/').skip(2);
    let mut next = || credential.next().ok_or_else(malformed);
    let (region, _day, access_key) = (next()?, next()?, next()?);
    if access_key != credentials.access_key {
        let message = "the access key is not the one that this server was started with";
        return Err(refuse(403, "InvalidAccessKeyId", message));
    }
    let at = text(&parts.headers, "x-amz-date");
    let at = at.ok_or_else(|| denied("the header x-amz-date is missing"))?;
    let names: Vec<&str> = names.split(';').collect();
    if !names.contains(&"host") {
        return Err(denied("the host is not among the signed headers"));
    }
    let headers = names.iter().map(|name| {
        let values = parts.headers.get_all(*name).iter();
        let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
        (*name, values.join(","))
    });
    let headers: Vec<(&str, String)> = headers.collect();
    let payload = text(&parts.headers, "x-amz-content-sha256");
    let payload = payload.ok_or_else(|| {
        let message = "the header x-amz-content-sha256 is missing";
        refuse(400, "InvalidRequest", message)
    })?;
    let canonical = canonical::request(parts.method.as_str(), path, parameters, &headers, payload);
    let expected = scope(region, at).signature(&credentials.secret_key, &canonical);
    if !same(&expected, signature) {
        let message = "the signature is not the one of this request: check the secret key";
        return Err(refuse(403, "SignatureDoesNotMatch", message));
    }
    Ok(Signed {
        payload: payload.to_owned(),
        signature: expected,
        at: at.to_owned(),
        region: region.to_owned(),
        secret: credentials.secret_key.clone(),
    })
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Compares without an early end, whose time would tell how much is right.
pub(super) fn same(one: &str, other: &str) -> bool {
    let pairs = one.bytes().zip(other.bytes());
    one.len() == other.len() && pairs.fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
