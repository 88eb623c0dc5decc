//! One check for each property. Each has keys of its own.

use super::store::{Answer, Attempt, Condition, Store, StoreError, StoreResult, Version};
use super::{Property, Verdict};
use bytes::Bytes;
use futures_util::future::join_all;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

/// How many write at a time, and how often that is tried.
const WRITERS: u32 = 16;
const ROUNDS: u32 = 3;
/// The longest that a restart may take.
const RESTART_DEADLINE: Duration = Duration::from_secs(60);
/// How often a store that was restarted is asked whether it is there.
const ASKED_AGAIN: u32 = 10;

pub struct Checks<'a> {
    pub store: &'a dyn Store,
    pub restart: Option<&'a str>,
}

fn broken(reason: impl Into<String>) -> StoreResult<Verdict> {
    Ok(Verdict::Broken(reason.into()))
}

impl Checks<'_> {
    pub async fn check(&self, property: Property) -> StoreResult<Verdict> {
        match property {
            Property::ConcurrentCreates => self.concurrent(false).await,
            Property::ConcurrentReplaces => self.concurrent(true).await,
            Property::CreateOverExisting => self.create_over_existing().await,
            Property::StaleVersion => self.stale_version().await,
            Property::ReplaceOfNothing => self.replace_of_nothing().await,
            Property::SlowBody => self.slow_body().await,
            Property::LostAnswer => self.lost_answer().await,
            Property::DeleteAndRecreate => self.delete_and_recreate().await,
            Property::ListAfterWrite => self.list_after_write().await,
            Property::EqualContent => self.equal_content().await,
            Property::Restart => self.restart().await,
        }
    }

    async fn concurrent(&self, replaces: bool) -> StoreResult<Verdict> {
        for round in 1..=ROUNDS {
            let (key, condition) = match replaces {
                false => (format!("create-{round}"), Condition::Absent),
                true => {
                    let key = format!("replace-{round}");
                    let version = self.created(&key, "first").await?;
                    (key, Condition::Is(version))
                }
            };
            let attempts: Vec<Attempt> = (1..=WRITERS)
                .map(|by| attempt(&key, &condition, &format!("writer {by}"), by))
                .collect();
            let answers = join_all(attempts.iter().map(|it| self.store.write(it))).await;
            let answers: Vec<Answer> = answers.into_iter().collect::<StoreResult<_>>()?;
            let accepted = attempts.iter().zip(&answers);
            let accepted = accepted.filter(|(_, answer)| matches!(answer, Answer::Accepted(_)));
            let accepted: Vec<&Attempt> = accepted.map(|(attempt, _)| attempt).collect();
            let [winner] = accepted[..] else {
                let count = accepted.len();
                return broken(format!("{count} of {WRITERS} writes were accepted"));
            };
            if let Some(other) = self.other_than(&key, &winner.body).await? {
                return broken(format!("one write was accepted, and {other}"));
            }
        }
        Ok(Verdict::Kept)
    }

    async fn create_over_existing(&self) -> StoreResult<Verdict> {
        let key = "existing";
        let version = self.created(key, "first").await?;
        self.replaced(key, &version, "second").await?;
        let again = attempt(key, &Condition::Absent, "again", 3);
        self.refused(&again, "second").await
    }

    async fn stale_version(&self) -> StoreResult<Verdict> {
        let key = "stale";
        let first = self.created(key, "first").await?;
        let second = self.replaced(key, &first, "second").await?;
        self.replaced(key, &second, "third").await?;
        for stale in [second, first] {
            let late = attempt(key, &Condition::Is(stale), "late", 9);
            let verdict = self.refused(&late, "third").await?;
            if verdict != Verdict::Kept {
                return Ok(verdict);
            }
        }
        Ok(Verdict::Kept)
    }

    async fn replace_of_nothing(&self) -> StoreResult<Verdict> {
        let version = self.created("something", "first").await?;
        let absent = attempt("nothing", &Condition::Is(version), "late", 2);
        match self.store.write(&absent).await? {
            Answer::Accepted(_) => broken("the write was accepted"),
            Answer::Refused => match self.store.read("nothing").await? {
                None => Ok(Verdict::Kept),
                Some(_) => broken("the write was refused, and applied"),
            },
        }
    }

    /// A begins to write, B writes, and A's write ends.
    async fn slow_body(&self) -> StoreResult<Verdict> {
        for replaces in [true, false] {
            let (key, condition) = match replaces {
                true => {
                    let version = self.created("slow-replace", "first").await?;
                    ("slow-replace", Condition::Is(version))
                }
                false => ("slow-create", Condition::Absent),
            };
            let slow = attempt(key, &condition, "the slow body", 2);
            let fast = attempt(key, &condition, "the fast body", 3);
            let (begun, has_begun) = oneshot::channel();
            let (go, may_go) = oneshot::channel();
            let between = async {
                // If it ended early, its answer says why.
                let _ = has_begun.await;
                let answer = self.store.write(&fast).await;
                let _ = go.send(());
                answer
            };
            let slow = self.store.slow_write(&slow, begun, may_go);
            let (late, early) = tokio::join!(slow, between);
            if early? == Answer::Refused {
                return broken("a write was refused because of another that had only begun");
            }
            if let Answer::Accepted(_) = late? {
                return broken(
                    "a write was accepted although another came between its beginning and its end",
                );
            }
            if let Some(other) = self.other_than(key, b"the fast body").await? {
                return broken(other);
            }
        }
        Ok(Verdict::Kept)
    }

    /// The writer does not hear the first answer, and sends the same again.
    async fn lost_answer(&self) -> StoreResult<Verdict> {
        let key = "lost";
        let version = self.created(key, "first").await?;
        let write = attempt(key, &Condition::Is(version), "the retried body", 2);
        self.accepted(&write).await?;
        let applied = self.store.read(key).await?;
        let again = self.store.write(&write).await?;
        match (again, self.store.recognises_repetitions()) {
            (Answer::Accepted(_), false) => return broken("the second one was accepted too"),
            (Answer::Refused, true) => {
                return broken(
                    "the second one was refused: its writer has to believe that nothing was applied",
                );
            }
            (Answer::Accepted(_), true) | (Answer::Refused, false) => {}
        }
        let after = self.store.read(key).await?;
        let Some((version, body)) = after else {
            return broken("the object is gone");
        };
        if body != write.body {
            return broken("the object does not hold what was written twice");
        }
        match applied.is_some_and(|(applied, _)| applied == version) {
            true => Ok(Verdict::Kept),
            false => broken("the second one was applied too"),
        }
    }

    async fn delete_and_recreate(&self) -> StoreResult<Verdict> {
        let key = "recreated";
        let before = self.created(key, "first").await?;
        self.store.delete(key).await?;
        let late = attempt(key, &Condition::Is(before.clone()), "late", 2);
        if let Answer::Accepted(_) = self.store.write(&late).await? {
            return broken("a version that was deleted was replaced");
        }
        self.created(key, "second").await?;
        self.refused(&late, "second").await
    }

    async fn list_after_write(&self) -> StoreResult<Verdict> {
        let key = "listed";
        self.created(key, "first").await?;
        if !self.store.list().await?.iter().any(|listed| listed == key) {
            return broken("an object that was just created is not listed");
        }
        if self.store.lacks(Property::DeleteAndRecreate).is_some() {
            return Ok(Verdict::Kept);
        }
        self.store.delete(key).await?;
        if self.store.list().await?.iter().any(|listed| listed == key) {
            return broken("an object that was just deleted is listed");
        }
        match self.store.read(key).await? {
            None => Ok(Verdict::Kept),
            Some(_) => broken("an object that was just deleted is read"),
        }
    }

    async fn equal_content(&self) -> StoreResult<Verdict> {
        let key = "equal";
        let first = self.created(key, "the same").await?;
        let second = self.replaced(key, &first, "the same").await?;
        Ok(match first == second {
            false => Verdict::Kept,
            true => Verdict::Depends(
                "equal content has an equal ETag: put the token and the writer into the object"
                    .to_owned(),
            ),
        })
    }

    async fn restart(&self) -> StoreResult<Verdict> {
        if let Some(setting) = self.store.forgets().await? {
            return broken(setting);
        }
        let Some(command) = self.restart else {
            let reason = "--restart COMMAND was not given";
            return Ok(Verdict::NotAsked(reason.to_owned()));
        };
        let key = "restarted";
        let first = self.created(key, "first").await?;
        let second = self.replaced(key, &first, "second").await?;
        let third = self.replaced(key, &second, "third").await?;
        run(command).await?;
        let found = self.after_restart(key).await?;
        if found.as_ref().is_none_or(|(_, body)| body != b"third") {
            return broken("the last write that was acknowledged is gone");
        }
        for stale in [first, second] {
            let late = attempt(key, &Condition::Is(stale), "late", 9);
            if self.refused(&late, "third").await? != Verdict::Kept {
                return broken("a version that was replaced before the restart was replaced again");
            }
        }
        self.replaced(key, &third, "fourth").await?;
        Ok(Verdict::Kept)
    }

    /// Reads a key as soon as the store answers again.
    async fn after_restart(&self, key: &str) -> StoreResult<Option<(Version, Vec<u8>)>> {
        let mut asked = 0;
        loop {
            match self.store.read(key).await {
                Err(StoreError::Unanswered(_)) if asked < ASKED_AGAIN => {
                    asked += 1;
                    sleep(Duration::from_millis(100) * asked * asked).await;
                }
                answer => return answer,
            }
        }
    }

    async fn created(&self, key: &str, body: &str) -> StoreResult<Version> {
        let create = attempt(key, &Condition::Absent, body, 1);
        self.accepted(&create).await
    }

    async fn replaced(&self, key: &str, version: &str, body: &str) -> StoreResult<Version> {
        let condition = Condition::Is(version.to_owned());
        self.accepted(&attempt(key, &condition, body, 2)).await
    }

    async fn accepted(&self, write: &Attempt) -> StoreResult<Version> {
        match self.store.write(write).await? {
            Answer::Accepted(version) => Ok(version),
            Answer::Refused => Err(StoreError::Refused(format!(
                "the store refused a write that it has to accept ({:?})",
                write.condition
            ))),
        }
    }

    /// Sends a write that has to be refused, and looks whether it was applied.
    async fn refused(&self, write: &Attempt, stays: &str) -> StoreResult<Verdict> {
        if let Answer::Accepted(_) = self.store.write(write).await? {
            return broken("the write was accepted");
        }
        match self.other_than(&write.key, stays.as_bytes()).await? {
            None => Ok(Verdict::Kept),
            Some(other) => broken(format!("the write was refused, and {other}")),
        }
    }

    /// Returns what is read instead of a body.
    async fn other_than(&self, key: &str, body: &[u8]) -> StoreResult<Option<String>> {
        Ok(match self.store.read(key).await? {
            Some((_, found)) if found == body => None,
            Some((_, found)) => {
                let (found, body) = (
                    String::from_utf8_lossy(&found),
                    String::from_utf8_lossy(body),
                );
                Some(format!("{found:?} is read in place of {body:?}"))
            }
            None => Some("nothing is read".to_owned()),
        })
    }
}

fn attempt(key: &str, condition: &Condition, body: &str, by: u32) -> Attempt {
    Attempt {
        key: key.to_owned(),
        condition: condition.clone(),
        body: Bytes::copy_from_slice(body.as_bytes()),
        by,
    }
}

/// The processes of a command, which end with it unless it has ended by itself.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // They may have ended this moment.
            let _ = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Runs the command that restarts the store.
pub(super) async fn run(command: &str) -> StoreResult<()> {
    let failed = |reason: String| {
        StoreError::Refused(format!("the command after --restart failed: {reason}"))
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null());
    let shell = shell.stdout(Stdio::null()).process_group(0).spawn();
    let mut shell = shell.map_err(|error| failed(error.to_string()))?;
    let leader = shell.id().and_then(|id| i32::try_from(id).ok());
    let mut group = Group(leader.map(Pid::from_raw));
    let began = Instant::now();
    let ended = timeout(RESTART_DEADLINE, shell.wait()).await;
    let ended = ended.map_err(|_| failed(format!("it took more than {:?}", began.elapsed())))?;
    // What it has left in the background is the store.
    group.0 = None;
    let status = ended.map_err(|error| failed(error.to_string()))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(status.to_string())),
    }
}
