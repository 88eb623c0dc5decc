//! The middle of a case: events come in, the timeline says what is due, the
//! nemesis does it, gates open. Ends when every worker has ended, when
//! something cannot be proven, or at the deadline, naming what did not come.

use super::RunError;
use super::evidence::Evidence;
use super::workers::Workers;
use crate::fault::Nemesis;
use crate::model::{Event, EventKind, Gate, LogRow, RowOutcome, format_duration};
use crate::progress::Task;
use crate::scenario::timeline::{Due, Step, Timeline};
use crate::scenario::{Action, Scenario};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// What can happen while a case runs.
#[derive(Debug)]
pub enum Happening {
    Worker(Event),
    NotAnEvent {
        worker: String,
        line: String,
        reason: String,
    },
    WorkerEnded {
        worker: String,
        stderr: String,
    },
    Row(LogRow),
    ServiceEnded {
        node: String,
        reason: String,
    },
}

/// One closed gate: which worker stands at it, and in which round.
type GateKey = (String, Gate, u32);

pub struct Drive<'a> {
    pub scenario: &'a Scenario,
    pub workers: Workers,
    pub nemesis: Arc<Nemesis>,
    pub evidence: &'a Evidence,
    pub happenings: mpsc::Receiver<Happening>,
    pub task: &'a dyn Task,
}

struct ActionDone {
    action: Action,
    gate: Option<GateKey>,
    proof: Result<(), String>,
}

struct State {
    timeline: Timeline,
    actions: JoinSet<ActionDone>,
    /// How many actions that hang on reaching a gate are still to be done.
    gates: HashMap<GateKey, usize>,
    not_ready: BTreeSet<String>,
    running: BTreeSet<String>,
    done: BTreeSet<String>,
    gaps: Vec<String>,
}

