//! Reads, puts and deletes of objects.

use super::super::body;
use super::super::limits::MAX_BODY_BYTES;
#[cfg(debug_assertions)]
use super::Mutant;
use super::auth::text;
use super::http::{App, Asked};
use super::reply::{Refusal, escaped, no_such_bucket, no_such_key, refuse, xml};
use super::store::{Change, Found, Question, Version};
use super::{Action, Condition, now_s, payload};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

const MAX_KEY_BYTES: usize = 1024;
const MAX_META_BYTES: usize = 2048;
/// The longest `If-Match` or `If-None-Match`.
const MAX_CONDITION_BYTES: usize = 1024;
/// A body in chunks is longer than what it carries: each chunk may have a signature.
const MAX_SENT_BYTES: usize = 4 * MAX_BODY_BYTES;
/// The most keys that one request may delete.
const MOST_DELETES: usize = 1000;
const KEPT: [&str; 5] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "expires",
];

pub(super) async fn put(app: &App, asked: Asked, body: Body) -> Result<Response, Refusal> {
    check_key(&asked.key)?;
    let condition = condition(&asked.parts.headers)?;
    let meta = meta(&asked.parts.headers)?;
    let _place = app.committer.place().await?;
    #[cfg(debug_assertions)]
    let condition = misbehave(app, &asked, condition).await?;
    let sent = body::read_up_to(&asked.parts.headers, body, MAX_SENT_BYTES).await?;
    let body = payload::read(&asked.parts.headers, &asked.signed, sent)?;
    if body.len() > MAX_BODY_BYTES {
        let message = format!("an object has up to {MAX_BODY_BYTES} bytes");
        return Err(refuse(400, "EntityTooLarge", message));
    }
    let change = Change {
        action: Action::Put,
        bucket: asked.bucket,
        key: asked.key,
        condition,
        meta,
        body,
        time_s: now_s(),
    };
    let (etag, id) = app.committer.write(change).await?.done()?;
    Ok(versioned(StatusCode::OK, Some(&etag), id).into_response())
}

/// Serves the deliberate defects: what is left of a condition after them.
#[cfg(debug_assertions)]
async fn misbehave(app: &App, asked: &Asked, condition: Condition) -> Result<Condition, Refusal> {
    match app.config.mutant {
        None => Ok(condition),
        Some(Mutant::IgnoreConditions) => Ok(Condition::None),
        Some(Mutant::CompareEarly) => {
            let found = find(app, asked).await;
            let found = found.as_ref().ok().map(|version| version.etag.as_str());
            match condition.holds(found) {
                true => Ok(Condition::None),
                false => Err(refuse(412, "PreconditionFailed", "compared early")),
            }
        }
    }
}

pub(super) async fn delete(app: &App, asked: &Asked) -> Result<Response, Refusal> {
    if asked.parameter("versionId").is_some() {
        let message = "single versions stay: delete the object without versionId";
        return Err(refuse(501, "NotImplemented", message));
    }
    let condition = condition(&asked.parts.headers)?;
    let change = deletion(asked, &asked.key, condition)?;
    let (_, id) = app.committer.write(change).await?.done()?;
    let mut answer = versioned(StatusCode::NO_CONTENT, None, id).into_response();
    let marker = HeaderValue::from_static("true");
    answer.headers_mut().insert("x-amz-delete-marker", marker);
    Ok(answer)
}

fn check_key(key: &str) -> Result<(), Refusal> {
    match (1..=MAX_KEY_BYTES).contains(&key.len()) {
        true => Ok(()),
        false => Err(refuse(400, "KeyTooLongError", "a key has 1 to 1024 bytes")),
    }
}

fn deletion(asked: &Asked, key: &str, condition: Condition) -> Result<Change, Refusal> {
    check_key(key)?;
    Ok(Change {
        action: Action::Delete,
        bucket: asked.bucket.clone(),
        key: key.to_owned(),
        condition,
        meta: BTreeMap::new(),
        body: Bytes::new(),
        time_s: now_s(),
    })
}

