use super::layout::Layout;
use super::readable;
use super::redis_rows::{Next, Observed};
use crate::bounded::redis::{self as bounded, RedisConnection};
use crate::clock::raw_monotonic_ns;
use crate::dlock::redis::{Lua, client, connect_problem_of, problem_of};
use crate::dlock::{LockError, LockProblem};
use crate::model::{FencingToken, KeyTemplate, LockEvent, LockServers};
use futures_util::StreamExt;
use redis::aio::PubSubStream;
use redis::{AsyncConnectionConfig, InfoDict, Msg, cmd};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Watches one Redis as a bystander and sends what it held, for `locks.jsonl`.
/// The locks are this program's own, or lie where `keys` says: strings whose value
/// is the owner, or hashes whose one field is.
///
/// `ready` is sent when no later grant can be missed, with the exact version of
/// the server. After `stop`, what the
/// server had said until then is still delivered, so the receiver has to be
/// read to its end: a full one holds the observer up. An error means that the rows
/// are incomplete from here on: the caller has to say so in its record.
///
/// `expired` is when the server noticed, which for a key that nobody asks for
/// can be a moment after its time; no grant comes in between.
pub async fn observe_redis(
    address: &str,
    node_name: &str,
    keys: Option<&KeyTemplate>,
    tx: mpsc::Sender<LockEvent>,
    ready: oneshot::Sender<String>,
    stop: CancellationToken,
) -> Result<(), LockError> {
    let layout = Layout::new(LockServers::OneRedis, keys);
    let shown = layout.shown();
    let error = |problem| LockError {
        backend: "redis",
        node: node_name.to_owned(),
        key: shown.clone(),
        problem,
    };
    let subscribing = Observer::subscribe(address, node_name, layout, tx);
    let mut observer = timeout(STEP_TIMEOUT, subscribing)
        .await
        .unwrap_or_else(|_| {
            Err(LockProblem::NoAnswer(
                "subscribing took too long".to_owned(),
            ))
        })
        .map_err(error)?;
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = ready.send(std::mem::take(&mut observer.server_version));
    let result = observer.watch(stop).await;
    observer.finish().await;
    result.map_err(error)
}

/// For each step that waits for the server, not for an event.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);

struct Observer {
    server_version: String,
    asking: RedisConnection,
    stream: PubSubStream,
    /// Answers to our questions come in on channels that begin with this.
    answers: String,
    layout: Layout,
    script: Lua,
    observed: Observed,
    tx: mpsc::Sender<LockEvent>,
}

/// Whether there is more to come.
enum Flow {
    On,
    End,
}

