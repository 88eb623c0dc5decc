//! The middle of a case: events come in, the timeline says what is due, the
//! nemesis does it, gates open. Ends when every worker has ended, when
//! something cannot be proven, or at the deadline, naming what did not come.

use super::RunError;
use super::acts::{Actor, Entries, Rounds, Told};
use super::clock_desk::ClockQuestions;
use super::evidence::Evidence;
use super::seen::Seen;
use super::workers::Workers;
use crate::clock::raw_monotonic_ns;
use crate::fault::{Nemesis, NotProven};
use crate::model::{Event, EventKind, Gap, Gate, LogRow, Name, RowOutcome, Step, format_duration};
use crate::progress::Task;
use crate::scenario::Setup;
use crate::scenario::timeline::{Due, Timeline, What};
use crate::scenario::trigger::{RESOURCE, SCENARIO, STARTED};
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

/// How long the resource's last rows may take.
const LAST_ROWS: Duration = Duration::from_secs(2);

/// One closed gate: which worker stands at it, and in which round.
pub type GateKey = (String, Gate, u32);

pub struct Drive<'a> {
    pub setup: &'a Setup,
    pub workers: Workers,
    pub nemesis: Arc<Nemesis>,
    pub evidence: &'a Evidence,
    pub happenings: mpsc::Receiver<Happening>,
    pub clock_questions: ClockQuestions,
    pub task: &'a dyn Task,
}

/// What a drive leaves to be done and said.
pub struct Driven {
    /// Why the record is incomplete, where it is.
    pub gaps: Vec<Gap>,
    /// Some write may still be under way.
    pub unanswered: bool,
    /// When the last thing that is recorded of the workers had come in.
    pub ended_ns: u64,
}

struct State {
    timeline: Timeline,
    /// The entries that are being carried out; they end with the drive.
    acting: JoinSet<()>,
    /// How many of them have not told their last.
    unfinished: usize,
    tell: mpsc::UnboundedSender<Told>,
    told: mpsc::UnboundedReceiver<Told>,
    entries: Entries,
    seen: Seen,
    /// How many entries that hang on reaching a gate are still to begin.
    gates: HashMap<GateKey, usize>,
    not_ready: BTreeSet<Name>,
    running: BTreeSet<Name>,
    done: BTreeSet<String>,
    gaps: Vec<Gap>,
    unanswered: bool,
}

