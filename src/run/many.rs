//! Many runs: their cases begin in order, as many at a time as there is room
//! for, each on a cluster of its own. The first error stops the rest, unless
//! somebody wants to know about the rest all the same; whatever was under way
//! then is healed and removed.

use super::case::run_case;
use super::nodes::CaseNodes;
use super::open_run::{Begun, OpenRun};
use super::prepare::{Prepared, check_places, prepare};
use super::slots::Slots;
use super::{RunError, RunRequest, stop_at};
use crate::cluster::Runtime;
use crate::model::{CaseResult, RunRecord};
use crate::progress::Progress;
use crate::scenario::Case;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use tokio_util::sync::CancellationToken;

/// A case with more containers than this takes more than one slot.
const CONTAINERS_PER_SLOT: usize = 20;

/// How often, and how much at a time.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How many runs of every request.
    pub repeat: u32,
    /// How many cases at the same time.
    pub jobs: u32,
    /// After an error, go on with whatever else there is to run.
    pub keep_going: bool,
}

/// Told of every run that is over, and at the end of those that were begun and did not
/// come so far; an error stops the rest.
pub type Report<'a> = dyn FnMut(&RunRecord) -> Result<(), String> + 'a;

/// Runs every case of every request as often as is asked for.
pub async fn run_all(
    requests: &[RunRequest<'_>],
    pace: Pace,
    runtime: &dyn Runtime,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
    report: &mut Report<'_>,
) -> Result<(), RunError> {
    check_places(requests)?;
    let prepared = stop_at(interrupt, prepare(requests, runtime, progress)).await?;
    let mut runs = Runs {
        prepared,
        open: BTreeMap::new(),
        report,
    };
    let mut trouble = Trouble {
        stop: interrupt.child_token(),
        keep_going: pace.keep_going,
        error: None,
    };
    let mut slots = Slots::new(pace.jobs);
    let mut waiting = turns(requests, pace.repeat).peekable();
    loop {
        while !trouble.stop.is_cancelled()
            && let Some(turn) = waiting.next_if(|turn| slots.has_room(turn.weight))
        {
            match runs.open(&turn) {
                Err(error) => trouble.add(error, progress),
                Ok(run) => {
                    let (folder, stop) = (run.folder.clone(), trouble.stop.clone());
                    slots.begin(turn.weight, async move {
                        let Turn { request, case, .. } = turn;
                        let ran = run_case(request, case, &folder, runtime, progress, &stop);
                        (turn, ran.await)
                    });
                }
            }
        }
        let Some((turn, ran)) = slots.next().await else {
            break;
        };
        if let Err(error) = runs.close(&turn, ran, progress) {
            trouble.add(error, progress);
        }
    }
    for run in std::mem::take(&mut runs.open).into_values() {
        if let Err(error) = (runs.report)(&run.record) {
            trouble.add(RunError::Report(error), progress);
        }
        run.give_up(progress);
    }
    match trouble.error {
        Some(error) => Err(error),
        // Too late to stop anything, and whoever interrupted wants no more.
        None if interrupt.is_cancelled() => Err(RunError::Interrupted),
        None => Ok(()),
    }
}

/// One case of one run, waiting for room.
#[derive(Clone, Copy)]
struct Turn<'a> {
    run: usize,
    request: &'a RunRequest<'a>,
    case: &'a Case,
    weight: u32,
}

