//! Probes over the links that a fault cuts, and over one that it does not.

use super::super::probe::Answer;
use super::*;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeSet;
use tokio::time::Instant;

/// A working link answers within this, also on a busy machine.
pub const ANSWER_MS: u64 = 2_000;
/// The time that a link may take to work again: etcd's members dial anew, and names have to be
/// found again.
const HEALED_DEADLINE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// The number of connections that are tried if a fault does not affect every connection.
const MOST_TRIES: usize = 60;

/// The links of a fault, and a control: another link, which has to work all the time. If it
/// does not, the probes saw something else than the fault.
#[derive(Default)]
pub struct Probes {
    cut: Vec<Link>,
    control: Option<Link>,
    /// All links that the fault affects; none of them can be the control.
    gripped: Vec<Link>,
    /// The slowest answer before the fault.
    usual_us: u64,
}

impl Probes {
    /// Checks that all links in `cut` work before the fault. No link in `all`, which the fault
    /// affects, is taken as the control.
    pub async fn over(
        field: &Field,
        cut: Vec<Link>,
        all: &[Link],
        expected: &Expected,
    ) -> Proof<Probes> {
        let cut = living(field, cut).await?;
        if cut.is_empty() {
            return Err(UnprovenReason::NobodyLeft);
        }
        let question = expected.question(0);
        let before = ask_all(field, &cut, &question).await?;
        for (link, answer) in cut.iter().zip(&before) {
            if answer.outcome != Outcome::Answered {
                return Err(UnprovenReason::SilentBefore {
                    link: link.clone(),
                    seen: words(answer),
                });
            }
        }
        let usual_us = before.iter().map(|answer| answer.took_us).max();
        Ok(Probes {
            control: find_control(field, all).await?,
            gripped: all.to_vec(),
            cut,
            usual_us: usual_us.unwrap_or_default(),
        })
    }

    pub async fn around(field: &Field, node: &Name) -> Proof<Probes> {
        let links = field.links()?.around(node);
        Probes::over(field, links.clone(), &links, &Expected::no_answer()).await
    }

    /// Sends probes and ignores the answers.
    pub async fn send(&self, field: &Field) -> Proof {
        ask_all(field, &self.cut, &Expected::no_answer().question(0))
            .await
            .map(drop)
    }

    /// Checks that every link shows the fault, and that the control works.
    pub async fn show(&self, field: &Field, expected: &Expected) -> Proof<String> {
        let shown = self.cut.iter().map(|link| async move {
            let mut tries_left = expected.tries(MOST_TRIES);
            loop {
                let answer = ask(field, link, &expected.question(self.usual_us)).await?;
                tries_left -= 1;
                match expected.is_met(link, &answer, self.usual_us) {
                    Ok(()) => return Ok(words(&answer)),
                    Err(unlike) if tries_left == 0 => return Err(unlike),
                    Err(_) => {}
                }
            }
        });
        let shown = try_join_all(shown).await?;
        let control = self.control_works(field).await?;
        let seen: BTreeSet<String> = shown.into_iter().collect();
        let seen: Vec<String> = seen.into_iter().collect();
        Ok(format!(
            "probes over {} link(s): {}; {control}",
            self.cut.len(),
            seen.join(", ")
        ))
    }

    /// Waits until every link works again and shows nothing of the fault any more.
    pub async fn work_again(&self, field: &Field, expected: &Expected) -> Proof<String> {
        let give_up_at = Instant::now() + HEALED_DEADLINE;
        let works = self.cut.iter().map(|link| async move {
            loop {
                let question = Question {
                    within_ms: ANSWER_MS,
                    ..expected.question(self.usual_us)
                };
                let answer = ask(field, link, &question).await?;
                let works = expected.is_over(&answer);
                // A worker that is done by now needs no link, and nobody needs a link to a
                // dead server.
                if works || !both_live(field, link).await? {
                    return Ok(works);
                }
                if Instant::now() >= give_up_at {
                    let (link, seen) = (link.clone(), words(&answer));
                    return Err(UnprovenReason::SilentSince { link, seen });
                }
                tokio::time::sleep(ASK_AGAIN).await;
            }
        });
        let works = try_join_all(works).await?;
        let working = works.iter().filter(|works| **works).count();
        Ok(match works.len() - working {
            0 => format!("{working} link(s) work again"),
            gone => format!("{working} link(s) work again, and of {gone} one end is gone"),
        })
    }

