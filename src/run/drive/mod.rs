//! The middle of a case: events come in, the timeline says what is due, the nemesis does it, gates
//! open. It ends when every worker has ended, when something cannot be proven, or at the deadline,
//! with the names of the events that did not come.

#[cfg(test)]
mod tests;

use super::acts::{Actor, Entries, Rounds, Told};
use super::clock_desk::ClockQuestions;
use super::evidence::Evidence;
use super::seen::Seen;
use super::workers::Workers;
use super::{RunError, RunResult};
use crate::clock::raw_monotonic_ns;
use crate::faults::{Nemesis, NotProven};
use crate::model::{Event, EventKind, Gap, Gate, LogRow, Name, RowOutcome, Step, format_duration};
use crate::progress::Task;
use crate::scenario::timeline::{Due, Timeline, What};
use crate::scenario::trigger::{RESOURCE, SCENARIO, STARTED};
use crate::scenario::{Setup, once_each};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[derive(Debug)]
pub enum Happening {
    Worker(Event),
    NotAnEvent {
        worker: Name,
        line: String,
        reason: String,
    },
    WorkerEnded {
        worker: Name,
        stderr: String,
    },
    Row(LogRow),
    ServiceEnded {
        node: Name,
        reason: String,
    },
}

/// The time that the resource's last rows may take.
const LAST_ROWS: Duration = Duration::from_secs(2);

/// One closed gate: the worker that waits at it, and in which round.
pub type GateKey = (String, Gate, u32);

/// The result of a drive.
#[derive(Debug)]
pub struct DriveResult {
    /// The reasons why the record is incomplete, if it is.
    pub gaps: Vec<Gap>,
    /// What a search passed over: events that never came, faults that nobody was left for.
    pub missed: Vec<Gap>,
    /// A write may still be under way.
    pub unanswered: bool,
    /// The time at which everything that is recorded of the workers had come in.
    pub ended_ns: u64,
}

pub struct Drive<'a> {
    setup: &'a Setup,
    timeline: Timeline,
    workers: Workers,
    nemesis: Arc<Nemesis>,
    evidence: &'a Evidence,
    clock_questions: ClockQuestions,
    task: &'a dyn Task,
    /// The entries that are being carried out; they end with the drive.
    acting: JoinSet<()>,
    /// The number of entries that have not sent their last report.
    unfinished: usize,
    tell: mpsc::UnboundedSender<Told>,
    told: mpsc::UnboundedReceiver<Told>,
    entries: Entries,
    seen: Seen,
    /// The number of entries, triggered by reaching a gate, that have not begun yet.
    gates: HashMap<GateKey, usize>,
    not_ready: BTreeSet<Name>,
    running: BTreeSet<Name>,
    done: BTreeSet<String>,
    gaps: Vec<Gap>,
    /// What is not done of the timeline is passed over.
    is_search: bool,
    missed: Vec<Gap>,
    unanswered: bool,
}

