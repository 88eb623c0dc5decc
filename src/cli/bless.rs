//! `bless`: a run that somebody has looked at becomes what later ones are compared with.

use super::diff::{CameTo, Comparison, Pair, Side};
use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::home::Home;
use super::output;
use super::overview::BASELINE;
use super::recorded::read_result;
use crate::model::Outcome;
use crate::report::diff::DEFAULT_RATIO;
use crate::report::recorded::Stable;
use crate::run::{FolderError, RESULT, write_whole};
use crate::scenario::{LibraryError, Scenario, Settings};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Take reviewed runs as the baseline that later ones are compared with
///
/// RUN is a result.json, the folder of a run, SCENARIO for its latest run, or `latest` for the
/// latest run of every scenario. Its result.json is copied to results/baseline/SCENARIO/, which is
/// kept in git. All of them are blessed, or none.
///
/// Exit codes: 0 blessed, 1 refused because one is not as expected, 2 refused because one is
/// inconclusive, partial, or no result.
#[derive(Args)]
pub struct Bless {
    /// What somebody has looked at
    #[arg(value_name = "RUN", default_value = "latest")]
    runs: Vec<String>,
    /// Also a run that is not as expected, was run with --set or a defect, or whose scenario has been
    /// changed since. A partial one is refused all the same
    #[arg(long)]
    even_so: bool,
    /// The folder that names are looked up in, and whose baseline/ is written [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

/// A result that may become the baseline of its scenario.
struct Candidate {
    scenario: String,
    file: PathBuf,
}

/// One that has become it.
#[derive(Serialize)]
struct Blessed {
    scenario: String,
    result: PathBuf,
    /// How it differs from the baseline before it, where there was one.
    replaced: Option<String>,
}

/// Why one may not, and what the command ends with then.
struct Refusal {
    exit: Exit,
    reason: String,
}

impl Bless {
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let results = self.results.clone().unwrap_or_else(|| home.results());
        let (mut candidates, mut refusals) = (Vec::new(), Vec::new());
        for (file, is_named) in self.files(&results)? {
            match self.candidate(home, &file) {
                Ok(Some(candidate)) => candidates.push(candidate),
                // `contend` and `keyspace` leave such runs, which nobody asked about.
                Ok(None) if !is_named => {
                    let file = file.display();
                    output::complain(format_args!("left out: {file} is of no scenario here"));
                }
                Ok(None) => refusals.push(Refusal {
                    exit: Exit::Usage,
                    reason: format!("{}: it is of no scenario here", file.display()),
                }),
                Err(refusal) => refusals.push(refusal),
            }
        }
        refusals.extend(twice(&candidates));
        if let Some(worst) = refusals
            .iter()
            .map(|refusal| refusal.exit)
            .min_by_key(|exit| *exit as u8)
        {
            let reasons = refusals
                .iter()
                .map(|refusal| format!("  {}", refusal.reason));
            let reasons: Vec<String> = reasons.collect();
            let message = format!("nothing was blessed:\n{}", reasons.join("\n"));
            return Err(Failure::new(worst, message));
        }
        if candidates.is_empty() {
            return Err(Failure::usage(
                "nothing was blessed: there is no run to bless",
            ));
        }
        let blessed = candidates.iter().map(|candidate| candidate.bless(&results));
        let blessed: Vec<Blessed> = blessed.collect::<Result<_, _>>()?;
        if self.printed.is_json() {
            document(&json!({ "blessed": blessed }))?;
            return Ok(Exit::AsExpected);
        }
        for one in &blessed {
            output::line(one)?;
        }
        let shown = results.join(BASELINE);
        output::line(format_args!("{} is to be committed", shown.display()))?;
        Ok(Exit::AsExpected)
    }

    /// Each with whether it was named by itself.
    fn files(&self, results: &Path) -> Result<Vec<(PathBuf, bool)>, Failure> {
        let mut files = Vec::new();
        for run in &self.runs {
            match Side::find(run, &|| Ok(results.to_owned()))? {
                Side::One(file) => files.push((file, true)),
                Side::Many { results, .. } => {
                    files.extend(results.into_values().map(|file| (file, false)));
                }
            }
        }
        Ok(files)
    }

