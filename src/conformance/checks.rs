//! The checks, one after the other.

use super::conversation::{Conversation, Ended, Talk};
use super::stage::{Stage, rows};
use super::steps::{dwell, granted, is_ready, optional, task, tells_its_clocks};
use super::{Checked, Declared, Finding};
use crate::cluster::ClusterResult;
use crate::model::{Ability, EventKind, Fence, FencingToken, Gate, LogRow, ReleaseOutcome};
use crate::resource::{ResourceClient, WriteRequest};
use std::collections::BTreeSet;

const READY: &str = "is ready and waits at its start";
const CLOCKS: &str = "answers a question about its clocks";
const INPUT: &str = "ends with its input";
const ROUND: &str = "plays a round and stops at each gate";
const ROUNDS: &str = "plays several rounds, each with an owner of its own";
const FOR_A_TIME: &str = "plays for a time";
const REFUSED: &str = "reports a write that is refused";
const UNANSWERED: &str = "reports a resource that does not answer";
const NOT_GRANTED: &str = "reports a lock that it is not granted";
const WITHOUT_READS: &str = "writes without a read";
const RENEWS: &str = "renews";
const NESTS: &str = "nests its holds";

/// Nobody listens there.
const NOBODY: &str = "http://127.0.0.1:1";
const FOR_MS: u64 = 300;

/// What all checks found.
pub struct Findings {
    pub declared: Declared,
    pub checked: Vec<Checked>,
}

/// Checks a worker whose lock servers are up. A worker that never gets ready is asked for nothing
/// more.
pub async fn check_all(
    stage: &Stage<'_>,
    progress: impl Fn(&'static str),
) -> ClusterResult<Findings> {
    let mut checked = Vec::new();
    let mut note = |check, result: Talk| {
        let outcome = result.map_or_else(Finding::from, |()| Finding::Passed);
        let passed = outcome == Finding::Passed;
        checked.push(Checked { check, outcome });
        passed
    };
    progress(READY);
    let mut declared = Declared::default();
    let first = is_ready(stage, &mut declared).await;
    let (first, talk) = match first {
        Ok(talk) => (Ok(()), Some(talk)),
        Err(ended) => (Err(ended), None),
    };
    note(READY, first);
    let Some(mut talk) = talk else {
        return Ok(Findings { declared, checked });
    };
    progress(CLOCKS);
    note(CLOCKS, tells_its_clocks(&mut talk).await);
    progress(INPUT);
    note(INPUT, talk.hang_up(stage.cluster).await);

    let has_tokens = declared.has(Ability::Token);
    let fence = if has_tokens { Fence::On } else { Fence::Off };
    let resource = stage.start_resource(fence).await?;
    let on = Checker {
        stage,
        resource: &resource,
        has_tokens,
    };
    progress(ROUND);
    note(ROUND, on.round().await);
    progress(ROUNDS);
    note(ROUNDS, on.rounds().await);
    progress(FOR_A_TIME);
    note(FOR_A_TIME, on.for_a_time().await);
    progress(REFUSED);
    note(REFUSED, on.refused_write().await);
    progress(UNANSWERED);
    note(UNANSWERED, on.unanswered().await);
    progress(NOT_GRANTED);
    note(NOT_GRANTED, on.not_granted().await);
    progress(WITHOUT_READS);
    note(WITHOUT_READS, optional(on.without_reads().await));
    progress(RENEWS);
    note(RENEWS, optional(on.renews().await));
    progress(NESTS);
    note(NESTS, optional(on.nests().await));
    Ok(Findings { declared, checked })
}

struct Checker<'a> {
    stage: &'a Stage<'a>,
    resource: &'a ResourceClient,
    has_tokens: bool,
}

