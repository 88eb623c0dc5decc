//! One case on a cluster of its own, from nothing to nothing: create, links, start, prepare,
//! observe, drive, heal, collect, remove, judge. The part from the start to the end of the drive
//! is in `play.rs`.

use super::clock_desk::{ClockDesk, clock_desk};
use super::collect::{collect, save_logs};
use super::evidence::Evidence;
use super::guests::Guests;
use super::judge::judge_case;
use super::observer::Observer;
use super::phase_times::PhaseTimes;
use super::play::PlayResult;
use super::settle::settle;
use super::*;
use crate::cluster::LastLines;
use crate::faults::journal::Journal;
use crate::faults::{Links, NotProven};
use crate::model::Gap;
use crate::progress::Task;
use futures_util::future::join_all;
use uuid::Uuid;

pub struct CaseRun<'a> {
    pub lab: &'a Lab<'a>,
    pub case: &'a Case,
    pub nodes: CaseNodes,
    pub evidence: Arc<Evidence>,
    pub task: Box<dyn Task>,
    pub times: PhaseTimes,
    title: String,
    pub run: Name,
    pub stop: CancellationToken,
    /// It is one play of very many.
    pub is_of_a_search: bool,
}

impl<'a> CaseRun<'a> {
    pub fn begin(
        lab: &'a Lab<'a>,
        scenario: &Scenario,
        case: &'a Case,
        folder: &RunFolder,
        stop: CancellationToken,
    ) -> RunResult<CaseRun<'a>> {
        let title = format!("{} {}", scenario.name, case.name);
        let evidence = Evidence::create(folder.case(&case.name))?;
        Ok(CaseRun::with(lab, case, title, evidence, stop))
    }

    pub fn with(
        lab: &'a Lab<'a>,
        case: &'a Case,
        title: String,
        evidence: Evidence,
        stop: CancellationToken,
    ) -> CaseRun<'a> {
        CaseRun {
            lab,
            case,
            task: lab.progress.begin(&title),
            evidence: Arc::new(evidence),
            nodes: CaseNodes::new(lab, case),
            times: PhaseTimes::default(),
            title,
            run: Name::of_id(Uuid::new_v4()),
            stop,
            is_of_a_search: false,
        }
    }

    /// Runs the case. Healing and removal happen on every way out, and their errors are reported
    /// beside earlier errors.
    pub async fn run(mut self) -> RunResult<CaseResult> {
        let refusal = self.lab.groundwork.refusal(&self.title);
        if let Some(reason) = self.lab.lacking(self.case).or(refusal) {
            let notes = self.never_played(&reason);
            return judge(self.case, &self.evidence, &notes, self.task.as_ref());
        }
        if self.lab.simulates(self.case) {
            let mut notes = self.simulate()?.notes;
            notes.measurements = self.times.finish();
            return judge(self.case, &self.evidence, &notes, self.task.as_ref());
        }
        let cluster = self.create().await?;
        let (desk, questions) = clock_desk();
        let mut guests = Guests::default();
        let (played, nemesis) = match self.ways(&cluster, &mut guests).await {
            Ok(links) => {
                let nemesis = self.nemesis(&cluster, links, desk);
                let played = self.play(&nemesis, questions).await;
                let problems = self.heal(&nemesis).await;
                let collected = self.collect(&nemesis, played, problems).await;
                (collected, Some(nemesis))
            }
            Err(error) => {
                let error = self.explained(error, Vec::new(), &cluster).await;
                (Err(error), None)
            }
        };
        let removed = self.remove(&cluster, nemesis.as_deref(), &played).await;
        // Nobody writes any more.
        let left = guests.leave(self.case.setup.attach.as_ref()).await;
        let mut notes = with_gaps(both(played, removed), left)?;
        notes.measurements = self.times.finish();
        judge(self.case, &self.evidence, &notes, self.task.as_ref())
    }

    /// Runs one phase: a person sees that it is under way, it is measured, and it ends at an
    /// interrupt.
    pub async fn phase<T>(
        &self,
        name: &str,
        detail: &str,
        work: impl Future<Output = RunResult<T>>,
    ) -> RunResult<T> {
        self.task.detail(detail);
        stop_at(&self.stop, self.times.time(name, work)).await
    }

    pub fn never_played(&self, reason: &str) -> CaseNotes {
        CaseNotes {
            gaps: vec![format!("cannot be done here: {reason}").into()],
            never_played: true,
            ..self.notes()
        }
    }

    /// Returns the notes of a complete case.
    pub fn notes(&self) -> CaseNotes {
        let workers = self.nodes.worker_names().into_iter();
        CaseNotes {
            workers: workers.map(String::from).collect(),
            ..CaseNotes::default()
        }
    }

    async fn create(&self) -> RunResult<Arc<dyn Cluster>> {
        self.task.detail("making a network");
        let create = self.lab.runtime.create(&self.run, self.lab.options.keep);
        Ok(self.times.time("create", create).await?)
    }

    /// Makes the ways between the nodes, and to the servers that are there already.
    async fn ways(
        &mut self,
        cluster: &Arc<dyn Cluster>,
        guests: &mut Guests,
    ) -> RunResult<Option<Links>> {
        let looking = "looking at the attached servers";
        let move_in = self.move_in(cluster.as_ref(), guests);
        self.phase("attach", looking, move_in).await?;
        let links = self.links(cluster).await?;
        self.nodes.visit(guests, &self.case.setup)?;
        Ok(links)
    }

    /// Starts the proxies. In a load no node is led through a proxy: that would be measured too.
    async fn links(&mut self, cluster: &Arc<dyn Cluster>) -> RunResult<Option<Links>> {
        if self.case.setup.load.is_some() {
            return Ok(None);
        }
        let start = async {
            let (reach, seed) = (self.nodes.reach(), self.lab.options.seed);
            Ok(Links::start(cluster.as_ref(), self.lab.toxiproxy, reach, seed).await?)
        };
        let links = self.phase("links", "starting proxies", start).await?;
        self.nodes.lead_through(&links);
        Ok(Some(links))
    }

    #[cfg_attr(not(debug_assertions), expect(unused_mut))]
    pub fn nemesis(
        &self,
        cluster: &Arc<dyn Cluster>,
        links: Option<Links>,
        desk: ClockDesk,
    ) -> Arc<Nemesis> {
        let field = Arc::new(self.nodes.field(cluster, links, desk));
        let journal = match self.lab.runtime.simulates() {
            // Nothing of a simulation outlives this process.
            true => Journal::of_nothing(),
            false => Journal::new(self.lab.journals, &self.run),
        };
        let journal = journal.with_attached(self.nodes.found.clone());
        let recorder = Arc::clone(&self.evidence);
        let record = Box::new(move |row| recorder.fault(&row));
        let mut nemesis = Nemesis::new(field, journal, record);
        #[cfg(debug_assertions)]
        if self.lab.options.mutant.as_deref() == Some(Nemesis::MUTANT) {
            nemesis = nemesis.pretending();
        }
        Arc::new(nemesis)
    }

    async fn heal(&self, nemesis: &Nemesis) -> Vec<NotProven> {
        self.task.detail("healing");
        self.times.time("heal", nemesis.heal()).await
    }

    /// Collects what the case left at its nodes, if it was played to its end; else says why not.
    async fn collect(
        &self,
        nemesis: &Nemesis,
        played: RunResult<PlayResult>,
        problems: Vec<NotProven>,
    ) -> RunResult<CaseNotes> {
        let cluster = &nemesis.field.cluster;
        let (mut notes, unanswered) = match played {
            Ok(played) => {
                let mut notes = played.notes;
                notes.gaps.extend(problems.into_iter().map(Gap::from));
                let stopped = join_all(played.observers.into_iter().map(Observer::stop)).await;
                notes
                    .gaps
                    .extend(stopped.into_iter().flatten().map(Gap::from));
                (notes, played.unanswered)
            }
            Err(error) => return Err(self.explained(error, problems, cluster).await),
        };
        let collecting = async {
            if unanswered {
                notes.settled = settle(&self.nodes, cluster, nemesis).await?;
            }
            collect(&self.nodes, cluster, &self.evidence, &mut notes).await
        };
        match self.phase("collect", "collecting", collecting).await {
            Ok(()) => Ok(notes),
            // The gaps already say how it came to this, and say more.
            Err(error @ (RunError::Resource { .. } | RunError::Cluster(_)))
                if !notes.gaps.is_empty() =>
            {
                notes.gaps.push(error.to_string().into());
                Ok(notes)
            }
            Err(error) => Err(error),
        }
    }

    /// Adds all that is known to an error. An interrupt needs no explanation, and the removal ends
    /// the faults that could not be healed then.
    async fn explained(
        &self,
        error: RunError,
        problems: Vec<NotProven>,
        cluster: &Arc<dyn Cluster>,
    ) -> RunError {
        if matches!(error, RunError::Interrupted) {
            return error;
        }
        save_logs(&self.nodes, cluster, &self.evidence).await;
        let error = with_last_lines(error, cluster).await;
        if problems.is_empty() {
            return error;
        }
        RunError::AndThen {
            first: Box::new(error),
            then: Box::new(RunError::NotHealed(
                problems.into_iter().map(|it| it.text).collect(),
            )),
        }
    }

    /// Removes the cluster. After an interrupt it is removed even if it was to be kept.
    async fn remove(
        &self,
        cluster: &Arc<dyn Cluster>,
        nemesis: Option<&Nemesis>,
        played: &RunResult<CaseNotes>,
    ) -> RunResult {
        if let Err(error) = played {
            let mut notes = self.evidence.so_far(error.to_string());
            notes.workers.extend(self.notes().workers);
            // A full disk has been reported already.
            let _ = self.evidence.notes(&notes);
        }
        self.task.detail("removing");
        let (title, progress) = (&self.title, self.lab.progress);
        if self.lab.options.keep && !matches!(played, Err(RunError::Interrupted)) {
            let kept = cluster.keep().await?;
            progress.say(&format!(
                "{title} is kept: {kept}; `fencepost clean` removes them"
            ));
            return Ok(());
        }
        match self.times.time("clean", cluster.remove()).await {
            // Only the empty network is left of the case, and nothing can be done about it here.
            Err(stuck @ ClusterError::StuckNetwork { .. }) => progress.say(&stuck.to_string()),
            removed => removed?,
        }
        if let Some(nemesis) = nemesis {
            nemesis.ended_with_the_nodes();
        }
        Ok(())
    }
}