/// Elements of an `<Object>` that say which one of its versions is meant.
const NOT_DELETED_BY: [&str; 4] = ["<VersionId>", "<ETag>", "<LastModifiedTime>", "<Size>"];

/// Deletes the keys of `<Delete><Object><Key>…`.
pub(super) async fn delete_many(app: &App, asked: &Asked, body: Body) -> Result<Response, Refusal> {
    let _place = app.committer.place().await?;
    let sent = body::read_up_to(&asked.parts.headers, body, MAX_SENT_BYTES).await?;
    let sent = payload::read(&asked.parts.headers, &asked.signed, sent)?;
    let text = String::from_utf8_lossy(&sent);
    if NOT_DELETED_BY.iter().any(|element| text.contains(element)) {
        let message = "single versions stay, and nothing is compared: name keys alone";
        return Err(refuse(501, "NotImplemented", message));
    }
    let keys = text.split("<Key>").skip(1);
    let keys: Option<Vec<String>> = keys
        .map(|rest| Some(unescaped(rest.split_once("</Key>")?.0)))
        .collect();
    let keys = keys.filter(|keys| (1..=MOST_DELETES).contains(&keys.len()));
    let keys = keys.ok_or_else(|| {
        let message = "the body does not name 1 to 1000 keys as <Delete><Object><Key>…";
        refuse(400, "MalformedXML", message)
    })?;
    let mut answers = String::new();
    for key in keys {
        let changed = match deletion(asked, &key, Condition::None) {
            Ok(change) => app.committer.write(change).await?.done(),
            Err(refusal) => Err(refusal),
        };
        let key = escaped(&key);
        answers += &match changed {
            Ok(_) => format!("<Deleted><Key>{key}</Key></Deleted>"),
            Err(refusal) => format!(
                "<Error><Key>{key}</Key><Code>{}</Code><Message>{}</Message></Error>",
                refusal.code(),
                escaped(refusal.message())
            ),
        };
    }
    let result = format!("<DeleteResult>{answers}</DeleteResult>");
    Ok(xml(StatusCode::OK, &result))
}

fn unescaped(text: &str) -> String {
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
    ];
    let coded = [("&#13;", "\r"), ("&#10;", "\n"), ("&amp;", "&")];
    let pairs = named.into_iter().chain(coded);
    pairs.fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

async fn find(app: &App, asked: &Asked) -> Result<Version, Refusal> {
    let no_such_version = || refuse(404, "NoSuchVersion", "there is no such version");
    let version = asked.parameter("versionId").map(str::parse);
    let question = Question::Object {
        bucket: asked.bucket.clone(),
        key: asked.key.clone(),
        version: version.transpose().map_err(|_| no_such_version())?,
    };
    match app.committer.get(question).await? {
        Found::Object(version) => Ok(version),
        Found::NoSuchBucket => Err(no_such_bucket()),
        _ if asked.parameter("versionId").is_some() => Err(no_such_version()),
        _ => Err(no_such_key()),
    }
}

