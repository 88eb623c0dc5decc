//! Many runs: their cases begin in order, as many at a time as there is room for, each on a
//! cluster of its own. The first error stops the rest, unless the options say to keep going;
//! everything that was under way then is healed and removed.

use super::case::CaseRun;
use super::open_run::OpenRun;
use super::prepare::{MachineFacts, check_places, prepare};
use super::rehearsal::rehearse;
use super::slots::Slots;
use super::*;
use std::collections::btree_map::Entry;

/// Called with every run that is over, and at the end with those that began and are not over; an
/// error stops the rest.
pub type Report<'a> = dyn FnMut(&RunRecord) -> Result<(), String> + 'a;

/// Runs every case of every scenario as often as the options ask for.
pub async fn run_all(lab: &Lab<'_>, scenarios: &[Scenario], report: &mut Report<'_>) -> RunResult {
    check_places(lab, scenarios)?;
    let machine = stop_at(lab.interrupt, prepare(lab, scenarios)).await?;
    rehearse(lab, scenarios).await?;
    let mut runs = OpenRuns {
        lab,
        machine,
        open: BTreeMap::new(),
        report,
    };
    let mut errors = RunErrors::new(lab.interrupt, lab.options.keep_going);
    let mut slots = Slots::new(lab.options.jobs);
    let mut waiting = queue(lab, scenarios).peekable();
    loop {
        while !errors.stop.is_cancelled()
            && let Some((run, scenario, case)) =
                waiting.next_if(|(_, _, case)| slots.has_room(lab.weight(case)))
        {
            match runs.folder(run, scenario) {
                Err(error) => errors.add(error, lab.progress),
                Ok(folder) => {
                    let stop = errors.stop.clone();
                    slots.begin(lab.weight(case), async move {
                        let ran = run_case(lab, scenario, case, &folder, stop).await;
                        (run, ran)
                    });
                }
            }
        }
        let Some((run, ran)) = slots.next().await else {
            break;
        };
        if let Err(error) = runs.close(run, ran) {
            errors.add(error, lab.progress);
        }
    }
    for run in std::mem::take(&mut runs.open).into_values() {
        if let Err(error) = (runs.report)(&run.record) {
            errors.add(RunError::Report(error), lab.progress);
        }
        run.give_up(lab.progress);
    }
    // An interrupt is reported even if it came too late to stop anything.
    if lab.interrupt.is_cancelled() {
        errors.add(RunError::Interrupted, lab.progress);
    }
    errors.first.map_or(Ok(()), Err)
}

/// Returns every case of every run, with the number of its run, in the order in which they begin.
fn queue<'a>(
    lab: &'a Lab<'_>,
    scenarios: &'a [Scenario],
) -> impl Iterator<Item = (usize, &'a Scenario, &'a Case)> {
    let runs = (0..lab.options.repeat).flat_map(move |_| scenarios);
    runs.enumerate().flat_map(|(run, scenario)| {
        let cases = lab.options.chosen(scenario);
        cases.map(move |case| (run, scenario, case))
    })
}

async fn run_case(
    lab: &Lab<'_>,
    scenario: &Scenario,
    case: &Case,
    folder: &RunFolder,
    stop: CancellationToken,
) -> RunResult<CaseResult> {
    let ran = match CaseRun::begin(lab, scenario, case, folder, stop) {
        Ok(begun) => begun.run().await,
        Err(error) => Err(error),
    };
    ran.map_err(|error| error.in_case(&scenario.name, &case.name))
}

/// The runs of which a case has begun and a case is still to end, by their numbers.
struct OpenRuns<'a, 'r> {
    lab: &'a Lab<'a>,
    machine: MachineFacts,
    open: BTreeMap<usize, OpenRun>,
    report: &'a mut Report<'r>,
}

impl OpenRuns<'_, '_> {
    /// Returns the folder of a run of which a case begins.
    fn folder(&mut self, run: usize, scenario: &Scenario) -> RunResult<RunFolder> {
        let open = match self.open.entry(run) {
            Entry::Occupied(run) => run.into_mut(),
            Entry::Vacant(free) => {
                let record = RunRecord {
                    environment: self.machine.environment(self.lab, scenario),
                    ..self.lab.options.record(scenario)
                };
                free.insert(OpenRun::begin(record, scenario, self.lab.results)?)
            }
        };
        Ok(open.folder.clone())
    }

