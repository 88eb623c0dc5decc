//! Probes over the links that a fault cuts, and over one that it does not.

use super::super::field::Field;
use super::super::probe::{Answer, Outcome, Question};
use super::expected::Expected;
use super::process::state;
use crate::model::{Link, Name};
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// What works answers within this, also on a busy machine.
pub const ANSWER_MS: u64 = 2_000;
/// How long a link may take to work again; etcd's members dial anew, names
/// have to be found again.
const HEALED_DEADLINE: Duration = Duration::from_secs(10);
const ASK_AGAIN: Duration = Duration::from_millis(50);
/// So many connections are tried where a fault does not befall every one.
const MOST_TRIES: usize = 60;

/// The links of a fault, and a control: another link, which has to work all the
/// time, or it was not the fault that was seen.
#[derive(Default)]
pub struct Probes {
    cut: Vec<Link>,
    control: Option<Link>,
    /// All that the fault gets hold of: no control is taken from these.
    gripped: Vec<Link>,
    /// The slowest answer while nothing was wrong.
    usual_us: u64,
}

impl Probes {
    /// All of them have to work before. No control is taken from `all` that the
    /// fault gets hold of.
    pub async fn over(
        field: &Field,
        cut: Vec<Link>,
        all: &[Link],
        expected: &Expected,
    ) -> Result<Probes, String> {
        let cut = living(field, cut).await?;
        if cut.is_empty() {
            return Err("nobody is left at both ends of such a link".to_owned());
        }
        let question = expected.question(0);
        let before = ask_all(field, &cut, &question).await?;
        for (link, answer) in cut.iter().zip(&before) {
            if answer.outcome != Outcome::Answered {
                return Err(format!(
                    "nothing came over {link} before the fault either: {}",
                    words(answer)
                ));
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

    /// Over every link from and to a node.
    pub async fn around(field: &Field, node: &Name) -> Result<Probes, String> {
        let links = field.links()?.around(node);
        Probes::over(field, links.clone(), &links, &Expected::no_answer()).await
    }

    /// Whatever comes of it.
    pub async fn send(&self, field: &Field) -> Result<(), String> {
        ask_all(field, &self.cut, &Expected::no_answer().question(0))
            .await
            .map(drop)
    }

    /// Every link shows what the fault means, and the control works.
    pub async fn show(&self, field: &Field, expected: &Expected) -> Result<String, String> {
        let shown = self.cut.iter().map(|link| async move {
            let mut last = String::new();
            for _ in 0..expected.tries(MOST_TRIES) {
                let answer = ask(field, link, &expected.question(self.usual_us)).await?;
                match expected.is_met(&answer, self.usual_us) {
                    Ok(()) => return Ok(words(&answer)),
                    Err(unlike) => last = format!("a probe over {link} {unlike}"),
                }
            }
            Err(last)
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

    /// Every link works again, after a while, and shows nothing of what the
    /// fault means any more.
    pub async fn work_again(&self, field: &Field, expected: &Expected) -> Result<String, String> {
        let give_up_at = Instant::now() + HEALED_DEADLINE;
        let works = self.cut.iter().map(|link| async move {
            loop {
                let question = Question {
                    within_ms: ANSWER_MS,
                    ..expected.question(self.usual_us)
                };
                let answer = ask(field, link, &question).await?;
                let works = expected.is_over(&answer);
                // A worker that is done by now misses nothing, and neither does
                // anybody miss a server that is dead.
                if works || !both_live(field, link).await? {
                    return Ok(works);
                }
                if Instant::now() >= give_up_at {
                    let seen = words(&answer);
                    return Err(format!("nothing comes over {link} since: {seen}"));
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

    /// The control works, as far as there is one left.
    pub async fn control_works(&self, field: &Field) -> Result<String, String> {
        let Some(control) = &self.control else {
            return Ok("there is no other link to compare with".to_owned());
        };
        let answer = ask(field, control, &Question::within(ANSWER_MS)).await?;
        if answer.outcome == Outcome::Answered {
            return Ok(format!("{control} works"));
        }
        // Its worker may be done, or another fault may have got hold of it.
        match find_control(field, &self.gripped).await? {
            Some(other) => Ok(format!("{other} works")),
            None if !both_live(field, control).await? => {
                Ok("no other link is left to compare with".to_owned())
            }
            None => Err(format!(
                "nothing comes over {control} either, which should work: {}",
                words(&answer)
            )),
        }
    }
}

/// Has the witnesses come that these links need.
pub async fn prepare(field: &Field, cut: impl Iterator<Item = Link>) -> Result<(), String> {
    let cut: Vec<Link> = cut.collect();
    let mut sources: BTreeSet<&Name> = cut.iter().map(|link| &link.from).collect();
    let candidates = candidates(field, &cut)?;
    sources.extend(candidates.first().map(|link| &link.from));
    let called = sources.iter().map(|source| field.witnesses.call(source));
    try_join_all(called).await.map(drop)
}

/// Those of which both ends live: where a worker is done or a server is dead,
/// nothing is left to be cut.
pub async fn living(field: &Field, links: Vec<Link>) -> Result<Vec<Link>, String> {
    let mut living = Vec::new();
    for link in links {
        if both_live(field, &link).await? {
            living.push(link);
        }
    }
    Ok(living)
}

async fn both_live(field: &Field, link: &Link) -> Result<bool, String> {
    let to = field.links()?.leads_to(link);
    let (from, to) = (state(field, &link.from), state(field, &to));
    let (from, to) = tokio::try_join!(from, to)?;
    Ok(from.running && to.running)
}

/// Another link that works, the more alike the better.
async fn find_control(field: &Field, cut: &[Link]) -> Result<Option<Link>, String> {
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

/// From a source that has its witness already, if possible.
fn candidates(field: &Field, cut: &[Link]) -> Result<Vec<Link>, String> {
    let sources: BTreeSet<&Name> = cut.iter().map(|link| &link.from).collect();
    let nodes: BTreeSet<&Name> = cut.iter().map(|link| &link.to).collect();
    let all = field.links()?.all();
    let mut others: Vec<Link> = all.into_iter().filter(|link| !cut.contains(link)).collect();
    others.sort_by_key(|link| (!sources.contains(&link.from), nodes.contains(&link.to)));
    Ok(others)
}

async fn ask_all(
    field: &Field,
    links: &[Link],
    question: &Question,
) -> Result<Vec<Answer>, String> {
    let question = Question {
        within_ms: ANSWER_MS.max(question.within_ms),
        ..question.clone()
    };
    let answers = links.iter().map(|link| ask(field, link, &question));
    join_all(answers).await.into_iter().collect()
}

pub async fn ask(field: &Field, link: &Link, question: &Question) -> Result<Answer, String> {
    let called = field.links()?.called(link);
    let called = called.ok_or_else(|| format!("there is no link {link}"))?;
    let question = Question {
        to: called.to_owned(),
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
