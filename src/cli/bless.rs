//! `bless`: a run that somebody has looked at becomes what later ones are compared with.

use super::diff::Side;
use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::home::Home;
use super::output;
use super::overview::BASELINE;
use super::recorded::{read_result, read_result_bytes};
use crate::files::{Aside, FOR_ALL};
use crate::model::{Name, Outcome};
use crate::report::diff::{DEFAULT_RATIO, compare};
use crate::report::recorded::{Recorded, Stable};
use crate::run::{RESULT, make_folder_in, write_failed};
use crate::scenario::{LibraryError, Scenario, Settings};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
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
    scenario: Name,
    /// The file itself: `latest` may lead elsewhere by now.
    file: PathBuf,
    result: Recorded,
    /// What was looked at is what is copied.
    bytes: Vec<u8>,
}

/// One that has become it.
#[derive(Serialize)]
struct Blessed {
    scenario: Name,
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
        let blessed = bless(&candidates, &results)?;
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
        let unreadable = |reason: String| Refusal {
            exit: Exit::Inconclusive,
            reason,
        };
        let folder = file.parent().filter(|it| *it != Path::new(""));
        let folder = folder.unwrap_or(Path::new(".")).canonicalize();
        let folder = folder
            .map_err(|error| unreadable(format!("cannot read {}: {error}", file.display())))?;
        let own = folder.join(file.file_name().unwrap_or_default());
        let (result, bytes) = read_result_bytes(&own).map_err(unreadable)?;
        let stable = &result.stable;
        let scenario = match own_scenario(home, &stable.scenario.name) {
            Ok(Some(scenario)) => scenario,
            Ok(None) => return Ok(None),
            Err(failure) => return refuse(failure.exit, failure.to_string()),
        };
        let missing = scenario.cases.iter().map(|case| &case.name);
        let missing = missing.filter(|name| !stable.cases.contains_key(*name));
        let missing: BTreeSet<&str> = missing
            .chain(&stable.unfinished)
            .map(Name::as_str)
            .collect();
        if !missing.is_empty() {
            let missing = missing.into_iter().collect::<Vec<_>>().join(", ");
            return refuse(
                Exit::Inconclusive,
                format!("it is partial, without {missing}: run it whole"),
            );
        }
        let objection = objection(stable, &scenario).filter(|_| !self.even_so);
        match objection {
            Some((exit, objection)) => refuse(exit, format!("{objection}; --even-so takes it")),
            None => Ok(Some(Candidate {
                scenario: scenario.name,
                file: own,
                result,
                bytes,
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
fn own_scenario(home: &Home, name: &Name) -> Result<Option<Scenario>, Failure> {
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

/// All are written before the first takes its place: what cannot be written changes nothing.
fn bless(candidates: &[Candidate], results: &Path) -> Result<Vec<Blessed>, Failure> {
    let baseline = make_folder_in(results, BASELINE)?;
    let (mut blessed, mut written) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let folder = make_folder_in(&baseline, &candidate.scenario)?;
        let place = folder.join(RESULT);
        blessed.push(Blessed {
            scenario: candidate.scenario.clone(),
            result: candidate.file.clone(),
            replaced: candidate.replaces(&place),
        });
        let aside = Aside::write(&place, &candidate.bytes, FOR_ALL);
        written.push((aside.map_err(write_failed(&place))?, place));
    }
    for (file, place) in written {
        file.take_place().map_err(write_failed(&place))?;
    }
    Ok(blessed)
}

impl Candidate {
    /// How it differs from what is there, where anything is.
    fn replaces(&self, baseline: &Path) -> Option<String> {
        let is_there = baseline.symlink_metadata().is_ok();
        is_there.then(|| {
            let before = read_result(baseline);
            let difference = before.and_then(|before| {
                let difference = compare(&before, &self.result, DEFAULT_RATIO);
                difference.map_err(|error| error.to_string())
            });
            difference.map_or_else(|reason| reason, |difference| difference.headline())
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