/// Writes the notes and judges the case; the judge reads them from the disk.
pub fn judge(
    case: &Case,
    evidence: &Evidence,
    notes: &CaseNotes,
    task: &dyn Task,
) -> RunResult<CaseResult> {
    evidence.notes(notes)?;
    let result = judge_case(case, evidence.folder())?;
    task.finish(&result.verdict.outcome.to_string());
    Ok(result)
}

/// Adds the last lines of the log of a service that ended: if anything says why, they do.
async fn with_last_lines(error: RunError, cluster: &Arc<dyn Cluster>) -> RunError {
    let RunError::ServiceEnded { what, node, log } = error else {
        return error;
    };
    let printed = cluster.logs(&node).await.unwrap_or_default();
    let log = log + &LastLines::of(&printed).below();
    RunError::ServiceEnded { what, node, log }
}

/// Adds what the attached servers lack for the record, or why they are not as they were.
fn with_gaps(notes: RunResult<CaseNotes>, left: RunResult<Vec<String>>) -> RunResult<CaseNotes> {
    let (gaps, left) = match left {
        Ok(gaps) => (gaps, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    };
    let mut notes = both(notes, left)?;
    notes.gaps.extend(gaps.into_iter().map(Gap::from));
    Ok(notes)
}

fn both<T>(first: RunResult<T>, then: RunResult) -> RunResult<T> {
    match (first, then) {
        (Ok(value), Ok(())) => Ok(value),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(then)) => Err(RunError::AndThen {
            first: Box::new(first),
            then: Box::new(then),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_failed_says_too_what_is_left_at_attached_servers() {
        let problem = |text: &str| RunError::NotHealed(vec![text.to_owned()]);
        let left = with_gaps(Err(problem("no resource")), Err(problem("keys are left")));
        let text = left.unwrap_err().to_string();
        for words in ["no resource", "keys are left"] {
            assert!(text.contains(words), "{text}");
        }
        let gap = vec!["another server".to_owned()];
        let notes = with_gaps(Ok(CaseNotes::default()), Ok(gap)).unwrap();
        assert_eq!(notes.gaps.len(), 1);
        assert!(with_gaps(Ok(CaseNotes::default()), Err(problem("left"))).is_err());
    }
}