    /// Adds a case that has ended, and reports its run if that is over too.
    fn close(&mut self, run: usize, ran: RunResult<CaseResult>) -> RunResult {
        let ran = ran?;
        let Some(open) = self.open.get_mut(&run) else {
            return Ok(());
        };
        open.add(ran, self.lab.progress)?;
        // A run is reported once, even if the report fails.
        if open.is_over()
            && let Some(run) = self.open.remove(&run)
        {
            (self.report)(&run.record).map_err(RunError::Report)?;
        }
        Ok(())
    }
}

/// The errors so far: the reason why nothing more begins and what is under way ends early.
struct RunErrors {
    stop: CancellationToken,
    /// Go on after errors; only an interrupt stops the runs.
    keep_going: bool,
    first: Option<RunError>,
}

impl RunErrors {
    fn new(interrupt: &CancellationToken, keep_going: bool) -> RunErrors {
        RunErrors {
            stop: interrupt.child_token(),
            keep_going,
            first: None,
        }
    }

    /// The runs end with the first error. After it, interrupts of other cases are not reported, and
    /// other errors are printed at once. With `keep_going`, the first error stopped nothing, so all
    /// errors are reported at the end; there an interrupt comes first, because it is the reason why
    /// not everything ran.
    fn add(&mut self, error: RunError, progress: &dyn Progress) {
        if !self.keep_going || matches!(error, RunError::Interrupted) {
            self.stop.cancel();
        }
        self.first = Some(match (self.first.take(), error) {
            (None | Some(RunError::Interrupted), error) => error,
            (Some(first), RunError::Interrupted) if self.keep_going && !first.is_interrupt() => {
                RunError::AndAlso {
                    first: Box::new(RunError::Interrupted),
                    then: Box::new(first),
                }
            }
            (Some(first), RunError::Interrupted) => first,
            (Some(first), then) if self.keep_going => RunError::AndAlso {
                first: Box::new(first),
                then: Box::new(then),
            },
            (Some(first), then) => {
                progress.say(&then.to_string());
                first
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::said_lines::SaidLines;

    fn ends_with(keep_going: bool, errors: Vec<RunError>) -> (RunErrors, Vec<String>) {
        let said = SaidLines::default();
        let mut all = RunErrors::new(&CancellationToken::new(), keep_going);
        for error in errors {
            all.add(error, &said);
        }
        (all, said.lines())
    }

    fn first(errors: &RunErrors) -> String {
        errors.first.as_ref().unwrap().to_string()
    }

    fn broken(what: &str) -> RunError {
        RunError::Report(what.to_owned())
    }

    #[test]
    fn the_first_error_is_the_one_and_others_are_said() {
        let errors = vec![broken("a"), RunError::Interrupted, broken("b")];
        let (errors, said) = ends_with(false, errors);
        assert!(errors.stop.is_cancelled());
        assert_eq!((first(&errors).as_str(), said), ("a", vec!["b".to_owned()]));
    }

    #[test]
    fn what_goes_wrong_after_an_interrupt_is_worse_than_it() {
        let errors = vec![RunError::Interrupted, broken("left behind")];
        assert_eq!(first(&ends_with(false, errors).0), "left behind");
    }

    #[test]
    fn whoever_goes_on_and_is_interrupted_ends_with_that_and_hears_it_once() {
        let (errors, _) = ends_with(
            true,
            vec![
                broken("a"),
                RunError::Interrupted,
                RunError::Interrupted,
                broken("b"),
                RunError::Interrupted,
            ],
        );
        assert!(errors.stop.is_cancelled());
        assert!(errors.first.as_ref().unwrap().is_interrupt());
        assert_eq!(first(&errors), format!("{}\na\nb", RunError::Interrupted));
    }

    #[test]
    fn whoever_goes_on_is_told_all_errors_at_the_end() {
        let (errors, said) = ends_with(true, vec![broken("a"), broken("b"), broken("c")]);
        assert!(!errors.stop.is_cancelled());
        assert_eq!((first(&errors).as_str(), said), ("a\nb\nc", Vec::new()));
    }
}
