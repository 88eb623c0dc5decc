//! A load on servers that run already, without containers.

use super::resource_process::ResourceProcess;
use super::*;
use crate::model::{CaseResult, RunRecord};
use crate::progress::Progress;
use crate::resource::ResourceClient;
use crate::run::RunFolder;
use crate::run::case::judge;
use crate::run::collect::{ANSWER_DEADLINE, ask_resource};
use crate::run::open_run::OpenRun;
use crate::run::options::new_record;
use crate::run::phase_times::PhaseTimes;
use crate::run::settle::is_still;
use crate::scenario::{Case, Scenario};
use std::path::PathBuf;

pub struct LocalRequest<'a> {
    pub scenario: &'a Scenario,
    pub servers: ServerAddresses,
    /// A resource that runs already; without it, each case starts its own.
    pub resource: Option<String>,
    pub seed: u64,
    pub results: PathBuf,
}

/// Runs every case, one after the other: they share the servers and the machine.
pub async fn run_local(
    request: &LocalRequest<'_>,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> RunResult<RunRecord> {
    let scenario = request.scenario;
    RunFolder::check(&request.results, &scenario.name)?;
    let record = RunRecord {
        environment: request.servers.environment(),
        ..new_record(scenario, request.seed)
    };
    let mut run = OpenRun::begin(record, scenario, &request.results)?;
    for case in &scenario.cases {
        let ran = run_case(request, case, &run.folder, progress, interrupt).await;
        match ran {
            Ok(ran) => run.add(ran, progress)?,
            Err(error) => {
                run.give_up(progress);
                return Err(error.in_case(&scenario.name, &case.name));
            }
        }
    }
    Ok(run.record)
}

async fn run_case(
    request: &LocalRequest<'_>,
    case: &Case,
    folder: &RunFolder,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> RunResult<CaseResult> {
    let task = progress.begin(&format!("{} {}", request.scenario.name, case.name));
    let evidence = Evidence::create(folder.case(&case.name))?;
    let local = LocalCase {
        request,
        case,
        evidence: &evidence,
        task: task.as_ref(),
        interrupt,
    };
    let times = PhaseTimes::default();
    let mut notes = match local.play(&times).await {
        Ok(notes) => notes,
        Err(error) => {
            // A full disk has been reported already.
            let _ = evidence.notes(&evidence.so_far(error.to_string()));
            return Err(error);
        }
    };
    notes.measurements = times.finish();
    judge(case, &evidence, &notes, task.as_ref())
}

struct LocalCase<'a> {
    request: &'a LocalRequest<'a>,
    case: &'a Case,
    evidence: &'a Evidence,
    task: &'a dyn Task,
    interrupt: &'a CancellationToken,
}

impl LocalCase<'_> {
    async fn play(&self, times: &PhaseTimes) -> RunResult<CaseNotes> {
        let plan = self.case.setup.load.as_ref();
        let plan = plan.ok_or_else(|| RunError::Report("this case is not a load".to_owned()))?;
        match (plan, &self.request.resource) {
            (LoadPlan::Keyspace(_), _) => {
                let loaded = times.time("scenario", self.load(plan, "")).await?;
                Ok(loaded.notes)
            }
            (LoadPlan::Contend(_), Some(url)) => self.with_resource(plan, url, times).await,
            (LoadPlan::Contend(_), None) => {
                let data = self.evidence.folder().join("resource");
                let start = ResourceProcess::start(&data, self.case.fence);
                let resource = times.time("start", start).await?;
                let played = self.with_resource(plan, &resource.url, times).await;
                times.time("clean", resource.end()).await;
                if played.is_ok() {
                    // All of its data are in the evidence.
                    let _ = std::fs::remove_dir_all(&data);
                }
                played
            }
        }
    }

    async fn with_resource(
        &self,
        plan: &LoadPlan,
        url: &str,
        times: &PhaseTimes,
    ) -> RunResult<CaseNotes> {
        let played = times.time("scenario", self.load(plan, url)).await?;
        let (mut notes, unanswered) = (played.notes, played.unanswered);
        self.task.detail("collecting");
        let collecting = async {
            let client = ResourceClient::new(url, ANSWER_DEADLINE);
            let client = client.map_err(|error| RunError::Resource {
                what: "anything".to_owned(),
                reason: error.to_string(),
            })?;
            if unanswered {
                notes.settled = is_still(&client).await?;
            }
            ask_resource(&client, "resource", self.evidence, &mut notes).await
        };
        times.time("collect", collecting).await?;
        Ok(notes)
    }

    async fn load(&self, plan: &LoadPlan, resource: &str) -> RunResult<PlayResult> {
        let setup = &self.case.setup;
        let kind = setup.lock.backend.servers();
        let load = LoadRun {
            plan,
            setup,
            targets: Targets {
                lock_servers: self.request.servers.of(kind).to_vec(),
                resource: resource.to_owned(),
            },
            seed: self.request.seed,
            evidence: self.evidence,
            task: self.task,
            interrupt: self.interrupt,
        };
        load.run().await
    }
}
