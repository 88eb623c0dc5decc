//! A load at servers that are there already, without containers.

use super::resource_process::ResourceProcess;
use super::{LoadRun, Loaded};
use crate::load::Targets;
use crate::model::{CaseNotes, CaseResult, LoadPlan, LockServers, RunRecord};
use crate::progress::{Progress, Task};
use crate::resource::ResourceClient;
use crate::run::collect::{ANSWER_DEADLINE, ask_resource};
use crate::run::evidence::Evidence;
use crate::run::judge::judge_case;
use crate::run::open_run::{Begun, OpenRun};
use crate::run::phases::Phases;
use crate::run::settle::is_still;
use crate::run::{RunError, RunFolder};
use crate::scenario::{Case, Scenario};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

pub struct LocalRequest<'a> {
    pub scenario: &'a Scenario,
    pub servers: ServerAddresses,
    /// A resource that is there already; without it, each case starts its own.
    pub resource: Option<String>,
    pub seed: u64,
    pub results: PathBuf,
}

/// `host:port` of each server.
#[derive(Clone, Debug, Default)]
pub struct ServerAddresses {
    pub redis: Vec<String>,
    pub etcd: Vec<String>,
}

impl ServerAddresses {
    fn of(&self, kind: LockServers) -> &[String] {
        match kind {
            LockServers::OneRedis | LockServers::RedisNodes => &self.redis,
            LockServers::Etcd => &self.etcd,
        }
    }

    fn environment(&self) -> BTreeMap<String, String> {
        let named = [("redis", &self.redis), ("etcd", &self.etcd)];
        let named = named.into_iter().filter(|(_, all)| !all.is_empty());
        named
            .map(|(name, all)| (format!("servers {name}"), all.join(",")))
            .collect()
    }
}

/// Runs every case, one after the other: they share the servers and the machine.
pub async fn run_local(
    request: &LocalRequest<'_>,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> Result<RunRecord, RunError> {
    let scenario = request.scenario;
    RunFolder::check(&request.results, &scenario.name)?;
    let mut run = OpenRun::begin(Begun {
        scenario,
        order: scenario
            .cases
            .iter()
            .map(|case| case.name.clone())
            .collect(),
        seed: request.seed,
        mutant: None,
        results: &request.results,
        environment: request.servers.environment(),
    })?;
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
) -> Result<CaseResult, RunError> {
    let task = progress.begin(&format!("{} {}", request.scenario.name, case.name));
    let evidence = Evidence::create(folder.case(&case.name))?;
    let local = LocalCase {
        request,
        case,
        evidence: &evidence,
        task: task.as_ref(),
        interrupt,
    };
    let mut clock = Phases::default();
    let mut notes = match local.play(&mut clock).await {
        Ok(notes) => notes,
        Err(error) => {
            // A disk that is full has been reported already.
            let _ = evidence.notes(&evidence.so_far(error.to_string()));
            return Err(error);
        }
    };
    notes.measurements = clock.finish();
    evidence.notes(&notes)?;
    let outcome = judge_case(case, &folder.case(&case.name))?;
    task.finish(&outcome.verdict.outcome.to_string());
    Ok(outcome)
}

struct LocalCase<'a> {
    request: &'a LocalRequest<'a>,
    case: &'a Case,
    evidence: &'a Evidence,
    task: &'a dyn Task,
    interrupt: &'a CancellationToken,
}

impl LocalCase<'_> {
    async fn play(&self, clock: &mut Phases) -> Result<CaseNotes, RunError> {
        let plan = self.case.setup.load.as_ref();
        let plan = plan.ok_or_else(|| RunError::Report("this case is no load".to_owned()))?;
        match (plan, &self.request.resource) {
            (LoadPlan::Keyspace(_), _) => {
                let loaded = clock.time("scenario", self.load(plan, "")).await?;
                Ok(loaded.notes)
            }
            (LoadPlan::Contend(_), Some(url)) => self.with_resource(plan, url, clock).await,
            (LoadPlan::Contend(_), None) => {
                let data = self.evidence.folder().join("resource");
                let start = ResourceProcess::start(&data, self.case.fence);
                let resource = clock.time("start", start).await?;
                let played = self.with_resource(plan, &resource.url, clock).await;
                clock.time("clean", resource.end()).await;
                if played.is_ok() {
                    // What it says is in the evidence, all of it.
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
        clock: &mut Phases,
    ) -> Result<CaseNotes, RunError> {
        let Loaded {
            mut notes,
            unanswered,
        } = clock.time("scenario", self.load(plan, url)).await?;
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
        clock.time("collect", collecting).await?;
        Ok(notes)
    }

    async fn load(&self, plan: &LoadPlan, resource: &str) -> Result<Loaded, RunError> {
        let kind = self.case.setup.lock.backend.servers();
        let load = LoadRun {
            plan,
            kind,
            targets: Targets {
                lock_servers: self.request.servers.of(kind).to_vec(),
                resource: resource.to_owned(),
            },
            seed: self.request.seed,
            deadline: self.case.setup.deadline,
            evidence: self.evidence,
            task: self.task,
            interrupt: self.interrupt,
        };
        load.run().await
    }
}
