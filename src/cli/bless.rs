//! `bless`: makes a reviewed run the baseline that later runs are compared with.

use super::diff::Side;
use super::overview::BASELINE;
use super::recorded::read_result_bytes;
use super::*;
use crate::report::diff::{DEFAULT_RATIO, compare};
use crate::report::document::{ResultDocument, StablePart};
use crate::run::{RESULT, make_folder_in, write_failed};
use crate::scenario::{LibraryError, Scenario, Settings};
use bounded_io::files::{Aside, FOR_ALL};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Take reviewed runs as the baseline that later ones are compared with
///
/// RUN is a result.json, the folder of a run, SCENARIO for its latest run, or `latest` for the
/// latest run of every scenario. Its result.json is copied to results/baseline/SCENARIO/, which is
/// kept in git. All of them are blessed, or none.
///
/// Exit codes: 0 blessed, 1 refused because one is not as expected, 2 refused because one is
/// inconclusive, partial, or not a result.
#[derive(Args)]
pub struct Bless {
    /// Runs that somebody has reviewed
    #[arg(value_name = "RUN", default_value = "latest")]
    runs: Vec<String>,
    /// Bless also a run that is not as expected, ran with --set or a defect, or whose scenario has
    /// changed since. A partial one is still refused
    #[arg(long, alias = "even-so")]
    force: bool,
    /// Look names up in DIR, and write its baseline/ [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

/// A result that may become the baseline of its scenario.
struct Candidate {
    scenario: Name,
    /// The path of the file itself: `latest` may point to another run by now.
    file: PathBuf,
    result: ResultDocument,
    /// The bytes that were checked, so that exactly these are copied.
    bytes: Vec<u8>,
}

/// A result that has become the baseline of its scenario.
#[derive(Serialize)]
struct NewBaseline {
    scenario: Name,
    result: PathBuf,
    /// How it differs from the previous baseline, if there was one.
    replaced: Option<String>,
}

impl Bless {
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let results = self.results.clone().unwrap_or_else(|| home.results());
        let (mut candidates, mut refusals) = (Vec::new(), Vec::new());
        for (file, is_named) in self.files(&results)? {
            match self.candidate(home, &file) {
                Ok(Some(candidate)) => candidates.push(candidate),
                // `contend` and `keyspace` leave such runs, and the user did not ask for them.
                Ok(None) if !is_named => {
                    let file = file.display();
                    output::complain(format_args!("left out: {file} is of no scenario here"));
                }
                Ok(None) => refusals.push(Failure::usage(format!(
                    "{}: it is of no scenario here",
                    file.display()
                ))),
                Err(refusal) => refusals.push(refusal),
            }
        }
        refusals.extend(twice(&candidates));
        let exits = refusals.iter().map(|refusal| refusal.exit);
        if let Some(worst) = exits.min_by_key(|exit| *exit as u8) {
            let reasons = refusals.iter().map(|it| format!("\n  {}", it));
            let message = format!("nothing was blessed:{}", reasons.collect::<String>());
            return Err(Failure::new(worst, message));
        }
        if candidates.is_empty() {
            return Err(Failure::usage(
                "nothing was blessed: there is no run to bless",
            ));
        }
        let blessed = bless(&candidates, &results)?;
        let lines = blessed.iter().map(|one| format!("{one}\n"));
        let baseline = results.join(BASELINE);
        let last = format!("{} is to be committed\n", baseline.display());
        let text: String = lines.chain([last]).collect();
        self.printed.show(&json!({ "blessed": blessed }), text)
    }

    /// Returns each file with whether the user named it individually.
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

    /// Returns `None` if the library has no scenario of that name.
    fn candidate(&self, home: &Home, file: &Path) -> Result<Option<Candidate>, Failure> {
        let refuse = |exit: Exit, reason: String| {
            let reason = format!("{}: {reason}", file.display());
            Err(Failure::new(exit, reason))
        };
        let unreadable = |reason: String| Failure::new(Exit::Inconclusive, reason);
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
            let missing = joined(missing, ", ");
            return refuse(
                Exit::Inconclusive,
                format!("it is partial, without {missing}: run it whole"),
            );
        }
        let objection = objection(stable, &scenario).filter(|_| !self.force);
        match objection {
            Some((exit, objection)) => refuse(exit, format!("{objection}; --force takes it")),
            None => Ok(Some(Candidate {
                scenario: scenario.name,
                file: own,
                result,
                bytes,
            })),
        }
    }
}

/// Returns a reason not to bless a complete run, if there is one.
fn objection(stable: &StablePart, scenario: &Scenario) -> Option<(Exit, String)> {
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

/// Returns the library's scenario of that name. The name must be one of the library's, so it
/// cannot lead out of the folder.
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

/// Returns a refusal for each scenario with several runs: only one can be its baseline.
fn twice(candidates: &[Candidate]) -> Vec<Failure> {
    let mut files: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for candidate in candidates {
        files
            .entry(&candidate.scenario)
            .or_default()
            .push(&candidate.file);
    }
    let several = files.into_iter().filter(|(_, files)| files.len() > 1);
    let refusals = several.map(|(scenario, files)| {
        let files = joined(files.iter().map(|file| file.display()), ", ");
        Failure::usage(format!("there are several runs of {scenario}: {files}"))
    });
    refusals.collect()
}

/// Writes all files before it moves the first into place, so that a failed write changes nothing.
fn bless(candidates: &[Candidate], results: &Path) -> Result<Vec<NewBaseline>, Failure> {
    let baseline = make_folder_in(results, BASELINE)?;
    let (mut blessed, mut written) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let folder = make_folder_in(&baseline, &candidate.scenario)?;
        let place = folder.join(RESULT);
        blessed.push(NewBaseline {
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
    /// Describes how it differs from the current baseline, if there is one.
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

impl fmt::Display for NewBaseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ", self.scenario, self.result.display())?;
        match &self.replaced {
            None => f.write_str("(the first baseline)"),
            Some(words) => write!(f, "(replaced: {words})"),
        }
    }
}
