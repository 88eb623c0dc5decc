//! The workers of a case: reads their consoles into happenings, and opens their gates.

use super::drive::Happening;
use super::*;
use crate::cluster::{Console, ConsoleLine, LastLines, Stdin};
use crate::model::Gate;

/// The open stdin of every worker. Dropping it ends them.
#[derive(Default)]
pub struct Workers {
    stdin: BTreeMap<Name, Stdin>,
}

impl Workers {
    /// Takes over a worker's console: its events become happenings until it ends.
    pub fn add(&mut self, name: &Name, console: Console, happenings: mpsc::Sender<Happening>) {
        self.stdin.insert(name.clone(), console.stdin);
        let worker = name.clone();
        // The task ends with the worker's output, or with the reader of the happenings.
        tokio::spawn(read_lines(worker, console.lines, happenings));
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.stdin.keys()
    }

    /// Writes the `go` line. A stopped worker reads it when it is continued.
    pub async fn open(&mut self, worker: &str, gate: Gate, round: u32) -> std::io::Result<()> {
        let Some(stdin) = self.stdin.get_mut(worker) else {
            return Ok(());
        };
        let go = format!("{{\"go\":\"{gate}\",\"round\":{round}}}");
        stdin.say(&go).await
    }

    /// Asks a worker for its clocks; the answer is an event.
    pub async fn ask_clock(&mut self, worker: &str) -> std::io::Result<()> {
        match self.stdin.get_mut(worker) {
            Some(stdin) => stdin.say("{\"tell\":\"clock\"}").await,
            None => Ok(()),
        }
    }
}

async fn read_lines(
    worker: Name,
    mut lines: mpsc::Receiver<ConsoleLine>,
    happenings: mpsc::Sender<Happening>,
) {
    // Kept for the message about a worker that ended too early.
    let mut stderr = LastLines::default();
    while let Some(line) = lines.recv().await {
        let happening = match line {
            ConsoleLine::Out(line) => match serde_json::from_str::<Event>(&line) {
                Ok(mut event) => {
                    event.worker = worker.to_string();
                    Happening::Worker(event)
                }
                Err(error) => Happening::NotAnEvent {
                    worker: worker.clone(),
                    line,
                    reason: error.to_string(),
                },
            },
            ConsoleLine::Err(line) => {
                stderr.push(line);
                continue;
            }
        };
        if happenings.send(happening).await.is_err() {
            return;
        }
    }
    let ended = Happening::WorkerEnded {
        worker,
        stderr: stderr.joined(),
    };
    // Nobody listens any more once the case is over.
    let _ = happenings.send(ended).await;
}