impl Drive<'_> {
    /// Returns why the record is incomplete, where it is.
    pub async fn run(mut self) -> Result<Vec<String>, RunError> {
        let names: BTreeSet<String> = self.workers.names().cloned().collect();
        let mut state = State {
            timeline: Timeline::new(self.scenario),
            actions: JoinSet::new(),
            gates: HashMap::new(),
            not_ready: names.clone(),
            running: names,
            done: BTreeSet::new(),
            gaps: Vec::new(),
        };
        let give_up_at = Instant::now() + self.scenario.deadline;
        while state.gaps.is_empty() && !(state.running.is_empty() && state.actions.is_empty()) {
            self.task.detail(&state.awaited());
            tokio::select! {
                () = tokio::time::sleep_until(give_up_at) => {
                    let limit = format_duration(self.scenario.deadline);
                    let gap = format!("gave up after {limit}: {}", state.awaited());
                    state.gaps.push(gap);
                }
                Some(done) = state.actions.join_next() => {
                    let done = done.expect("an action neither panics nor is aborted");
                    self.action_done(&mut state, done).await;
                }
                Some(happening) = self.happenings.recv() => {
                    self.happening(&mut state, happening).await?;
                }
            }
            self.evidence.check()?;
        }
        if state.gaps.is_empty() {
            let never = state.timeline.awaited();
            let never = never
                .iter()
                .map(|trigger| format!("`{trigger}` never came"));
            state.gaps.extend(never);
        }
        Ok(state.gaps)
    }

    async fn happening(&mut self, state: &mut State, it: Happening) -> Result<(), RunError> {
        match it {
            Happening::Worker(event) => {
                self.evidence.event(&event);
                self.worker_event(state, event).await;
            }
            Happening::Row(row) => {
                self.evidence.log_row(&row);
                let name = match row.outcome {
                    RowOutcome::Accepted => "write_accepted",
                    RowOutcome::Rejected => "write_rejected",
                    RowOutcome::Duplicate => return Ok(()),
                };
                self.event(state, "resource", name, None).await;
            }
            Happening::NotAnEvent {
                worker,
                line,
                reason,
            } => state.gaps.push(format!(
                "worker {worker} printed a line that is no event ({reason}): {line}"
            )),
            Happening::WorkerEnded { worker, stderr } => {
                state.running.remove(&worker);
                if !state.done.contains(&worker) {
                    let gap = format!("worker {worker} ended before it was done: {stderr}");
                    state.gaps.push(gap.trim_end_matches([' ', ':']).to_owned());
                }
            }
            Happening::ServiceEnded { node, reason } => {
                return Err(RunError::ServiceEnded {
                    what: node,
                    log: reason,
                });
            }
        }
        Ok(())
    }

    async fn worker_event(&mut self, state: &mut State, event: Event) {
        let worker = event.worker;
        match event.kind {
            // The harness's own gate, before the first acquire: not one of the scenario's.
            EventKind::AtGate {
                gate: Gate::Start, ..
            } => return,
            EventKind::AtGate { gate, round } => {
                let key = (worker.clone(), gate, round);
                return self.event(state, &worker, "at_gate", Some(key)).await;
            }
            EventKind::Ready => {
                state.not_ready.remove(&worker);
                if state.not_ready.is_empty() {
                    self.start_the_free().await;
                }
            }
            EventKind::Done { .. } => {
                state.done.insert(worker.clone());
            }
            _ => {}
        }
        self.event(state, &worker, event.kind.name(), None).await;
    }

    /// Workers without a `start` of their own go once everybody is ready.
    async fn start_the_free(&mut self) {
        let scenario = self.scenario;
        for worker in scenario.workers.iter().filter(|w| w.start.is_none()) {
            self.open(&worker.name, Gate::Start, 0).await;
        }
    }

    /// Sets off what hangs on an event. A gate stays closed until everything
    /// that hangs on reaching it has been done.
    async fn event(&mut self, state: &mut State, source: &str, name: &str, gate: Option<GateKey>) {
        let mut hanging = 0;
        for Due { after, step } in state.timeline.event(source, name) {
            match step {
                Step::Start { worker } => self.open(&worker, Gate::Start, 0).await,
                Step::Fault { action } => {
                    // A resume lets a stopped worker go on, so it finds the gate open.
                    let holds_gate = matches!(action, Action::Pause { .. });
                    hanging += usize::from(holds_gate);
                    let gate = gate.clone().filter(|_| holds_gate);
                    self.spawn(state, action, after, gate);
                }
            }
        }
        match gate {
            Some(gate) if hanging == 0 => self.open(&gate.0, gate.1, gate.2).await,
            Some(gate) => {
                state.gates.insert(gate, hanging);
            }
            None => {}
        }
    }

    fn spawn(&self, state: &mut State, action: Action, after: Duration, gate: Option<GateKey>) {
        let nemesis = Arc::clone(&self.nemesis);
        state.actions.spawn(async move {
            tokio::time::sleep(after).await;
            let proof = match &action {
                Action::Pause {
                    target,
                    longer_than,
                    ..
                } => nemesis.pause(target, *longer_than).await,
                Action::Resume { target } => nemesis.resume(target).await,
            };
            ActionDone {
                action,
                gate,
                proof,
            }
        });
    }

    async fn action_done(&mut self, state: &mut State, done: ActionDone) {
        if let Err(reason) = done.proof {
            // Going on would wait for events that this fault was to bring about.
            state.gaps.push(format!("not proven: {reason}"));
            return;
        }
        if let Some(gate) = done.gate
            && let Some(hanging) = state.gates.get_mut(&gate)
        {
            *hanging -= 1;
            if *hanging == 0 {
                self.open(&gate.0, gate.1, gate.2).await;
            }
        }
        let name = match &done.action {
            Action::Pause {
                target, lasting, ..
            } => {
                if let Some(lasting) = lasting {
                    let target = target.clone();
                    self.spawn(state, Action::Resume { target }, *lasting, None);
                }
                "paused"
            }
            Action::Resume { .. } => "resumed",
        };
        self.event(state, done.action.target(), name, None).await;
    }

    /// A worker that is gone cannot be told; that it is gone is reported by its end.
    async fn open(&mut self, worker: &str, gate: Gate, round: u32) {
        let _ = self.workers.open(worker, gate, round).await;
    }
}

impl State {
    /// What has not come yet, in words.
    fn awaited(&self) -> String {
        if !self.not_ready.is_empty() {
            return format!("waiting for {} to be ready", list(&self.not_ready));
        }
        let triggers: Vec<String> = self
            .timeline
            .awaited()
            .iter()
            .map(|trigger| trigger.to_string())
            .collect();
        match triggers.is_empty() {
            true => format!("waiting for {} to be done", list(&self.running)),
            false => format!("waiting for {}", triggers.join(", ")),
        }
    }
}

fn list(names: &BTreeSet<String>) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.join(", ")
}