fn turns<'a>(requests: &'a [RunRequest<'a>], repeat: u32) -> impl Iterator<Item = Turn<'a>> {
    let runs = (0..repeat).flat_map(move |_| requests).enumerate();
    runs.flat_map(|(run, request)| {
        request.chosen().map(move |case| Turn {
            run,
            request,
            case,
            weight: match case.setup.load {
                // Whatever ran beside it would be measured with it.
                Some(_) => u32::MAX,
                None => weight(&CaseNodes::new(request, case)),
            },
        })
    })
}

/// What wants a certain port of this machine cannot share it, and is alone.
fn weight(nodes: &CaseNodes) -> u32 {
    let mut ports = nodes.services.iter().flat_map(|node| &node.ports);
    if ports.any(|port| port.host != 0) {
        return u32::MAX;
    }
    // Every source has a proxy of its own.
    weight_of(nodes.services.len() + nodes.workers.len() + nodes.reach().len())
}

fn weight_of(containers: usize) -> u32 {
    let slots = containers.div_ceil(CONTAINERS_PER_SLOT);
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// The runs of which a case has begun and one is still to end.
struct Runs<'a, 'r> {
    prepared: Prepared,
    open: BTreeMap<usize, OpenRun>,
    report: &'a mut Report<'r>,
}

impl Runs<'_, '_> {
    /// The run of a case that begins.
    fn open(&mut self, turn: &Turn<'_>) -> Result<&OpenRun, RunError> {
        Ok(match self.open.entry(turn.run) {
            Entry::Occupied(run) => run.into_mut(),
            Entry::Vacant(free) => {
                let environment = self.prepared.environment(turn.request);
                let request = turn.request;
                free.insert(OpenRun::begin(Begun {
                    scenario: request.scenario,
                    order: request.chosen().map(|case| case.name.clone()).collect(),
                    seed: request.seed,
                    mutant: request.mutant.clone(),
                    results: &request.results,
                    environment,
                })?)
            }
        })
    }

    /// A case has ended, and perhaps its run with it.
    fn close(
        &mut self,
        turn: &Turn<'_>,
        ran: Result<CaseResult, RunError>,
        progress: &dyn Progress,
    ) -> Result<(), RunError> {
        let ran =
            ran.map_err(|error| error.in_case(&turn.request.scenario.name, &turn.case.name))?;
        let Some(run) = self.open.get_mut(&turn.run) else {
            return Ok(());
        };
        run.add(ran, progress)?;
        if run.is_over() {
            (self.report)(&run.record).map_err(RunError::Report)?;
            self.open.remove(&turn.run);
        }
        Ok(())
    }
}

/// Why nothing more begins, and what was under way ends early.
struct Trouble {
    stop: CancellationToken,
    /// Only somebody who interrupts stops anything.
    keep_going: bool,
    error: Option<RunError>,
}

impl Trouble {
    /// The first error is what the runs end with. That others were stopped is
    /// no news then; what else went wrong is said, or told at the end where the first
    /// error stopped nothing.
    fn add(&mut self, error: RunError, progress: &dyn Progress) {
        if !self.keep_going || matches!(error, RunError::Interrupted) {
            self.stop.cancel();
        }
        self.error = Some(match (self.error.take(), error) {
            (None | Some(RunError::Interrupted), error) => error,
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
    use crate::run::heard::Heard;

    fn ends_with(keep_going: bool, errors: Vec<RunError>) -> (String, Vec<String>) {
        let heard = Heard::default();
        let stop = CancellationToken::new();
        let mut trouble = Trouble {
            stop: stop.clone(),
            keep_going,
            error: None,
        };
        for error in errors {
            trouble.add(error, &heard);
        }
        assert_eq!(stop.is_cancelled(), !keep_going);
        let error = trouble.error.unwrap().to_string();
        (error, heard.lines())
    }

    fn broken(what: &str) -> RunError {
        RunError::Report(what.to_owned())
    }

    #[test]
    fn a_case_weighs_by_its_containers() {
        for (containers, weight) in [(1, 1), (11, 1), (20, 1), (21, 2), (66, 4)] {
            assert_eq!(weight_of(containers), weight, "{containers}");
        }
    }

    #[test]
    fn the_first_error_is_the_one_and_others_are_said() {
        let errors = vec![broken("a"), RunError::Interrupted, broken("b")];
        let (error, said) = ends_with(false, errors);
        assert_eq!((error.as_str(), said), ("a", vec!["b".to_owned()]));
    }

    #[test]
    fn what_goes_wrong_after_an_interrupt_is_worse_than_it() {
        let errors = vec![RunError::Interrupted, broken("left behind")];
        assert_eq!(ends_with(false, errors).0, "left behind");
    }

    #[test]
    fn whoever_goes_on_is_told_all_errors_at_the_end() {
        let errors = vec![broken("a"), broken("b"), broken("c")];
        let (error, said) = ends_with(true, errors);
        assert_eq!((error.as_str(), said), ("a\nb\nc", Vec::new()));
    }
}