impl Drive<'_> {
    pub async fn run(mut self, timeline: Timeline) -> Result<Driven, RunError> {
        let names: BTreeSet<Name> = self.workers.names().cloned().collect();
        let (tell, told) = mpsc::unbounded_channel();
        let mut state = State {
            timeline,
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
            unanswered: false,
        };
        let give_up_at = Instant::now() + self.setup.deadline;
        let mut last_rows_by = None;
        while state.gaps.is_empty() && (!state.is_quiet() || state.waits_for_rows()) {
            self.task.detail(&state.awaited());
            if state.is_quiet() {
                last_rows_by.get_or_insert(Instant::now() + LAST_ROWS);
            }
            tokio::select! {
                () = tokio::time::sleep_until(last_rows_by.unwrap_or(give_up_at)),
                    if last_rows_by.is_some() => break,
                () = tokio::time::sleep_until(give_up_at) => {
                    let limit = format_duration(self.setup.deadline);
                    let gap = format!("gave up after {limit}: {}", state.awaited());
                    state.gaps.push(gap.into());
                }
                Some(told) = state.told.recv() => self.told(&mut state, told).await,
                Some(question) = self.clock_questions.next() => {
                    // A worker that cannot be asked is one that does not answer.
                    let _ = self.workers.ask_clock(&question.worker).await;
                    self.clock_questions.asked(question);
                }
                Some(happening) = self.happenings.recv() => {
                    self.happening(&mut state, happening).await?;
                }
            }
            self.evidence.check()?;
        }
        let ended_ns = raw_monotonic_ns();
        // What is half done is waited for: healing comes next.
        state.acting.shutdown().await;
        if state.gaps.is_empty() {
            let never = state.timeline.awaited();
            let never = never
                .iter()
                .map(|trigger| Gap::from(format!("`{trigger}` never came")));
            state.gaps.extend(never);
        }
        Ok(Driven {
            gaps: state.gaps,
            unanswered: state.unanswered,
            ended_ns,
        })
    }

    async fn happening(&mut self, state: &mut State, it: Happening) -> Result<(), RunError> {
        match it {
            Happening::Worker(event) => {
                self.evidence.event(&event);
                self.clock_questions.answered(&event);
                self.worker_event(state, event).await;
            }
            Happening::Row(row) => {
                self.evidence.log_row(&row);
                let name = match row.outcome {
                    RowOutcome::Accepted => "write_accepted",
                    RowOutcome::Rejected => "write_rejected",
                    RowOutcome::Duplicate => return Ok(()),
                };
                self.event(state, RESOURCE, name, None).await;
            }
            Happening::NotAnEvent {
                worker,
                line,
                reason,
            } => {
                let gap =
                    format!("worker {worker} printed a line that is no event ({reason}): {line}");
                state.gaps.push(gap.into());
            }
            Happening::WorkerEnded { worker, stderr } => {
                state.running.remove(&worker);
                state.unanswered |= self.nemesis.ends(&worker);
                if !state.done.contains(worker.as_str()) && !self.nemesis.ends(&worker) {
                    let gap = format!("worker {worker} ended before it was done: {stderr}");
                    let gap = gap.trim_end_matches([' ', ':']).to_owned();
                    state.gaps.push(gap.into());
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
            EventKind::Ready { .. } => {
                state.not_ready.remove(worker.as_str());
                if state.not_ready.is_empty() {
                    self.start_the_free().await;
                    self.event(state, SCENARIO, STARTED, None).await;
                }
            }
            EventKind::Done { .. } => {
                state.done.insert(worker.clone());
            }
            EventKind::Failed {
                during: Step::Write,
                ..
            } => state.unanswered = true,
            _ => {}
        }
        self.event(state, &worker, event.kind.name(), None).await;
    }

    /// Workers without a `start` of their own go once everybody is ready.
    async fn start_the_free(&mut self) {
        let setup = self.setup;
        for worker in setup.workers.iter().filter(|w| w.start.is_none()) {
            self.open(&worker.name, Gate::Start, 0).await;
        }
    }

    /// Sets off what hangs on an event. A gate stays closed until everything
    /// that hangs on reaching it has been done.
    async fn event(&mut self, state: &mut State, source: &str, name: &str, gate: Option<GateKey>) {
        state.seen.note(source, name);
        let mut hanging = 0;
        for Due { after, what } in state.timeline.event(source, name) {
            match what {
                What::Start { worker } => self.open(&worker, Gate::Start, 0).await,
                What::Act {
                    name,
                    rounds,
                    until,
                } => {
                    // A resume lets a stopped worker go on, so it finds the gate open.
                    let mut acts = rounds.iter().flatten();
                    let holds_gate = acts.any(|act| !act.lets_go_on());
                    hanging += usize::from(holds_gate);
                    let actor = Actor {
                        nemesis: Arc::clone(&self.nemesis),
                        name,
                        tell: state.tell.clone(),
                        entries: state.entries.clone(),
                        seen: state.seen.clone(),
                    };
                    let gate = gate.clone().filter(|_| holds_gate);
                    state.unfinished += 1;
                    let due = Rounds {
                        after,
                        rounds,
                        until,
                    };
                    state.acting.spawn(actor.carry_out(due, gate));
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

    async fn told(&mut self, state: &mut State, told: Told) {
        match told {
            Told::Event { source, event } => self.event(state, &source, event, None).await,
            // Going on would wait for events that this fault was to bring about.
            Told::Unproven(NotProven { fault, text }) => state.gaps.push(Gap {
                fault,
                text: format!("not proven: {text}"),
            }),
            Told::Begun { gate } => {
                if let Some(gate) = gate
                    && let Some(hanging) = state.gates.get_mut(&gate)
                {
                    *hanging -= 1;
                    if *hanging == 0 {
                        self.open(&gate.0, gate.1, gate.2).await;
                    }
                }
            }
            Told::Over => state.unfinished -= 1,
        }
    }

    /// A worker that is gone cannot be told; that it is gone is reported by its end.
    async fn open(&mut self, worker: &str, gate: Gate, round: u32) {
        let _ = self.workers.open(worker, gate, round).await;
    }
}

impl State {
    /// Nobody does anything any more.
    fn is_quiet(&self) -> bool {
        self.running.is_empty() && self.unfinished == 0
    }

    /// The resource may tell of the last write after its worker has ended.
    fn waits_for_rows(&self) -> bool {
        let awaited = self.timeline.awaited();
        awaited.iter().any(|trigger| trigger.source == RESOURCE)
    }

    /// What has not come yet, in words.
    fn awaited(&self) -> String {
        if !self.not_ready.is_empty() {
            return format!("waiting for {} to be ready", list(&self.not_ready));
        }
        let triggers = self.timeline.awaited().into_iter().cloned();
        let triggers = triggers.chain(self.seen.awaited());
        let triggers: Vec<String> = triggers.map(|trigger| trigger.to_string()).collect();
        match triggers.is_empty() {
            true => format!("waiting for {} to be done", list(&self.running)),
            false => format!("waiting for {}", triggers.join(", ")),
        }
    }
}

fn list(names: &BTreeSet<Name>) -> String {
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    names.join(", ")
}