impl Checker<'_> {
    async fn round(&self) -> Talk {
        let key = "check-round";
        let gates = [
            Gate::Start,
            Gate::AfterAcquire,
            Gate::BeforeWrite,
            Gate::BeforeRelease,
        ];
        let mut talk = self.stage.start(&task(key, &gates)).await?;
        talk.pass(Gate::Start, 0).await?;
        granted(&mut talk).await?;
        talk.until_gate(Gate::AfterAcquire).await?;
        dwell(&mut talk).await?;
        talk.go(Gate::AfterAcquire, 1).await?;
        talk.until_gate(Gate::BeforeWrite).await?;
        dwell(&mut talk).await?;
        if !rows(self.resource, key).await?.is_empty() {
            let problem = "the resource has its write already";
            return Err(talk.wrong_last(problem, "a write after this gate is open".into()));
        }
        talk.go(Gate::BeforeWrite, 1).await?;
        talk.until_named("write_accepted").await?;
        talk.pass(Gate::BeforeRelease, 1).await?;
        let released = talk.until_named("released").await?;
        let outcome = ReleaseOutcome::Released;
        if !matches!(&released.event, EventKind::Released { outcome: found, .. } if *found == outcome)
        {
            let problem = "a lock that was held all the time is not released".to_owned();
            return Err(talk.wrong_in("released", problem, "\"outcome\": \"released\"".into()));
        }
        talk.until_over().await?;
        let rows = self.matching_rows(&talk, key, 1).await?;
        based_on(&talk, &rows[0], Some(0))
    }

    async fn rounds(&self) -> Talk {
        let key = "check-rounds";
        let mut settings = task(key, &[]);
        settings.more = &[("FENCEPOST_ROUNDS", "3")];
        let mut talk = self.stage.start(&settings).await?;
        granted(&mut talk).await?;
        talk.until_over().await?;
        let rows = self.matching_rows(&talk, key, 3).await?;
        let owners: BTreeSet<_> = rows.iter().map(|row| &row.owner).collect();
        if owners.len() < rows.len() {
            let problem = "two rounds have the same owner".to_owned();
            let expected = "an `owner` that is drawn anew for each acquire".into();
            return Err(talk.wrong_in("acquired", problem, expected));
        }
        based_on(&talk, &rows[2], Some(rows[1].seq))
    }

    async fn for_a_time(&self) -> Talk {
        let key = "check-time";
        let gates = [Gate::Start];
        let mut settings = task(key, &gates);
        settings.more = &[("FENCEPOST_FOR_MS", "300")];
        let mut talk = self.stage.start(&settings).await?;
        let ready = talk.until_gate(Gate::Start).await?;
        talk.go(Gate::Start, 0).await?;
        granted(&mut talk).await?;
        talk.until_over().await?;
        let done_ns = talk.heard.last().map_or(0, |heard| heard.at_ns);
        if done_ns < ready.at_ns + FOR_MS * 1_000_000 {
            let problem = format!("it is done before {FOR_MS} ms have passed");
            let expected =
                "new rounds until FENCEPOST_FOR_MS have passed, if FENCEPOST_ROUNDS is absent"
                    .into();
            return Err(talk.wrong_in("done", problem, expected));
        }
        Ok(())
    }

    async fn refused_write(&self) -> Talk {
        if !self.has_tokens {
            return Err(Ended::NotOffered("it has no fencing token".to_owned()));
        }
        let key = "check-refused";
        let gates = [Gate::BeforeWrite];
        let mut talk = self.stage.start(&task(key, &gates)).await?;
        let grant = granted(&mut talk).await?;
        let wrong = |problem: &str, expected: &str| {
            Err(talk.wrong_in("acquired", problem.into(), expected.into()))
        };
        let EventKind::Acquired {
            token: Some(token), ..
        } = grant.event
        else {
            return wrong("there is no `token`", "a `token`");
        };
        let Some(higher) = token.0.checked_add(1).map(FencingToken) else {
            return wrong("no `token` can come after this one", "a lower `token`");
        };
        talk.until_gate(Gate::BeforeWrite).await?;
        let write = WriteRequest {
            key: key.to_owned(),
            token: Some(higher),
            token_seq: 0,
            owner: Some("somebody-else".to_owned()),
            based_on: None,
            body: "{\"count\": 1}".into(),
        };
        let written = self.resource.put(&write).await;
        written.map_err(|error| Ended::NotSeen(error.to_string()))?;
        talk.go(Gate::BeforeWrite, 1).await?;
        let answer = talk.until_named("write_rejected").await?;
        let EventKind::WriteRejected { seen, got, .. } = answer.event else {
            unreachable!("it is called so");
        };
        if (seen, got) != (higher, token) {
            let problem = format!("it has seen {seen} and got {got}");
            let expected =
                format!("\"seen\": {higher} and \"got\": {token}, as the resource answered");
            return Err(talk.wrong_last(&problem, expected));
        }
        talk.until_over().await
    }

    async fn unanswered(&self) -> Talk {
        let mut settings = task("check-unanswered", &[]);
        settings.more = &[("FENCEPOST_RESOURCE", NOBODY)];
        let mut talk = self.stage.start(&settings).await?;
        granted(&mut talk).await?;
        talk.until_named("failed").await?;
        talk.until_named("releasing").await?;
        talk.until_over().await
    }

    async fn not_granted(&self) -> Talk {
        let key = "check-granted";
        let gates = [Gate::AfterAcquire];
        let mut settings = task(key, &gates);
        settings.ttl_ms = 20_000;
        let mut holder = self.stage.start(&settings).await?;
        granted(&mut holder).await?;
        holder.until_gate(Gate::AfterAcquire).await?;
        settings.gates = &[];
        settings.more = &[
            ("FENCEPOST_ACQUIRE_TIMEOUT_MS", "500"),
            ("FENCEPOST_WORKER", "b"),
        ];
        let mut other = self.stage.start(&settings).await?;
        let is_answer = |kind: &EventKind| {
            matches!(kind, EventKind::Acquired { .. } | EventKind::Failed { .. })
        };
        if let EventKind::Acquired { .. } = other.until(is_answer).await?.event {
            return Err(Ended::NotSeen(
                "a second worker was granted the lock that the first one holds; `fencepost try` says more about that".to_owned(),
            ));
        }
        other.until_over().await?;
        holder.go(Gate::AfterAcquire, 1).await?;
        holder.until_over().await
    }

    async fn without_reads(&self) -> Talk {
        let key = "check-reads";
        let mut settings = task(key, &[]);
        settings.more = &[("FENCEPOST_READS", "false")];
        let mut talk = self.stage.start(&settings).await?;
        granted(&mut talk).await?;
        talk.until_over().await?;
        let rows = self.matching_rows(&talk, key, 1).await?;
        based_on(&talk, &rows[0], None)
    }

    async fn renews(&self) -> Talk {
        let gates = [Gate::BeforeWrite];
        let mut settings = task("check-renewal", &gates);
        settings.ttl_ms = 2_000;
        settings.more = &[("FENCEPOST_RENEW", "true")];
        let mut talk = self.stage.start(&settings).await?;
        granted(&mut talk).await?;
        talk.until_gate(Gate::BeforeWrite).await?;
        talk.until_named("renewed").await?;
        talk.go(Gate::BeforeWrite, 1).await?;
        talk.until_over().await
    }

    async fn nests(&self) -> Talk {
        let mut settings = task("check-nested", &[]);
        settings.more = &[("FENCEPOST_NESTED", "2")];
        let mut talk = self.stage.start(&settings).await?;
        granted(&mut talk).await?;
        talk.until_named("reentered").await?;
        talk.until_named("left").await?;
        talk.until_over().await
    }

    /// Returns the writes of a key, which have to be those that the worker has reported.
    async fn matching_rows(
        &self,
        talk: &Conversation,
        key: &str,
        count: usize,
    ) -> Talk<Vec<LogRow>> {
        let rows = rows(self.resource, key).await?;
        if rows.len() != count {
            let problem = format!("the resource has {} writes of it", rows.len());
            let expected =
                format!("{count}: one request for each `writing`, with retries turned off");
            return Err(talk.wrong_in("writing", problem, expected));
        }
        let reported = talk.heard.iter().filter_map(|heard| match &heard.event {
            EventKind::Writing {
                token, owner, body, ..
            } => Some((token, owner, body)),
            _ => None,
        });
        for ((token, owner, body), row) in reported.zip(&rows) {
            let wrong = |header: &str, got: String, sent: String| {
                let problem = format!("the resource got {header} {got}");
                talk.wrong_in(
                    "writing",
                    problem,
                    format!("{header} {sent}, as the event has"),
                )
            };
            if row.owner.as_ref() != Some(owner) {
                let got = format!("{:?}", row.owner.as_deref().unwrap_or_default());
                return Err(wrong("X-Owner", got, format!("{owner:?}")));
            }
            if row.token != *token {
                let shown = |token: Option<FencingToken>| {
                    token.map_or("none".to_owned(), |token| token.to_string())
                };
                return Err(wrong("X-Fence-Token", shown(row.token), shown(*token)));
            }
            if body.is_some() && row.body != *body {
                let problem = "`body` is not the hash of the body that the resource got".to_owned();
                let expected =
                    "the first 16 hexadecimal digits of the SHA-256 of the bytes that are sent";
                return Err(talk.wrong_in("writing", problem, expected.into()));
            }
        }
        Ok(rows)
    }
}

fn based_on(talk: &Conversation, row: &LogRow, wanted: Option<u64>) -> Talk {
    if row.based_on == wanted {
        return Ok(());
    }
    let shown = |position: Option<u64>| match position {
        Some(position) => format!("X-Based-On: {position}"),
        None => "no X-Based-On".to_owned(),
    };
    let problem = format!("the resource got {}", shown(row.based_on));
    let expected = format!(
        "{}: the position that was read before the work (0 if there was nothing), and none with FENCEPOST_READS=false",
        shown(wanted)
    );
    Err(talk.wrong_in("writing", problem, expected))
}
