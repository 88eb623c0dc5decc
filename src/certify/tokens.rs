//! Stores that compare tokens: our own resource, and rows of a Postgres. A version is a token, and
//! whoever replaces a version writes with the next one.

use super::Property;
use super::store::{
    ANSWER_DEADLINE, Answer, Attempt, Book, Condition, Store, StoreError, StoreResult, Version,
};
use crate::model::{FencingToken, ResourceKind, without_password};
use crate::resource::{ClientError, ResourceClient, WriteAnswer, WriteRequest};
use async_trait::async_trait;
use fencing_lock::servers::{
    PostgresConnection, check_postgres_schema, connect_postgres, postgres_problem,
};
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::oneshot;

pub struct TokenStore {
    client: ResourceClient,
    /// None for our own resource, which has keys of its own in place of a schema.
    schema: Option<Schema>,
    prefix: String,
    book: Book,
}

/// A schema of a Postgres that is made for one certificate.
struct Schema {
    server: String,
    /// The address of the schema.
    inside: String,
    name: String,
    may_exist: AtomicBool,
}

impl TokenStore {
    /// Makes nothing yet.
    pub fn new(url: &str, id: &str) -> Result<TokenStore, StoreError> {
        let (url, schema) = match ResourceKind::of_url(url) {
            ResourceKind::Postgres => {
                let name = format!("fencepost_certify_{id}");
                let separator = if url.contains('?') { '&' } else { '?' };
                let inside = format!("{url}{separator}options=-csearch_path%3D{name}");
                let schema = Schema {
                    server: without_settings(url),
                    inside: without_settings(&inside),
                    name,
                    may_exist: AtomicBool::new(false),
                };
                (inside, Some(schema))
            }
            ResourceKind::Http | ResourceKind::S3 => (url.to_owned(), None),
        };
        Ok(TokenStore {
            client: ResourceClient::new(&url, ANSWER_DEADLINE).map_err(failed)?,
            schema,
            prefix: format!("fencepost-certify-{id}-"),
            book: Book::default(),
        })
    }

    fn request(&self, attempt: &Attempt) -> StoreResult<WriteRequest> {
        self.book.count()?;
        self.book.note(&attempt.key);
        let token = match &attempt.condition {
            Condition::Absent => 1,
            Condition::Is(version) => token_of(version) + 1,
        };
        Ok(WriteRequest {
            key: format!("{}{}", self.prefix, attempt.key),
            token: Some(FencingToken(token)),
            token_seq: 0,
            owner: Some(format!("writer-{}", attempt.by)),
            based_on: None,
            body: attempt.body.clone(),
        })
    }
}

fn answer_of(write: &WriteRequest, answer: WriteAnswer) -> Answer {
    match answer {
        WriteAnswer::Accepted { position } => Answer::Accepted(version_of(write.token, position)),
        WriteAnswer::Rejected { .. } => Answer::Refused,
    }
}

/// Returns `token@position`: a write that is applied twice has the same token and another position.
fn version_of(token: Option<FencingToken>, position: u64) -> Version {
    format!("{}@{position}", token.map_or(0, |token| token.0))
}

fn token_of(version: &str) -> u64 {
    let token = version.split('@').next();
    token
        .and_then(|token| token.parse().ok())
        .unwrap_or_default()
}

fn failed(error: ClientError) -> StoreError {
    match error {
        ClientError::NoAnswer { request, reason } => {
            StoreError::Unanswered(format!("{request}: {reason}"))
        }
        refused => StoreError::Refused(refused.to_string()),
    }
}

fn failed_at(server: &str, problem: impl std::fmt::Display) -> StoreError {
    StoreError::Unanswered(format!("{}: {problem}", without_password(server)))
}

/// Returns the address without what is for our client alone.
fn without_settings(url: &str) -> String {
    let Some((server, query)) = url.split_once('?') else {
        return url.to_owned();
    };
    let is_ours = |part: &&str| part.starts_with("fence=") || part.starts_with("announce=");
    let others = query.split('&').filter(|part| !is_ours(part));
    let others: Vec<&str> = others.collect();
    match others.is_empty() {
        true => server.to_owned(),
        false => format!("{server}?{}", others.join("&")),
    }
}

async fn admin(server: &str) -> StoreResult<PostgresConnection> {
    let connected = connect_postgres(server, ANSWER_DEADLINE, |_| {}).await;
    connected.map_err(|problem| failed_at(server, problem))
}