pub(super) async fn read(app: &App, asked: &Asked) -> Result<Response, Refusal> {
    let found = find(app, asked).await?;
    let headers = &asked.parts.headers;
    let names = |tags: Option<&str>| tags.map(|tags| etags(tags).holds(Some(&found.etag)));
    if names(single(headers, "if-match")?) == Some(false) {
        let message = "the object has another ETag than If-Match";
        return Err(refuse(412, "PreconditionFailed", message));
    }
    if names(single(headers, "if-none-match")?) == Some(true) {
        let unchanged = versioned(StatusCode::NOT_MODIFIED, Some(&found.etag), found.id);
        return Ok(unchanged.into_response());
    }
    let whole = found.body.clone().unwrap_or_default();
    let range = text(headers, "range").and_then(|range| range_of(range, whole.len()));
    let range = range.transpose()?;
    let status = match range {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    let mut answer = versioned(status, Some(&found.etag), found.id).into_response();
    let mut set = |name: &str, value: String| {
        let name = header::HeaderName::try_from(name).ok();
        let value = HeaderValue::try_from(value).ok();
        if let (Some(name), Some(value)) = (name, value) {
            answer.headers_mut().insert(name, value);
        }
    };
    let at = UNIX_EPOCH + Duration::from_secs(found.time_s);
    set("last-modified", httpdate::fmt_http_date(at));
    set("accept-ranges", "bytes".to_owned());
    set("content-type", "binary/octet-stream".to_owned());
    if let Some(Range { start, end }) = &range {
        set(
            "content-range",
            format!("bytes {start}-{}/{}", end - 1, whole.len()),
        );
    }
    for (name, value) in found.meta {
        set(&name, value);
    }
    let part = range.map_or(whole.clone(), |range| whole.slice(range));
    set("content-length", part.len().to_string());
    if asked.parts.method != axum::http::Method::HEAD {
        *answer.body_mut() = Body::from(part);
    }
    Ok(answer)
}

/// Reads `bytes=3-5`, `bytes=3-` or `bytes=-5`; anything else asks for the whole object.
fn range_of(text: &str, length: usize) -> Option<Result<Range<usize>, Refusal>> {
    let (from, to) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (from.parse::<usize>().ok(), to.parse::<usize>().ok()) {
        (Some(from), None) if to.is_empty() => from..length,
        (Some(from), Some(to)) => from..length.min(to.saturating_add(1)),
        (None, Some(last)) if from.is_empty() => length.saturating_sub(last)..length,
        _ => return None,
    };
    Some(match range.is_empty() {
        true => Err(refuse(416, "InvalidRange", "the object has no such bytes")),
        false => Ok(range),
    })
}

fn versioned(status: StatusCode, etag: Option<&str>, id: u64) -> impl IntoResponse {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-version-id", HeaderValue::from(id));
    let etag = etag.and_then(|etag| HeaderValue::try_from(format!("\"{etag}\"")).ok());
    headers.extend(etag.map(|etag| (header::ETAG, etag)));
    (status, headers)
}

fn condition(headers: &HeaderMap) -> Result<Condition, Refusal> {
    match (
        single(headers, "if-match")?,
        single(headers, "if-none-match")?,
    ) {
        (None, None) => Ok(Condition::None),
        (None, Some("*")) => Ok(Condition::Absent),
        (Some(tags), None) => Ok(etags(tags)),
        _ => Err(refuse(
            501,
            "NotImplemented",
            "a write has If-Match, or If-None-Match with *, and not both",
        )),
    }
}

fn etags(tags: &str) -> Condition {
    if tags.trim() == "*" {
        return Condition::Present;
    }
    let tags = tags.split(',').map(|tag| tag.trim().trim_matches('"'));
    Condition::Matches(tags.map(str::to_owned).collect())
}

/// Returns a header with a condition. One that cannot be read must not count as none.
fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Refusal> {
    let values: Vec<_> = headers.get_all(name).iter().collect();
    let read = match values[..] {
        [] => return Ok(None),
        [value] => value.to_str().ok(),
        _ => None,
    };
    let read = read.filter(|tags| tags.len() <= MAX_CONDITION_BYTES);
    let message = || format!("{name} is one line of up to {MAX_CONDITION_BYTES} printable bytes");
    read.map(Some)
        .ok_or_else(|| refuse(400, "InvalidArgument", message()))
}

fn meta(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Refusal> {
    let kept = headers.iter().filter(|(name, _)| {
        let name = name.as_str();
        name.starts_with("x-amz-meta-") || KEPT.contains(&name)
    });
    let kept = kept.filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let kept: BTreeMap<String, String> = kept.collect();
    let bytes = kept.iter().map(|(name, value)| name.len() + value.len());
    if bytes.sum::<usize>() > MAX_META_BYTES {
        let message = "metadata has up to 2048 bytes";
        return Err(refuse(400, "MetadataTooLarge", message));
    }
    Ok(kept)
}
