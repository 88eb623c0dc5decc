//! The scorecard: what was asked of a lock, and the answer of each case.

use super::*;
use crate::conformance::Declared;
use crate::report::lock::is_only_not_offered;
use crate::report::terminal::missed;
use crate::scenario::Case;
use strum::Display;

/// One row: a case of the trial, or what another case shows beside its own question.
pub struct Question {
    pub name: &'static str,
    /// The name that `--require` knows; several rows may share one.
    pub demand: &'static str,
    /// The case that answers it.
    pub case: &'static str,
    pub words: &'static str,
    /// Whether the answer is the same for every lock.
    pub is_general: bool,
}

const fn asked(name: &'static str, demand: &'static str, words: &'static str) -> Question {
    Question {
        name,
        demand,
        case: name,
        words,
        is_general: false,
    }
}

const fn general(name: &'static str, words: &'static str) -> Question {
    Question {
        is_general: true,
        ..asked(name, "", words)
    }
}

pub const QUESTIONS: [Question; 14] = [
    asked("excludes-short", "excludes", "excludes during short work"),
    asked("excludes-15s", "excludes", "excludes during 15 s of work"),
    asked("excludes-70s", "excludes", "excludes during 70 s of work"),
    asked("excludes-many", "excludes", "excludes when eight want it"),
    asked("crash", "crash", "is free again after a crash"),
    asked(
        "failed-release",
        "failed-release",
        "is free again after a failed release",
    ),
    asked("release", "release", "a release frees its own hold alone"),
    asked(
        "lost-by-a-pause",
        "lost",
        "learns of a lease lost by a pause",
    ),
    asked(
        "lost-when-cut-off",
        "lost",
        "learns of a lease lost by a cut",
    ),
    asked("renews", "renews", "renews for as long as the work lasts"),
    Question {
        case: "excludes-short",
        ..asked("token", "token", "has a token that grows")
    },
    asked("order", "order", "grants in the order of arrival"),
    general(
        "pause-without-a-fence",
        "without a fence, a pause longer than the TTL corrupts",
    ),
    general(
        "pause-with-a-fence",
        "with a fence, the late write is refused",
    ),
];

#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "lowercase")]
pub enum Answer {
    Yes,
    No,
    #[strum(to_string = "not offered")]
    NotOffered,
    Unknown,
}

#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub name: &'static str,
    pub asks: &'static str,
    pub answer: Answer,
    /// Whether the exit code depends on it.
    pub required: bool,
    pub true_of_any_lock: bool,
    pub evidence: String,
    /// The command that shows it again.
    pub again: String,
}

/// Returns why a case does not apply to a worker that declares this.
pub fn not_offered(case: &Case, declared: &Declared) -> Option<String> {
    let name = case.name.as_str();
    let lost = name.starts_with("lost") && !declared.has(Ability::Lost);
    let token = case.fence == Fence::On && !declared.has(Ability::Token);
    match (lost, token) {
        (true, _) => Some("this lock has no signal of a lost lease".to_owned()),
        (_, true) => Some("this lock has no token".to_owned()),
        _ => {
            let backend = case.setup.lock.backend.to_string();
            let renews = |worker: &crate::scenario::Worker| {
                worker
                    .fields
                    .renew
                    .as_ref()
                    .is_some_and(|renew| renew.value)
            };
            let renews = case.setup.workers.iter().any(renews).to_string();
            declared.objection([
                ("FENCEPOST_BACKEND", backend.as_str()),
                ("FENCEPOST_RENEW", renews.as_str()),
            ])
        }
    }
}

/// Returns the answer of a case to a question about it, with the evidence.
pub fn answered(question: &Question, case: &CaseResult) -> (Answer, String) {
    if question.name == "token" {
        return token(case);
    }
    let verdict = &case.verdict;
    match verdict.outcome {
        Outcome::AsExpected => (Answer::Yes, measured(question, case)),
        Outcome::NotAsExpected => {
            // The lock's own break says more than what came of it.
            let violations = &case.judgement.violations;
            let mut of_the_lock = violations.iter().filter(|it| it.kind.promise().is_some());
            let broken = of_the_lock.next().or(violations.first());
            let broken = broken.map(|broken| format!("; {}: {}", broken.kind, broken.detail));
            (Answer::No, missed(case) + &broken.unwrap_or_default())
        }
        Outcome::Inconclusive => {
            let doubts = verdict.doubts.iter().map(|doubt| doubt.text.as_str());
            let answer = match is_only_not_offered(verdict) {
                true => Answer::NotOffered,
                false => Answer::Unknown,
            };
            (answer, joined(doubts, "; "))
        }
    }
}

fn token(case: &CaseResult) -> (Answer, String) {
    let grants = case.judgement.counts.accepted_writes;
    match case.judgement.promises.get(&Promise::Tokens) {
        Some(Kept::Kept) => (Answer::Yes, format!("over {grants} grants")),
        Some(Kept::NotOffered) => (Answer::NotOffered, "this lock has no token".to_owned()),
        Some(Kept::Broken) => {
            let mut violations = case.judgement.violations.iter();
            let broken = violations.find(|broken| broken.kind.name().starts_with("token"));
            let detail = broken.map(|broken| broken.detail.clone());
            (Answer::No, detail.unwrap_or_default())
        }
        Some(kept) => (
            Answer::Unknown,
            kept.reason().unwrap_or("nothing tested it").to_owned(),
        ),
        None => (Answer::Unknown, "nothing tested it".to_owned()),
    }
}

/// Returns the figures that belong to a good answer.
fn measured(question: &Question, case: &CaseResult) -> String {
    let (counts, measures) = (&case.judgement.counts, &case.judgement.measures);
    let seconds = |measure: Measure| {
        let took = measures.get(&measure);
        took.map_or("not measured".to_owned(), |took| {
            format!("{:.2} s", took.as_secs_f64())
        })
    };
    let ttl = |ttl: u64| format!("its TTL is {ttl} s");
    match question.name {
        "crash" | "failed-release" => format!("{} after it; {}", seconds(Measure::Blocked), ttl(8)),
        "lost-by-a-pause" | "lost-when-cut-off" => {
            let noticed = measures.get(&Measure::Noticed);
            match noticed.is_none_or(|took| took.as_millis() == 0) {
                true => format!("by its end; {}", ttl(2)),
                false => format!("{} after its end; {}", seconds(Measure::Noticed), ttl(2)),
            }
        }
        "release" => "a late release changed nothing for the next holder".to_owned(),
        "renews" => "10 s of work under a TTL of 3 s".to_owned(),
        "order" => "five waiters, granted as they came".to_owned(),
        "pause-without-a-fence" => format!(
            "both writes were accepted, {} violations; no lock prevents it",
            case.judgement.violations.len()
        ),
        "pause-with-a-fence" => "the resource compares the tokens".to_owned(),
        "excludes-many" => turns(case),
        _ => {
            let times = match counts.contended {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            };
            format!("others asked {times} while it was held; overlaps 0")
        }
    }
}

/// Returns how fast and how evenly it was handed on.
fn turns(case: &CaseResult) -> String {
    let steps = case.notes.load.iter().flat_map(|load| &load.steps);
    let told = steps.map(|step| {
        format!(
            "{:.0} grants/s, handed on in {:.1} ms (median), worst wait {:.2} s, Jain's fairness {:.2}",
            step.throughput_per_s,
            step.hand_off.p50_us as f64 / 1e3,
            step.fairness.worst_wait_us as f64 / 1e6,
            step.fairness.jain,
        )
    });
    joined(told, "; ")
}