impl<'a> Drive<'a> {
    pub fn new(
        setup: &'a Setup,
        timeline: Timeline,
        workers: Workers,
        nemesis: &Arc<Nemesis>,
        evidence: &'a Evidence,
        clock_questions: ClockQuestions,
        task: &'a dyn Task,
    ) -> Drive<'a> {
        let names: BTreeSet<Name> = workers.names().cloned().collect();
        let (tell, told) = mpsc::unbounded_channel();
        Drive {
            setup,
            timeline,
            workers,
            nemesis: Arc::clone(nemesis),
            evidence,
            clock_questions,
            task,
            acting: JoinSet::new(),
            unfinished: 0,
            tell,
            told,
            entries: Entries::default(),
            seen: Seen::default(),
            gates: HashMap::new(),
            not_ready: names.clone(),
            running: names,
            done: BTreeSet::new(),
            gaps: Vec::new(),
            is_search: false,
            missed: Vec::new(),
            unanswered: false,
        }
    }

    /// Passes over what is not done of the timeline, instead of giving the case up: a search draws
    /// events that never come, and faults of workers that have ended by then.
    pub fn of_a_search(self) -> Drive<'a> {
        Drive {
            is_search: true,
            ..self
        }
    }

    pub async fn run(
        mut self,
        mut happenings: mpsc::Receiver<Happening>,
    ) -> RunResult<DriveResult> {
        let give_up_at = Instant::now() + self.setup.deadline;
        let mut last_rows_by = None;
        while self.gaps.is_empty() && (!self.is_quiet() || self.waits_for_rows()) {
            self.task.detail(&self.awaited());
            if self.is_quiet() {
                last_rows_by.get_or_insert(Instant::now() + LAST_ROWS);
            }
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(last_rows_by.unwrap_or(give_up_at)),
                    if last_rows_by.is_some() => break,
                () = tokio::time::sleep_until(give_up_at) => {
                    let limit = format_duration(self.setup.deadline);
                    self.gap(format!("gave up after {limit}: {}", self.awaited()));
                }
                Some(told) = self.told.recv() => self.told(told).await,
                Some(question) = self.clock_questions.next() => {
                    // A worker that cannot be asked is the same as one that does not answer.
                    let _ = self.workers.ask_clock(&question.worker).await;
                    self.clock_questions.asked(question);
                }
                Some(happening) = happenings.recv() => self.happening(happening).await?,
            }
            self.evidence.check()?;
        }
        Ok(self.end().await)
    }

    async fn end(mut self) -> DriveResult {
        let ended_ns = raw_monotonic_ns();
        // Returns when no entry is carried out any more, because healing comes next.
        self.acting.shutdown().await;
        if self.gaps.is_empty() {
            let never = self.timeline.awaited().into_iter();
            let never = never.map(|trigger| Gap::from(format!("`{trigger}` never came")));
            match self.is_search {
                true => self.missed.extend(never),
                false => self.gaps = never.collect(),
            }
        }
        DriveResult {
            gaps: self.gaps,
            missed: self.missed,
            unanswered: self.unanswered,
            ended_ns,
        }
    }

    fn gap(&mut self, text: String) {
        self.gaps.push(text.into());
    }

    async fn happening(&mut self, it: Happening) -> RunResult {
        match it {
            Happening::Worker(event) => {
                self.evidence.event(&event);
                self.clock_questions.answered(&event);
                self.worker_event(event).await;
            }
            Happening::Row(row) => {
                self.evidence.log_row(&row);
                let name = match row.outcome {
                    RowOutcome::Accepted => "write_accepted",
                    RowOutcome::Rejected => "write_rejected",
                    RowOutcome::Duplicate => return Ok(()),
                };
                self.event(RESOURCE, name, None).await;
            }
            Happening::NotAnEvent {
                worker,
                line,
                reason,
            } => {
                self.gap(format!(
                    "worker {worker} printed a line that is not an event ({reason}): {line}"
                ));
            }
            Happening::WorkerEnded { worker, stderr } => {
                self.running.remove(&worker);
                self.unanswered |= self.nemesis.ends(&worker);
                if !self.done.contains(worker.as_str()) && !self.nemesis.ends(&worker) {
                    let gap = format!("worker {worker} ended before it was done: {stderr}");
                    self.gap(gap.trim_end_matches([' ', ':']).to_owned());
                }
            }
            Happening::ServiceEnded { node, reason } => {
                return Err(RunError::ServiceEnded {
                    what: node.to_string(),
                    node,
                    log: reason,
                });
            }
        }
        Ok(())
    }

    async fn worker_event(&mut self, event: Event) {
        let worker = event.worker;
        match event.kind {
            // The harness's own gate before the first acquire, not one of the scenario's.
            EventKind::AtGate {
                gate: Gate::Start, ..
            } => return,
            EventKind::AtGate { gate, round } => {
                let key = (worker.clone(), gate, round);
                return self.event(&worker, "at_gate", Some(key)).await;
            }
            EventKind::Ready { .. } => {
                self.not_ready.remove(worker.as_str());
                if self.not_ready.is_empty() {
                    self.start_the_free().await;
                    self.event(SCENARIO, STARTED, None).await;
                }
            }
            EventKind::Done { .. } => {
                self.done.insert(worker.clone());
            }
            EventKind::Refused { reason } => {
                return self.gap(format!("worker {worker} refuses its task: {reason}"));
            }
            EventKind::Failed {
                during: Step::Write,
                ..
            } => self.unanswered = true,
            _ => {}
        }
        self.event(&worker, event.kind.name(), None).await;
    }

    /// Starts the workers without a `start` of their own, once all workers are ready.
    async fn start_the_free(&mut self) {
        let setup = self.setup;
        for worker in setup.workers.iter().filter(|w| w.start.is_none()) {
            self.open(&worker.name, Gate::Start, 0).await;
        }
    }

    /// Starts everything that an event triggers. A gate stays closed until every entry that is
    /// triggered by reaching it has begun all its steps.
    async fn event(&mut self, source: &str, name: &str, gate: Option<GateKey>) {
        self.seen.note(source, name);
        let mut holding = 0;
        for Due { after, what } in self.timeline.event(source, name) {
            match what {
                What::Start { worker } => self.open(&worker, Gate::Start, 0).await,
                What::Act {
                    name,
                    rounds,
                    until,
                } => {
                    // A resume lets a stopped worker go on, so it must find the gate open.
                    let mut acts = rounds.iter().flatten();
                    let holds_gate = acts.any(|act| !act.lets_go_on());
                    holding += usize::from(holds_gate);
                    let actor = Actor {
                        nemesis: Arc::clone(&self.nemesis),
                        name,
                        tell: self.tell.clone(),
                        entries: self.entries.clone(),
                        seen: self.seen.clone(),
                    };
                    let gate = gate.clone().filter(|_| holds_gate);
                    self.unfinished += 1;
                    let due = Rounds {
                        after,
                        rounds,
                        until,
                    };
                    self.acting.spawn(actor.carry_out(due, gate));
                }
            }
        }
        match gate {
            Some(gate) if holding == 0 => self.open(&gate.0, gate.1, gate.2).await,
            Some(gate) => {
                self.gates.insert(gate, holding);
            }
            None => {}
        }
    }

    async fn told(&mut self, told: Told) {
        match told {
            Told::Event { source, event } => self.event(&source, event, None).await,
            // Going on would mean waiting for events that this fault was to bring about.
            Told::Unproven(not_proven) => {
                let is_passed_over = self.is_search && not_proven.is_of_nothing;
                let NotProven { fault, text, .. } = not_proven;
                let text = format!("not proven: {text}");
                let gap = Gap { fault, text };
                match is_passed_over {
                    true => self.missed.push(gap),
                    false => self.gaps.push(gap),
                }
            }
            Told::Begun { gate } => {
                if let Some(gate) = gate
                    && let Some(holding) = self.gates.get_mut(&gate)
                {
                    *holding -= 1;
                    if *holding == 0 {
                        self.open(&gate.0, gate.1, gate.2).await;
                    }
                }
            }
            Told::Over => self.unfinished -= 1,
        }
    }

    /// Opens a gate. A worker that is gone cannot be told; its end reports that it is gone.
    async fn open(&mut self, worker: &str, gate: Gate, round: u32) {
        let _ = self.workers.open(worker, gate, round).await;
    }

    /// Returns whether all workers and entries have ended.
    fn is_quiet(&self) -> bool {
        let mut running = self.running.iter();
        // In a search, those whose start never comes are not waited for.
        let is_search = self.is_search && self.not_ready.is_empty();
        let is_left = |worker| is_search && self.timeline.holds(worker);
        self.unfinished == 0 && running.all(is_left)
    }

    /// Returns whether rows are awaited: the resource may report the last write after its worker
    /// has ended.
    fn waits_for_rows(&self) -> bool {
        let awaited = self.timeline.awaited();
        awaited.iter().any(|trigger| trigger.source == RESOURCE)
    }

    /// Returns what has not come yet, in words.
    fn awaited(&self) -> String {
        if !self.not_ready.is_empty() {
            return format!("waiting for {} to be ready", list(&self.not_ready));
        }
        let triggers = self.timeline.awaited().into_iter().cloned();
        let triggers = triggers.chain(self.seen.awaited());
        // An entry and one of its steps may wait for the same.
        let triggers = once_each(triggers.map(|trigger| trigger.to_string()));
        if triggers.is_empty() {
            return format!("waiting for {} to be done", list(&self.running));
        }
        format!("waiting for {}", triggers.join(", "))
    }
}

fn list(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    names.join(", ")
}