#[async_trait]
impl Store for TokenStore {
    async fn prepare(&self) -> StoreResult<()> {
        if let Some(Schema {
            server,
            inside,
            name,
            may_exist,
        }) = &self.schema
        {
            self.book.count()?;
            let connection = admin(server).await?;
            may_exist.store(true, Ordering::Relaxed);
            let create = format!("CREATE SCHEMA {name}");
            let made = connection.batch_execute(&create).await;
            made.map_err(|error| {
                let problem = postgres_problem(error);
                let remedy = "a certificate needs the right to create a schema in the database";
                StoreError::Refused(format!("{}: {problem}; {remedy}", without_password(server)))
            })?;
            self.book.count()?;
            // Without the schema, tables of somebody else's would be written to.
            let place = check_postgres_schema(&admin(inside).await?, name).await;
            place.map_err(|problem| failed_at(inside, problem))?;
        }
        self.client.prepare().await.map_err(failed)?;
        self.read("nothing").await.map(drop)
    }

    fn lacks(&self, property: Property) -> Option<&'static str> {
        match property {
            Property::ReplaceOfNothing => Some("a token needs no version before it"),
            Property::DeleteAndRecreate => Some("what has a token is not deleted"),
            Property::ListAfterWrite if self.schema.is_none() => Some("it lists no keys"),
            Property::EqualContent => Some("it compares tokens, and no content"),
            _ => None,
        }
    }

    async fn write(&self, attempt: &Attempt) -> StoreResult<Answer> {
        let write = self.request(attempt)?;
        let answer = self.client.put(&write).await.map_err(failed)?;
        Ok(answer_of(&write, answer))
    }

    async fn slow_write(
        &self,
        attempt: &Attempt,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> StoreResult<Answer> {
        let write = self.request(attempt)?;
        let answer = self.client.put_slowly(&write, begun, go).await;
        Ok(answer_of(&write, answer.map_err(failed)?))
    }

    fn recognises_repetitions(&self) -> bool {
        true
    }

    async fn read(&self, key: &str) -> StoreResult<Option<(Version, Vec<u8>)>> {
        self.book.count()?;
        let found = self.client.get(&format!("{}{key}", self.prefix)).await;
        let found = found.map_err(failed)?;
        Ok(found.map(|stored| {
            let version = version_of(stored.max_fence, stored.position);
            (version, stored.value.as_bytes().to_vec())
        }))
    }

    async fn delete(&self, _: &str) -> StoreResult<()> {
        Ok(())
    }

    async fn list(&self) -> StoreResult<Vec<String>> {
        self.book.count()?;
        let rows = self.client.log().await.map_err(failed)?;
        let keys = rows
            .iter()
            .filter_map(|row| row.key.strip_prefix(&self.prefix));
        Ok(keys.map(str::to_owned).collect())
    }

    async fn forgets(&self) -> StoreResult<Option<String>> {
        let Some(Schema { server, .. }) = &self.schema else {
            return Ok(None);
        };
        let connection = admin(server).await?;
        for setting in ["synchronous_commit", "fsync"] {
            self.book.count()?;
            let value = connection
                .query_typed_one(&format!("SHOW {setting}"), &[])
                .await;
            let value = value.and_then(|row| row.try_get::<_, String>(0));
            let value = value.map_err(|error| failed_at(server, postgres_problem(error)))?;
            if value == "off" {
                return Ok(Some(format!(
                    "{setting} is off: a crash loses writes that were acknowledged, and the tokens in them"
                )));
            }
        }
        Ok(None)
    }

    async fn remove(&self) -> Result<(), String> {
        self.book.take();
        let made = self.schema.as_ref();
        let made = made.filter(|schema| schema.may_exist.load(Ordering::Relaxed));
        let Some(Schema { server, name, .. }) = made else {
            return Ok(());
        };
        let removed = async {
            let drop = format!("DROP SCHEMA IF EXISTS {name} CASCADE");
            let dropped = admin(server).await?.batch_execute(&drop).await;
            dropped.map_err(|error| failed_at(server, postgres_problem(error)))
        };
        let removed: StoreResult<()> = removed.await;
        removed.map_err(|error| format!("{} may be left: {error}", self.place()))
    }

    fn place(&self) -> String {
        match &self.schema {
            Some(schema) => format!("the schema {}", schema.name),
            None => format!("the keys {}…", self.prefix),
        }
    }

    fn leaves(&self) -> Option<String> {
        let note = || format!("{} stay: the resource deletes nothing", self.place());
        self.schema.is_none().then(note)
    }

    fn book(&self) -> &Book {
        &self.book
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_for_our_client_alone_is_left_out_of_an_address() {
        let without = without_settings("postgres://h:1/d?fence=on&x=1&announce=on");
        assert_eq!(without, "postgres://h:1/d?x=1");
        assert_eq!(
            without_settings("postgres://h:1/d?announce=on"),
            "postgres://h:1/d"
        );
    }
}
