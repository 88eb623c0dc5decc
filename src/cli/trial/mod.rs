//! `fencepost try`: one lock, every question that applies to it, and a scorecard.

mod card;
mod told;

use super::progress::ProgressDisplay;
use super::runs::run_each;
use super::subject::{Subject, SubjectArguments};
use super::worker_check::{Checking, for_backend};
use super::*;
use crate::conformance::{Declared, Finding, Findings};
use crate::report::shown::in_a_shell;
use crate::run::{RunOptions, write_whole};
use crate::scenario::{Scenario, Setting, Settings, load_file, once_each};
use crate::services::Backend;
use crate::yaml::suggestion;
use card::{Answer, QUESTIONS, Question, Row};
use std::str::FromStr;
use tokio_util::sync::CancellationToken;

const TRIAL: &str = "scenarios/trial/one-lock.yml";
const REQUIRED: [&str; 3] = ["excludes", "crash", "release"];
const PAGE: &str = "scorecard.html";

/// Try a lock of your own: every question that applies to it, and a scorecard
///
/// Starts your worker (a folder with a Dockerfile, an image, or a command of this machine), checks
/// its protocol, and runs the cases that fit what it declares in its `ready`. Options come before
/// the worker. Exit codes: 0 everything that is required holds, 1 something does not or is not offered, 2
/// something is unknown.
#[derive(Args)]
pub struct Try {
    /// The lock service that the worker uses
    #[arg(long, default_value_t, value_name = "SERVICE")]
    backend: Backend,
    /// What has to hold for exit code 0: excludes, crash, failed-release, release, lost, renews, token, order
    /// [default: excludes,crash,release, or what --case leaves of them]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    require: Vec<String>,
    /// Ask only this question, by its name on the scorecard; may be given more than once
    #[arg(long, value_name = "NAME")]
    case: Vec<String>,
    /// Run N cases at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=16), value_name = "N")]
    jobs: u32,
    /// Override a field of every case, such as lock.key=my-locks:{key}
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<Setting>,
    /// Use attached servers although they look like production
    #[arg(long)]
    yes: bool,
    /// Write results to DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Also write the answers as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print for people, one JSON document, or Markdown
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub format: Format,
    #[command(flatten)]
    worker: SubjectArguments,
}

/// Everything that a scorecard says.
#[derive(Serialize)]
pub struct Scorecard {
    pub worker: String,
    pub rows: Vec<Row>,
    /// The folder of the run, if one began.
    pub folder: Option<PathBuf>,
    pub exit_code: u8,
}

