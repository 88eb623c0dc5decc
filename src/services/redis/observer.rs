use super::guest::reports_changes;
use super::rows::{Next, Observed};
use crate::services::observe::*;
use ::redis::aio::PubSubStream;
use ::redis::{AsyncConnectionConfig, ErrorKind, InfoDict, Msg, ServerErrorKind, cmd};
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};
use fencing_lock::servers::{
    Lua, redis_client as client, redis_connect_problem as connect_problem_of,
    redis_problem as problem_of,
};
use futures_util::StreamExt;
use tokio::time::{sleep, timeout_at};
use uuid::Uuid;

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// Watches one Redis. A lock of another library is a string whose value is the owner, or a hash
/// whose one field is.
///
/// `expired` is the time at which the server noticed. For a key that nobody asks for, that can be a
/// moment after it expired; no grant comes in between.
pub async fn observe_redis(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    let subscribing = Observer::subscribe(watch.address, watch.node, layout, watch.events);
    let subscribed = timeout(STEP_TIMEOUT, subscribing).await;
    let mut observer = subscribed.map_err(|_| no_answer("subscribing took too long"))??;
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch
        .ready
        .send(std::mem::take(&mut observer.server_version));
    let result = observer.watch(watch.stop).await;
    let rows = observer.observed.give_up();
    let _ = send(&observer.tx, rows).await;
    result
}

fn no_answer(why: &str) -> LockProblem {
    LockProblem::NoAnswer(why.to_owned())
}

struct Observer {
    server_version: String,
    asking: RedisConnection,
    stream: PubSubStream,
    /// The prefix of the channels on which answers to our questions come in.
    answers: String,
    layout: Layout,
    script: Lua,
    observed: Observed,
    tx: mpsc::Sender<LockEvent>,
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
        until_loaded(&mut asking).await?;
        match layout.is_guest() {
            true => reports_changes(&mut asking).await?,
            false => report_changes(&mut asking).await?,
        }
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
            script: Lua::new(match layout.is_own() {
                true => include_str!("observe.lua"),
                false => include_str!("observe_foreign.lua"),
            }),
            observed: Observed::new(node_name, layout.is_own()),
            layout,
            tx,
        })
    }

    /// Watches until the end that `stop` asks for has come through the same stream as everything
    /// before it.
    async fn watch(&mut self, stop: CancellationToken) -> Result<(), LockProblem> {
        let mut end_by: Option<Instant> = None;
        loop {
            let message = match end_by {
                Some(end_by) => timeout_at(end_by, self.stream.next())
                    .await
                    .map_err(|_| no_answer("the end did not come"))?,
                None => tokio::select! {
                    message = self.stream.next() => message,
                    () = stop.cancelled() => {
                        self.publish_end().await?;
                        end_by = Some(Instant::now() + STEP_TIMEOUT);
                        continue;
                    }
                },
            };
            let message = message.ok_or_else(|| no_answer("the connection ended"))?;
            if self.heard(&message).await?.is_break() {
                break;
            }
        }
        if self.layout.is_guest() {
            // Somebody may have changed the setting meanwhile, and then rows are missing.
            reports_changes(&mut self.asking).await?;
        }
        Ok(())
    }

    async fn heard(&mut self, message: &Msg) -> Result<ControlFlow<()>, LockProblem> {
        let at_ns = raw_monotonic_ns();
        let channel = message.get_channel_name();
        let payload = message.get_payload_bytes();
        if let Some(name) = self.layout.name_in(channel) {
            let (name, command) = (name.to_owned(), String::from_utf8_lossy(payload));
            let lock = self.layout.lock(&name);
            return match self.observed.notified(at_ns, lock, &command) {
                Next::Rows(rows) => Ok(send(&self.tx, rows).await),
                Next::Ask => match self.ask(&name).await {
                    Ok(()) => Ok(ControlFlow::Continue(())),
                    // The key holds no lock that we could read: the grant stays anonymous.
                    Err(LockProblem::Refused(_)) => {
                        let lock = self.layout.lock(&name);
                        let rows = self.observed.answered(lock, None, None);
                        Ok(send(&self.tx, rows).await)
                    }
                    Err(problem) => Err(problem),
                },
            };
        }
        match channel.strip_prefix(&self.answers) {
            Some("") => Ok(ControlFlow::Break(())),
            Some(name) => {
                let (owner, token) = read_answer(payload);
                let lock = self.layout.lock(name);
                let rows = self.observed.answered(lock, owner, token);
                Ok(send(&self.tx, rows).await)
            }
            None => Ok(ControlFlow::Continue(())),
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
}

/// Has the server report what happens to its keys. The setting is shared by all who watch it.
async fn report_changes(asking: &mut RedisConnection) -> Result<(), LockProblem> {
    // K: on the key's channel. g: del and expire. $: set. h: hashes. x: expired. e: evicted.
    cmd("CONFIG")
        .arg(&["SET", "notify-keyspace-events", "Kg$hxe"])
        .query_async::<()>(&mut **asking)
        .await
        .map_err(problem_of)
}

/// Waits until the server has loaded its data. Until then it reports every command of its
/// append-only file as if it happened now. The caller sets the time limit.
async fn until_loaded(asking: &mut RedisConnection) -> Result<(), LockProblem> {
    const LOADING: ErrorKind = ErrorKind::Server(ServerErrorKind::BusyLoading);
    loop {
        match cmd("PING").query_async::<()>(&mut **asking).await {
            Err(error) if error.kind() == LOADING => sleep(LOOK_AGAIN_AFTER).await,
            answer => return answer.map_err(problem_of),
        }
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
