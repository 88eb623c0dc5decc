use super::subject::{Subject, SubjectArguments};
use super::*;
use crate::cluster::topology::Topology;
use crate::cluster::{Cluster, Image, NodeSpec};
use crate::conformance::{Checked, Finding, Findings, Stage, Wrong, check_all};
use crate::progress::Progress;
use crate::services::{Backend, LockOptions};
use std::fmt::Write;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Check that a worker speaks the worker protocol, and say which line is wrong
///
/// Starts the worker a dozen times with small tasks, a lock server and the resource. A command runs
/// on this machine, without Docker; a folder or an image in containers. Exit codes: 0 it speaks the
/// protocol, 1 a line is wrong, 2 something was in the way.
#[derive(Args)]
pub struct WorkerCheck {
    /// The lock service that the worker uses
    #[arg(long, default_value_t, value_name = "SERVICE")]
    backend: Backend,
    #[command(flatten)]
    pub printed: OutputFormat,
    #[command(flatten)]
    worker: SubjectArguments,
}

impl WorkerCheck {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let subject = self.worker.subject()?;
        let topologies = home.topologies()?;
        let (_, topology) = for_backend(&topologies, self.backend)?;
        let interrupt = interrupt::listen()?;
        let progress = progress::for_this_output();
        let checking = Checking {
            backend: self.backend,
            subject: &subject,
            topology,
        };
        let findings = checking.check(&progress, &interrupt).await?;
        let exit = exit_of(&findings.checked);
        self.printed
            .show(&told(&subject, &findings), text(&subject, &findings, exit))?;
        Ok(exit)
    }
}

/// A check of one worker at the servers of one topology.
pub struct Checking<'a> {
    pub backend: Backend,
    pub subject: &'a Subject,
    pub topology: &'a Topology,
}

impl Checking<'_> {
    pub async fn check(
        &self,
        progress: &dyn Progress,
        interrupt: &CancellationToken,
    ) -> Result<Findings, Failure> {
        let (subject, topology) = (self.subject, self.topology);
        let opened = runtime::open(subject.runtime(), progress).await?;
        let mut images: Vec<Image> = vec![subject.image()];
        images.extend(topology.started().map(|(_, service)| service.image.clone()));
        let prepare = opened.runtime.prepare(&images, progress);
        interrupt::or(interrupt, prepare).await?;
        let run = Name::of_id(Uuid::new_v4()).behind("check");
        let cluster = opened.runtime.create(&run, false).await?;
        let checking = self.on(cluster.as_ref(), progress);
        let findings = interrupt::or(interrupt, checking).await;
        let removed = cluster.remove().await;
        let findings = findings?;
        removed?;
        Ok(findings)
    }

    async fn on(
        &self,
        cluster: &dyn Cluster,
        progress: &dyn Progress,
    ) -> Result<Findings, Failure> {
        let lock = LockOptions {
            backend: self.backend,
            ..LockOptions::default()
        };
        let stage = Stage::new(cluster, self.topology, self.worker_node(), lock);
        let task = progress.begin(&format!("worker-check {}", self.subject.shown()));
        task.detail("starting lock servers");
        stage.start_lock_servers().await?;
        let findings = check_all(&stage, |check| task.detail(check)).await?;
        task.finish("done");
        Ok(findings)
    }

    fn worker_node(&self) -> NodeSpec {
        let subject = self.subject;
        let template = self.topology.worker_for(self.backend);
        let mut node = template.service.node(&template.name);
        node.image = subject.image().name;
        node.command = subject.command();
        node
    }
}

/// Returns the simplest topology with servers of this kind: the one with the shortest name.
pub fn for_backend(
    topologies: &std::collections::BTreeMap<String, Topology>,
    backend: Backend,
) -> Result<(&str, &Topology), Failure> {
    let has_servers = |topology: &Topology| {
        let mut workers = topology.workers.iter();
        workers.any(|worker| worker.backend.map(Backend::servers) == Some(backend.servers()))
    };
    let fitting = topologies
        .iter()
        .filter(|(_, topology)| has_servers(topology));
    let simplest = fitting.min_by_key(|(name, _)| name.len());
    let simplest = simplest.map(|(name, topology)| (name.as_str(), topology));
    simplest.ok_or_else(|| {
        Failure::usage(format!(
            "cannot find a topology with servers for {backend}; add one to compose/"
        ))
    })
}

fn exit_of(checked: &[Checked]) -> Exit {
    let mut exit = Exit::AsExpected;
    for (place, Checked { outcome, .. }) in checked.iter().enumerate() {
        match outcome {
            Finding::Failed(_) => return Exit::NotAsExpected,
            Finding::NotSeen { .. } => exit = Exit::Inconclusive,
            // A worker that refuses the plainest task was not checked at all.
            Finding::NotOffered { .. } if place == 0 => exit = Exit::Inconclusive,
            Finding::NotOffered { .. } | Finding::Passed => {}
        }
    }
    exit
}

fn told(subject: &Subject, findings: &Findings) -> Value {
    let mut told = json!({
        "worker": subject.shown(),
        "lacks": findings.declared.lacks,
        "only": findings.declared.only,
        "checks": findings.checked,
    });
    told["exit_code"] = json!(exit_of(&findings.checked) as u8);
    told
}

fn text(subject: &Subject, findings: &Findings, exit: Exit) -> String {
    let mut text = String::new();
    for Checked { check, outcome } in &findings.checked {
        // Writing to a string cannot fail.
        let _ = match outcome {
            Finding::Passed => writeln!(text, "  ok           {check}"),
            Finding::NotOffered { reason } => writeln!(text, "  not offered  {check}: {reason}"),
            Finding::NotSeen { reason } => writeln!(text, "  not seen     {check}: {reason}"),
            Finding::Failed(wrong) => writeln!(text, "  WRONG        {check}\n{}", words(wrong)),
        };
    }
    let shown = subject.shown();
    let verdict = match exit {
        Exit::AsExpected => "speaks the worker protocol",
        Exit::NotAsExpected => "does not speak the worker protocol; docs/contract.md has it",
        _ => "was not checked to the end",
    };
    let _ = writeln!(text, "\n{shown}: {verdict}");
    text
}

fn words(wrong: &Wrong) -> String {
    let place = match wrong.line {
        Some(line) => format!("line {line} of stdout: {}", wrong.text),
        None => "stdout: no line".to_owned(),
    };
    let indent = "               ";
    let mut text = format!(
        "{indent}{place}\n{indent}problem:  {}\n{indent}expected: {}",
        wrong.problem, wrong.expected
    );
    for line in wrong.stderr.lines() {
        let _ = write!(text, "\n{indent}stderr:   {line}");
    }
    text
}