impl Try {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let subject = self.worker.subject()?;
        let asked = self.asked()?;
        let topologies = home.topologies()?;
        let (name, topology) = for_backend(&topologies, self.backend)?;
        let scenario = self.scenario(&home, &subject, name)?;
        let progress = progress::for_this_output();
        let interrupt = interrupt::listen()?;
        let checking = Checking {
            backend: self.backend,
            subject: &subject,
            topology,
        };
        let findings = checking.check(&progress, &interrupt).await?;
        let declared = spoken(&subject, findings)?;
        let output = (&progress, &interrupt);
        let card = self
            .play(&home, &subject, &scenario, &declared, &asked, output)
            .await?;
        self.tell(&card)
    }

    /// Returns the questions that were chosen, or all.
    fn asked(&self) -> Result<Vec<&'static Question>, Failure> {
        let names: Vec<&str> = QUESTIONS.iter().map(|question| question.name).collect();
        let demands = QUESTIONS.iter().map(|question| question.demand);
        let demands = once_each(demands.filter(|demand| !demand.is_empty()));
        for (given, known, option) in [
            (&self.case, &names, "--case"),
            (&self.require, &demands, "--require"),
        ] {
            if let Some(name) = given.iter().find(|name| !known.contains(&name.as_str())) {
                let hint = suggestion(name, known);
                return Err(Failure::usage(format!(
                    "cannot use {option} {name}: nothing on the scorecard is called so; {hint}"
                )));
            }
        }
        let is_asked = |question: &&Question| {
            self.case.is_empty() || self.case.iter().any(|name| name == question.name)
        };
        let asked: Vec<&Question> = QUESTIONS.iter().filter(is_asked).collect();
        let is_left_out = |name: &&String| asked.iter().all(|question| question.demand != **name);
        if let Some(name) = self.require.iter().find(is_left_out) {
            return Err(Failure::usage(format!(
                "cannot require {name}: --case leaves it out; add its cases, or leave --case away"
            )));
        }
        Ok(asked)
    }

    fn requires(&self, question: &Question) -> bool {
        match self.require.is_empty() {
            true => REQUIRED.contains(&question.demand),
            false => self.require.iter().any(|name| name == question.demand),
        }
    }

    fn scenario(
        &self,
        home: &Home,
        subject: &Subject,
        topology: &str,
    ) -> Result<Scenario, Failure> {
        let mut settings = subject.settings();
        settings.push(format!("topology={topology}"));
        settings.push(format!("lock.backend={}", self.backend));
        let settings = settings.iter().map(|text| Setting::from_str(text));
        let settings: Result<Vec<Setting>, String> = settings.collect();
        let mut settings = settings.map_err(Failure::usage)?;
        settings.extend(self.set.clone());
        let around = home.surroundings()?;
        Ok(load_file(&home.file(TRIAL), &Settings(settings), &around)?)
    }

    async fn play(
        &self,
        home: &Home,
        subject: &Subject,
        scenario: &Scenario,
        declared: &Declared,
        asked: &[&'static Question],
        (progress, interrupt): (&ProgressDisplay, &CancellationToken),
    ) -> Result<Scorecard, Failure> {
        let mut left_out = Vec::new();
        let mut cases: Vec<String> = Vec::new();
        for case in &scenario.cases {
            match card::not_offered(case, declared) {
                Some(reason) => left_out.push((case.name.clone(), reason)),
                None if asked.iter().any(|question| case.name == *question.case) => {
                    cases.push(case.name.to_string());
                }
                None => {}
            }
        }
        let options = RunOptions {
            runtime: subject.runtime(),
            seed: 1,
            repeat: 1,
            jobs: self.jobs,
            results: self.results.clone(),
            keep_going: true,
            yes: self.yes,
            cases,
            ..RunOptions::default()
        };
        let (mut found, mut folder) = (Vec::new(), None);
        let mut tell = |run: &RunRecord| {
            folder = run.began().then(|| run.folder.clone());
            for question in asked {
                let mut cases = run.cases.iter();
                let case = cases.find(|case| case.name == *question.case);
                found.extend(case.map(|case| (question.name, card::answered(question, case))));
            }
            Ok(())
        };
        if !options.cases.is_empty() {
            let output = (progress, interrupt);
            let scenarios = std::slice::from_ref(scenario);
            let ran = run_each(home, scenarios, &options, output, &mut tell).await;
            if let Err(error) = ran {
                if error.exit != Exit::Harness {
                    return Err(error);
                }
                // The answers of the other cases stand.
                output::complain(format_args!("error: {error}"));
            }
        }
        let rows = asked.iter().map(|question| {
            let answer = found.iter().find(|(name, _)| *name == question.name);
            let reason = left_out.iter().find(|(case, _)| *case == *question.case);
            let (answer, evidence) = match (answer, reason) {
                (Some((_, answer)), _) => answer.clone(),
                (None, Some((_, reason))) => (Answer::NotOffered, reason.clone()),
                (None, None) => (Answer::Unknown, "the case did not end".to_owned()),
            };
            self.row(question, answer, evidence, subject)
        });
        let rows: Vec<Row> = rows.collect();
        Ok(Scorecard {
            worker: subject.shown(),
            exit_code: exit_of(&rows) as u8,
            rows,
            folder,
        })
    }

    fn row(&self, question: &Question, answer: Answer, evidence: String, subject: &Subject) -> Row {
        Row {
            name: question.name,
            asks: question.words,
            answer,
            required: self.requires(question),
            true_of_any_lock: question.is_general,
            evidence: shown::line(&evidence).into_owned(),
            again: self.again(question, subject),
        }
    }

    /// Returns the command that asks this one question again.
    fn again(&self, question: &Question, subject: &Subject) -> String {
        let mut words = vec![format!("fencepost try --case {}", question.name)];
        if self.backend != Backend::default() {
            words.push(format!("--backend {}", self.backend));
        }
        if !self.require.is_empty() && self.requires(question) {
            words.push(format!("--require {}", question.demand));
        }
        let set = self.set.iter();
        words.extend(set.map(|setting| format!("--set {}", in_a_shell(&setting.to_string()))));
        words.extend(self.yes.then(|| "--yes".to_owned()));
        words.push(subject.typed());
        words.join(" ")
    }

    fn tell(&self, card: &Scorecard) -> Result<Exit, Failure> {
        if let Some(folder) = &card.folder {
            write_whole(&folder.join(PAGE), told::page(card).as_bytes())?;
        }
        if let Some(file) = &self.junit {
            write_whole(file, told::junit(card).as_bytes())?;
        }
        match self.format {
            Format::Json => document(card)?,
            Format::Markdown => output::print(told::markdown(card))?,
            Format::Human => output::screen(told::human(card, &look(false)))?,
        }
        Ok(exit_of(&card.rows))
    }
}

/// Returns what a worker declares, if it speaks the protocol: nothing else could be believed.
fn spoken(subject: &Subject, findings: Findings) -> Result<Declared, Failure> {
    let shown = subject.shown();
    for (place, checked) in findings.checked.iter().enumerate() {
        let (exit, problem) = match &checked.outcome {
            Finding::Failed(wrong) => (Exit::NotAsExpected, &wrong.problem),
            Finding::NotOffered { reason } | Finding::NotSeen { reason } if place == 0 => {
                (Exit::Inconclusive, reason)
            }
            _ => continue,
        };
        return Err(Failure::new(
            exit,
            format!(
                "cannot try {shown}: it does not pass the check of the worker protocol ({}: {problem}); `fencepost worker-check {shown}` says more",
                checked.check
            ),
        ));
    }
    Ok(findings.declared)
}

fn exit_of(rows: &[Row]) -> Exit {
    let has = |answers: &[Answer]| {
        let mut required = rows.iter().filter(|row| row.required);
        required.any(|row| answers.contains(&row.answer))
    };
    if has(&[Answer::No, Answer::NotOffered]) {
        Exit::NotAsExpected
    } else if has(&[Answer::Unknown]) {
        Exit::Inconclusive
    } else {
        Exit::AsExpected
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        command: Try,
    }

    #[test]
    fn the_command_that_asks_again_asks_for_the_same() {
        let words = [
            "try",
            "--backend",
            "etcd",
            "--require",
            "token,release",
            "--set",
            "lock.key=my locks:{key}",
            "--yes",
            "sh",
            "-c",
            "exec ./my worker",
        ];
        let Line { command } = Line::try_parse_from(words).unwrap();
        let subject = Subject::Command(command.worker.words().to_vec());
        let question = |name| QUESTIONS.iter().find(|it| it.name == name).unwrap();
        assert_eq!(
            command.again(question("release"), &subject),
            "fencepost try --case release --backend etcd --require release \
             --set 'lock.key=my locks:{key}' --yes sh -c 'exec ./my worker'"
        );
        let other = command.again(question("crash"), &subject);
        assert!(!other.contains("--require"), "{other}");
    }
}