    /// Checks that the control works, or another link if there is one left.
    pub async fn control_works(&self, field: &Field) -> Proof<String> {
        let Some(control) = &self.control else {
            return Ok("there is no other link to compare with".to_owned());
        };
        let answer = ask(field, control, &Question::within(ANSWER_MS)).await?;
        if answer.outcome == Outcome::Answered {
            return Ok(format!("{control} works"));
        }
        // Its worker may be done, or another fault may affect it.
        match find_control(field, &self.gripped).await? {
            Some(other) => Ok(format!("{other} works")),
            None if !both_live(field, control).await? => {
                Ok("no other link is left to compare with".to_owned())
            }
            None => Err(UnprovenReason::ControlSilent {
                link: control.clone(),
                seen: words(&answer),
            }),
        }
    }
}

/// Starts the witnesses that these links need.
pub async fn prepare(field: &Field, cut: impl Iterator<Item = Link>) -> Proof {
    let cut: Vec<Link> = cut.collect();
    let mut sources: BTreeSet<&Name> = cut.iter().map(|link| &link.from).collect();
    let candidates = candidates(field, &cut)?;
    sources.extend(candidates.first().map(|link| &link.from));
    let called = sources.iter().map(|source| field.witnesses.call(source));
    try_join_all(called).await.map(drop)
}

/// Starts the witnesses that the links from and to a node need.
pub async fn prepare_around(field: &Field, node: &Name) -> Proof {
    prepare(field, field.links()?.around(node).into_iter()).await
}

/// Returns the links of which both ends live: if a worker is done or a server is dead, there is
/// nothing left to cut.
pub async fn living(field: &Field, links: Vec<Link>) -> Proof<Vec<Link>> {
    let mut living = Vec::new();
    for link in links {
        if both_live(field, &link).await? {
            living.push(link);
        }
    }
    Ok(living)
}

async fn both_live(field: &Field, link: &Link) -> Proof<bool> {
    let to = field.links()?.leads_to(link);
    let (from, to) = (state(field, &link.from), state(field, &to));
    let (from, to) = tokio::try_join!(from, to)?;
    Ok(from.running && to.running)
}

/// Returns another link that works, the more similar the better.
async fn find_control(field: &Field, cut: &[Link]) -> Proof<Option<Link>> {
    for link in candidates(field, cut)? {
        if !both_live(field, &link).await? {
            continue;
        }
        let answer = ask(field, &link, &Question::within(ANSWER_MS)).await;
        if answer.is_ok_and(|answer| answer.outcome == Outcome::Answered) {
            return Ok(Some(link));
        }
    }
    Ok(None)
}

/// Lists the other links, first those from a source that has its witness already.
fn candidates(field: &Field, cut: &[Link]) -> Proof<Vec<Link>> {
    let sources: BTreeSet<&Name> = cut.iter().map(|link| &link.from).collect();
    let nodes: BTreeSet<&Name> = cut.iter().map(|link| &link.to).collect();
    let all = field.links()?.all();
    let mut others: Vec<Link> = all.into_iter().filter(|link| !cut.contains(link)).collect();
    others.sort_by_key(|link| (!sources.contains(&link.from), nodes.contains(&link.to)));
    Ok(others)
}

async fn ask_all(field: &Field, links: &[Link], question: &Question) -> Proof<Vec<Answer>> {
    let question = Question {
        within_ms: ANSWER_MS.max(question.within_ms),
        ..question.clone()
    };
    let answers = links.iter().map(|link| ask(field, link, &question));
    join_all(answers).await.into_iter().collect()
}

pub async fn ask(field: &Field, link: &Link, question: &Question) -> Proof<Answer> {
    let called = field.links()?.called(link);
    let called = called.ok_or_else(|| UnprovenReason::UnknownLink { link: link.clone() })?;
    let server = field.servers.get(&field.links()?.leads_to(link));
    let own = server.and_then(|server| server.answers.greeting());
    let question = Question {
        to: called.to_owned(),
        say: question.say.clone().or(own.map(str::to_owned)),
        ..question.clone()
    };
    field.witnesses.ask(&link.from, question).await
}

pub fn words(answer: &Answer) -> String {
    let took_ms = answer.took_us / 1_000;
    match answer.outcome {
        Outcome::Answered => format!("answered after {took_ms} ms"),
        Outcome::Refused => "connection refused".to_owned(),
        Outcome::Reset => "connection reset".to_owned(),
        Outcome::Closed => "connection closed without an answer".to_owned(),
        Outcome::Silent => "no answer".to_owned(),
        Outcome::Unreachable => "unreachable".to_owned(),
    }
}
