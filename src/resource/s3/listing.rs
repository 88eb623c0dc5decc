//! Lists of buckets and of objects, in both versions of S3.

use super::canonical::encode;
use super::http::{App, Asked};
use super::reply::{Refusal, escaped, no_such_bucket, refuse, xml};
use super::store::{Found, Listing, Question};
use axum::http::StatusCode;
use axum::response::Response;
use fencing_lock::servers::aws_timestamp;
use std::fmt::Write;
use std::time::{Duration, UNIX_EPOCH};

const MOST_KEYS: usize = 1000;

pub(super) async fn buckets(app: &App) -> Result<Response, Refusal> {
    let Found::Buckets(names) = app.committer.get(Question::Buckets).await? else {
        return Err(no_such_bucket());
    };
    let names = names.iter().fold(String::new(), |mut text, name| {
        let _infallible = write!(
            text,
            "<Bucket><Name>{name}</Name><CreationDate>{}</CreationDate></Bucket>",
            date(0)
        );
        text
    });
    let owner = "<Owner><ID>fencepost</ID></Owner>";
    let result = format!(
        "<ListAllMyBucketsResult>{owner}<Buckets>{names}</Buckets></ListAllMyBucketsResult>"
    );
    Ok(xml(StatusCode::OK, &result))
}

pub(super) async fn objects(app: &App, asked: &Asked) -> Result<Response, Refusal> {
    let given = |name: &str| asked.parameter(name).filter(|value| !value.is_empty());
    let is_second = given("list-type") == Some("2");
    let most = given("max-keys").map(str::parse::<usize>).transpose();
    let most = most.map_err(|_| refuse(400, "InvalidArgument", "max-keys is not a number"))?;
    let most = most.unwrap_or(MOST_KEYS).min(MOST_KEYS);
    let after = match is_second {
        true => given("continuation-token").or(given("start-after")),
        false => given("marker"),
    };
    let question = Question::List {
        bucket: asked.bucket.clone(),
        prefix: given("prefix").unwrap_or_default().to_owned(),
        delimiter: given("delimiter").map(str::to_owned),
        after: after.unwrap_or_default().to_owned(),
        most,
    };
    let Found::List(listing) = app.committer.get(question).await? else {
        return Err(no_such_bucket());
    };
    let is_encoded = given("encoding-type") == Some("url");
    let shown = |text: &str| match is_encoded {
        true => encode(text, true),
        false => escaped(text),
    };
    let mut text = format!("<Name>{}</Name>", asked.bucket);
    let mut add = |name: &str, value: String| {
        let _infallible = write!(text, "<{name}>{value}</{name}>");
    };
    add("Prefix", shown(given("prefix").unwrap_or_default()));
    if let Some(delimiter) = given("delimiter") {
        add("Delimiter", shown(delimiter));
    }
    if is_encoded {
        add("EncodingType", "url".to_owned());
    }
    add("MaxKeys", most.to_string());
    if is_second {
        let count = listing.objects.len() + listing.prefixes.len();
        add("KeyCount", count.to_string());
    }
    add("IsTruncated", listing.last.is_some().to_string());
    if let Some(last) = &listing.last {
        match is_second {
            true => add("NextContinuationToken", escaped(last)),
            false => add("NextMarker", shown(last)),
        }
    }
    text += &contents(&listing, shown);
    let result = format!("<ListBucketResult>{text}</ListBucketResult>");
    Ok(xml(StatusCode::OK, &result))
}

fn contents(listing: &Listing, shown: impl Fn(&str) -> String) -> String {
    let mut text = String::new();
    for (key, version) in &listing.objects {
        let _infallible = write!(
            text,
            "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>&quot;{}&quot;</ETag>\
             <Size>{}</Size><StorageClass>STANDARD</StorageClass></Contents>",
            shown(key),
            date(version.time_s),
            version.etag,
            version.body.as_ref().map_or(0, bytes::Bytes::len)
        );
    }
    for prefix in &listing.prefixes {
        let prefix = shown(prefix);
        let _infallible = write!(
            text,
            "<CommonPrefixes><Prefix>{prefix}</Prefix></CommonPrefixes>"
        );
    }
    text
}

/// Returns `2015-08-30T12:36:00.000Z`.
fn date(time_s: u64) -> String {
    let compact = aws_timestamp(UNIX_EPOCH + Duration::from_secs(time_s));
    let part = |range: std::ops::Range<usize>| compact.get(range).unwrap_or_default();
    format!(
        "{}-{}-{}T{}:{}:{}.000Z",
        part(0..4),
        part(4..6),
        part(6..8),
        part(9..11),
        part(11..13),
        part(13..15)
    )
}