impl Observer {
    async fn subscribe(
        address: &str,
        node_name: &str,
        layout: Layout,
        tx: mpsc::Sender<LockEvent>,
    ) -> Result<Observer, LockProblem> {
        let client = client(address)?;
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(STEP_TIMEOUT));
        let mut asking = bounded::connect(&client, config, STEP_TIMEOUT)
            .await
            .map_err(connect_problem_of)?;
        // K: on the key's channel. g: del and expire. $: set. h: hashes. x: expired.
        // e: evicted. It is one setting for all who watch this server.
        cmd("CONFIG")
            .arg(&["SET", "notify-keyspace-events", "Kg$hxe"])
            .query_async::<()>(&mut *asking)
            .await
            .map_err(problem_of)?;
        let server: InfoDict = cmd("INFO")
            .arg("server")
            .query_async(&mut *asking)
            .await
            .map_err(problem_of)?;
        let answers = format!("fencepost:observed:{}:", Uuid::new_v4());
        let mut pubsub = bounded::subscribe(&client)
            .await
            .map_err(connect_problem_of)?;
        for pattern in [layout.channels(), format!("{answers}*")] {
            pubsub.psubscribe(pattern).await.map_err(problem_of)?;
        }
        Ok(Observer {
            server_version: server.get("redis_version").unwrap_or_default(),
            asking,
            stream: pubsub.into_on_message(),
            answers,
            script: Lua::new(match layout {
                Layout::Own(_) => include_str!("observe.lua"),
                Layout::Foreign(_) => include_str!("observe_foreign.lua"),
            }),
            observed: Observed::new(node_name, layout.is_own()),
            layout,
            tx,
        })
    }

    /// Until the end that `stop` asks for has come through the same stream as
    /// everything before it.
    async fn watch(&mut self, stop: CancellationToken) -> Result<(), LockProblem> {
        let mut end_by: Option<Instant> = None;
        loop {
            let message = match end_by {
                Some(end_by) => timeout_at(end_by, self.stream.next())
                    .await
                    .map_err(|_| LockProblem::NoAnswer("the end did not come".to_owned()))?,
                None => tokio::select! {
                    message = self.stream.next() => message,
                    () = stop.cancelled() => {
                        self.publish_end().await?;
                        end_by = Some(Instant::now() + STEP_TIMEOUT);
                        continue;
                    }
                },
            };
            let message =
                message.ok_or_else(|| LockProblem::NoAnswer("the connection ended".to_owned()))?;
            if let Flow::End = self.heard(&message).await? {
                return Ok(());
            }
        }
    }

    async fn heard(&mut self, message: &Msg) -> Result<Flow, LockProblem> {
        let at_ns = raw_monotonic_ns();
        let channel = message.get_channel_name();
        let payload = message.get_payload_bytes();
        if let Some(name) = self.layout.name_in(channel) {
            let (name, command) = (name.to_owned(), String::from_utf8_lossy(payload));
            let lock = self.layout.lock(&name);
            return match self.observed.notified(at_ns, lock, &command) {
                Next::Rows(rows) => Ok(self.send(rows).await),
                Next::Ask => match self.ask(&name).await {
                    Ok(()) => Ok(Flow::On),
                    // The key holds no lock that we could read: the grant stays anonymous.
                    Err(LockProblem::Refused(_)) => {
                        let lock = self.layout.lock(&name);
                        let rows = self.observed.answered(lock, None, None);
                        Ok(self.send(rows).await)
                    }
                    Err(problem) => Err(problem),
                },
            };
        }
        match channel.strip_prefix(&self.answers) {
            Some("") => Ok(Flow::End),
            Some(name) => {
                let (owner, token) = read_answer(payload);
                let lock = self.layout.lock(name);
                let rows = self.observed.answered(lock, owner, token);
                Ok(self.send(rows).await)
            }
            None => Ok(Flow::On),
        }
    }

    async fn ask(&mut self, name: &str) -> Result<(), LockProblem> {
        let keys = self.layout.keys(name);
        let channel = format!("{}{name}", self.answers);
        let answer = self.script.run(&mut self.asking, &keys, &[&channel]).await;
        answer.map_err(problem_of)
    }

    async fn publish_end(&mut self) -> Result<(), LockProblem> {
        cmd("PUBLISH")
            .arg(&[self.answers.as_str(), "end"])
            .query_async::<()>(&mut *self.asking)
            .await
            .map_err(problem_of)
    }

    /// A caller who dropped the receiver wants no more.
    async fn send(&self, rows: Vec<LockEvent>) -> Flow {
        for row in rows {
            if self.tx.send(row).await.is_err() {
                return Flow::End;
            }
        }
        Flow::On
    }

    async fn finish(&mut self) {
        let rows = self.observed.give_up();
        self.send(rows).await;
    }
}

fn read_answer(payload: &[u8]) -> (Option<String>, Option<FencingToken>) {
    let mut parts = payload.splitn(2, |byte| *byte == b' ');
    let token = parts.next().map(String::from_utf8_lossy);
    let token = token.and_then(|token| token.parse().ok());
    (parts.next().map(readable), token.map(FencingToken))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_the_token_and_the_owner_where_there_are_any() {
        let owner = |name: &str| Some(name.to_owned());
        assert_eq!(read_answer(b"7 a b"), (owner("a b"), Some(FencingToken(7))));
        assert_eq!(read_answer(b"7"), (None, Some(FencingToken(7))));
        assert_eq!(read_answer(b"- a"), (owner("a"), None));
        assert_eq!(read_answer(b"-"), (None, None));
    }
}
