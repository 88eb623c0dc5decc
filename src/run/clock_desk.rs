//! Asks workers for their clocks over their consoles; they answer with an event.

use super::*;
use crate::faults::{ClockReading, Proof, WorkerClocks};
use crate::model::{EventKind, UnprovenReason};
use async_trait::async_trait;
use std::collections::HashMap;
use tokio::sync::oneshot;

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
const WAITING_QUESTIONS: usize = 16;

/// A worker that is asked for its clocks, and the sender for its answer.
pub struct ClockQuestion {
    pub worker: String,
    answer: oneshot::Sender<ClockReading>,
}

/// The end at which the nemesis asks.
pub struct ClockDesk {
    questions: mpsc::Sender<ClockQuestion>,
}

/// The end at which the drive receives the questions and delivers the answers.
pub struct ClockQuestions {
    questions: mpsc::Receiver<ClockQuestion>,
    asked: HashMap<String, Vec<oneshot::Sender<ClockReading>>>,
}

pub fn clock_desk() -> (ClockDesk, ClockQuestions) {
    let (send, questions) = mpsc::channel(WAITING_QUESTIONS);
    let asked = HashMap::new();
    (
        ClockDesk { questions: send },
        ClockQuestions { questions, asked },
    )
}

#[async_trait]
impl WorkerClocks for ClockDesk {
    async fn read(&self, worker: &Name) -> Proof<ClockReading> {
        let (answer, reading) = oneshot::channel();
        let question = ClockQuestion {
            worker: worker.to_string(),
            answer,
        };
        let failed = |error| UnprovenReason::Clock { error };
        let over = || failed(format!("{worker} cannot be asked any more"));
        let sent = self.questions.send(question).await;
        sent.map_err(|_| over())?;
        match tokio::time::timeout(ANSWER_DEADLINE, reading).await {
            Ok(reading) => reading.map_err(|_| over()),
            Err(_) => Err(failed(format!(
                "{worker} did not tell its clocks within {} s",
                ANSWER_DEADLINE.as_secs()
            ))),
        }
    }
}

impl ClockQuestions {
    pub async fn next(&mut self) -> Option<ClockQuestion> {
        self.questions.recv().await
    }

    /// Keeps a question until the worker's next clock event, which answers it.
    pub fn asked(&mut self, question: ClockQuestion) {
        let waiting = self.asked.entry(question.worker).or_default();
        waiting.push(question.answer);
    }

    pub fn answered(&mut self, event: &Event) {
        let EventKind::Clock {
            realtime_ns,
            monotonic_ns,
        } = event.kind
        else {
            return;
        };
        for waiting in self.asked.remove(&event.worker).unwrap_or_default() {
            // The asker may have given up.
            let _ = waiting.send(ClockReading {
                raw_ns: event.at_ns,
                realtime_ns,
                monotonic_ns,
            });
        }
    }
}