    /// `None` where no scenario of the library is called so.
    fn candidate(&self, home: &Home, file: &Path) -> Result<Option<Candidate>, Refusal> {
        let refuse = |exit: Exit, reason: String| {
            let reason = format!("{}: {reason}", file.display());
            Err(Refusal { exit, reason })
        };
        let stable = match read_result(file) {
            Ok(result) => result.stable,
            Err(reason) => {
                return Err(Refusal {
                    exit: Exit::Inconclusive,
                    reason,
                });
            }
        };
        let scenario = match own_scenario(home, &stable.scenario.name) {
            Ok(Some(scenario)) => scenario,
            Ok(None) => return Ok(None),
            Err(failure) => return refuse(failure.exit, failure.to_string()),
        };
        let missing = scenario.cases.iter().map(|case| &case.name);
        let missing: Vec<&str> = missing
            .filter(|name| !stable.cases.contains_key(*name))
            .map(String::as_str)
            .collect();
        if !missing.is_empty() || !stable.unfinished.is_empty() {
            let missing = missing.join(", ");
            return refuse(
                Exit::Inconclusive,
                format!("it is partial, without {missing}: run it whole"),
            );
        }
        if self.even_so {
            return Ok(Some(Candidate {
                scenario: scenario.name,
                file: file.to_owned(),
            }));
        }
        match objection(&stable, &scenario) {
            Some((exit, objection)) => refuse(exit, format!("{objection}; --even-so takes it")),
            None => Ok(Some(Candidate {
                scenario: scenario.name,
                file: file.to_owned(),
            })),
        }
    }
}

/// What speaks against a whole run.
fn objection(stable: &Stable, scenario: &Scenario) -> Option<(Exit, String)> {
    if stable.verdict != Outcome::AsExpected {
        return Some((stable.verdict.into(), format!("it is {}", stable.verdict)));
    }
    if let Some(mutant) = &stable.mutant {
        return Some((
            Exit::Inconclusive,
            format!("it ran with the defect {mutant}"),
        ));
    }
    if !stable.settings.is_empty() {
        let settings = stable.settings.join(", ");
        return Some((Exit::Inconclusive, format!("it ran with {settings}")));
    }
    let is_older = stable.scenario.hash != scenario.hash();
    let words = "its scenario has been changed since";
    is_older.then(|| (Exit::Inconclusive, words.to_owned()))
}

/// The library's scenario of that name; its name cannot lead out of the folder.
fn own_scenario(home: &Home, name: &str) -> Result<Option<Scenario>, Failure> {
    let library = home.library();
    if !library.names()?.iter().any(|known| known == name) {
        return Ok(None);
    }
    match library.load(name, &Settings::default(), &home.surroundings()?) {
        Ok(scenario) => Ok(Some(scenario)),
        Err(LibraryError::Missing { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Two runs of one scenario: only one can be its baseline.
fn twice(candidates: &[Candidate]) -> Vec<Refusal> {
    let mut files: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for candidate in candidates {
        files
            .entry(&candidate.scenario)
            .or_default()
            .push(&candidate.file);
    }
    let several = files.into_iter().filter(|(_, files)| files.len() > 1);
    let refusals = several.map(|(scenario, files)| {
        let files: Vec<String> = files
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        Refusal {
            exit: Exit::Usage,
            reason: format!("there are several runs of {scenario}: {}", files.join(", ")),
        }
    });
    refusals.collect()
}

impl Candidate {
    /// Copies it, and says what that changes.
    fn bless(&self, results: &Path) -> Result<Blessed, Failure> {
        let folder = results.join(BASELINE).join(&self.scenario);
        let baseline = folder.join(RESULT);
        let before = Comparison::of(
            Pair {
                called: self.scenario.clone(),
                old: baseline.exists().then(|| baseline.clone()),
                new: Some(self.file.clone()),
            },
            DEFAULT_RATIO,
        );
        let bytes = std::fs::read(&self.file).map_err(|source| FolderError::Read {
            path: self.file.clone(),
            source,
        })?;
        std::fs::create_dir_all(&folder).map_err(|source| FolderError::Write {
            path: folder,
            source,
        })?;
        write_whole(&baseline, &bytes)?;
        let file = self
            .file
            .canonicalize()
            .unwrap_or_else(|_| self.file.clone());
        let replaced = match &before.came_to {
            CameTo::OnlyNew => None,
            CameTo::Compared(difference) => Some(difference.headline()),
            CameTo::NotComparable(reasons) => Some(reasons.join("; ")),
        };
        Ok(Blessed {
            scenario: self.scenario.clone(),
            result: file,
            replaced,
        })
    }
}

impl fmt::Display for Blessed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.scenario, self.result.display())?;
        match &self.replaced {
            None => f.write_str("(the first baseline)"),
            Some(words) => write!(f, "(replaced: {words})"),
        }
    }
}
