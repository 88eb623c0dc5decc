//! One play of a case that nobody keeps, for a search that plays very many. It is judged by the
//! promises alone.

use super::case::CaseRun;
use super::evidence::Evidence;
use super::prepare::prepare;
use super::recorded::read_case;
use super::simulated::Simulated;
use super::*;
use crate::model::{CaseRecord, Gap, Judgement};
use fencepost_judge::checker;

/// The record of a play, and what its judge found.
pub struct Once {
    pub record: CaseRecord,
    pub judgement: Judgement,
    /// What was not done of the timeline, although the play went on: a run would be inconclusive.
    pub missed: Vec<Gap>,
}

impl Once {
    fn of(record: CaseRecord, missed: Vec<Gap>) -> Once {
        Once {
            judgement: checker::judge(&record),
            record,
            missed,
        }
    }
}

/// Gets ready what these scenarios are played with, and heals what dead runs left.
pub async fn prepare_for(lab: &Lab<'_>, scenarios: &[Scenario]) -> RunResult {
    stop_at(lab.interrupt, prepare(lab, scenarios))
        .await
        .map(drop)
}

/// Plays a case in simulated time, on this thread and in memory. The thread must have no runtime.
pub fn simulate_once(lab: &Lab<'_>, case: &Case) -> RunResult<Once> {
    let (title, stop) = (case.name.to_string(), CancellationToken::new());
    let mut run = CaseRun::with(lab, case, title, Evidence::in_memory(), stop);
    run.is_of_a_search = true;
    let Simulated { notes, missed } = run.simulate_here()?;
    let rows = run.evidence.take_rows().unwrap_or_default();
    let gaps = notes.gaps.clone();
    Ok(Once::of(rows.record(case.plan(), &notes, gaps), missed))
}

/// Plays a case as a run does, and removes its folder.
pub async fn play_once(lab: &Lab<'_>, scenario: &Scenario, case: &Case) -> RunResult<Once> {
    make_folder(lab.results)?;
    let folder = tempfile::tempdir_in(lab.results).map_err(write_failed(lab.results))?;
    let run = RunFolder {
        path: folder.path().to_owned(),
    };
    let stop = lab.interrupt.clone();
    let begun = CaseRun::begin(lab, scenario, case, &run, stop)?;
    begun.run().await?;
    let (record, _) = read_case(&run.case(&case.name), case.plan())?;
    Ok(Once::of(record, Vec::new()))
}
