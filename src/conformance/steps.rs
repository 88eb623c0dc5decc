//! The steps that several checks have in common.

use super::Declared;
use super::conversation::{Conversation, Ended, Heard, Talk};
use super::stage::{Settings, Stage};
use crate::model::{EventKind, Gate};
use std::time::Duration;
use tokio::time::timeout;

pub const TTL_MS: u32 = 5_000;
/// How long a worker may take to tell its clocks; so long it has to stand still at a gate, too.
pub const DWELL: Duration = Duration::from_secs(2);

/// A worker may refuse what it cannot do, and end with a reason on stderr.
pub fn optional(result: Talk) -> Talk {
    match result {
        Err(Ended::Wrong(wrong)) if wrong.line.is_none() && !wrong.stderr.is_empty() => {
            Err(Ended::NotOffered(wrong.stderr))
        }
        result => result,
    }
}

pub async fn is_ready(stage: &Stage<'_>, declared: &mut Declared) -> Talk<Conversation> {
    let settings = task("check-start", &[Gate::Start]);
    let mut talk = stage.start(&settings).await?;
    talk.until_named("ready").await?;
    declared.clone_from(&talk.declared);
    if let Some(name) = declared
        .only
        .keys()
        .find(|name| !name.starts_with("FENCEPOST_"))
    {
        let problem = format!("`only` has `{name}`");
        return Err(talk.wrong_in(
            "ready",
            problem,
            "names of settings, such as FENCEPOST_RENEW".into(),
        ));
    }
    let asked = stage.settings(&settings);
    let asked = asked
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    if let Some(objection) = declared.objection(asked) {
        let expected = "`refused`, because `only` rules this task out".into();
        return Err(talk.wrong_in("ready", objection, expected));
    }
    talk.until_gate(Gate::Start).await?;
    Ok(talk)
}

pub async fn tells_its_clocks(talk: &mut Conversation) -> Talk {
    talk.ask_clock().await?;
    match timeout(DWELL, talk.until_named("clock")).await {
        Ok(told) => told.map(drop),
        Err(_) => Err(Ended::NotOffered(
            "it does not answer {\"tell\":\"clock\"}; a scenario cannot skew its clock".to_owned(),
        )),
    }
}

/// Stays at a closed gate for a while. The worker may say only what it was asked for.
pub async fn dwell(talk: &mut Conversation) -> Talk {
    talk.ask_clock().await?;
    match timeout(DWELL, talk.until_named("clock")).await {
        Ok(Err(ended)) => Err(ended),
        // A worker that does not know the question has stood still for long enough.
        Ok(Ok(_)) | Err(_) => Ok(()),
    }
}

pub fn task<'a>(key: &'a str, gates: &'a [Gate]) -> Settings<'a> {
    Settings {
        key,
        ttl_ms: TTL_MS,
        gates,
        more: &[],
    }
}

/// Reads up to the grant.
pub async fn granted(talk: &mut Conversation) -> Talk<Heard> {
    let is_answer =
        |kind: &EventKind| matches!(kind, EventKind::Acquired { .. } | EventKind::Failed { .. });
    let answer = talk.until(is_answer).await?;
    match &answer.event {
        EventKind::Failed { error, .. } => Err(Ended::NotSeen(format!(
            "the lock was not granted, although nobody holds it: {error}"
        ))),
        _ => Ok(answer),
    }
}
