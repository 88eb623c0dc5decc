//! One worker from its start to its end, line by line.

use super::grammar::{Grammar, Misfit, Task};
use super::{Declared, Finding, Wrong};
use crate::clock::raw_monotonic_ns;
use crate::cluster::{Cluster, Console, ConsoleLine, LastLines};
use crate::model::{Event, EventKind, Gate, Name};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a worker may take for its next line. Starting an interpreter in a container on a busy
/// machine is the slowest of all.
const NEXT_LINE: Duration = Duration::from_secs(20);
/// How long a check may take. The longest of them takes some seconds.
const CHECK: Duration = Duration::from_secs(90);
/// How long it may take to end, once it is done or its input has ended.
const END: Duration = Duration::from_secs(5);

pub struct Conversation {
    node: Name,
    console: Console,
    grammar: Grammar,
    stderr: LastLines,
    over_at: Instant,
    pub heard: Vec<Heard>,
    pub declared: Declared,
}

#[derive(Clone, Debug)]
pub struct Heard {
    pub text: String,
    pub event: EventKind,
    pub at_ns: u64,
}

/// Why a check ended before its end.
pub enum Ended {
    Wrong(Box<Wrong>),
    NotOffered(String),
    NotSeen(String),
}

impl From<Ended> for Finding {
    fn from(ended: Ended) -> Finding {
        match ended {
            Ended::Wrong(wrong) => Finding::Failed(*wrong),
            Ended::NotOffered(reason) => Finding::NotOffered { reason },
            Ended::NotSeen(reason) => Finding::NotSeen { reason },
        }
    }
}

pub type Talk<T = ()> = Result<T, Ended>;

impl Conversation {
    /// `started_ns` is a moment before the worker was started.
    pub fn new(node: Name, console: Console, task: Task, started_ns: u64) -> Conversation {
        Conversation {
            node,
            console,
            grammar: Grammar::new(task, started_ns),
            stderr: LastLines::default(),
            over_at: Instant::now() + CHECK,
            heard: Vec::new(),
            declared: Declared::default(),
        }
    }

    /// Reads up to an event that is wanted. Each line on the way has to fit.
    pub async fn until(&mut self, wanted: impl Fn(&EventKind) -> bool) -> Talk<Heard> {
        loop {
            let heard = self.next().await?;
            // Lines that are there already are read without waiting.
            if Instant::now() > self.over_at {
                return Err(self.not_over());
            }
            if wanted(&heard.event) {
                return Ok(heard);
            }
            if let EventKind::Done { .. } = heard.event {
                return Err(self.wrong_last("it is done already", self.grammar.expected()));
            }
        }
    }

    pub async fn until_named(&mut self, name: &str) -> Talk<Heard> {
        self.until(|kind| kind.name() == name).await
    }

    pub async fn until_gate(&mut self, wanted: Gate) -> Talk<Heard> {
        self.until(|kind| matches!(kind, EventKind::AtGate { gate, .. } if *gate == wanted))
            .await
    }

    /// Opens the gate that the worker stands at.
    pub async fn go(&mut self, gate: Gate, round: u32) -> Talk {
        self.grammar.opened(raw_monotonic_ns());
        self.say(&format!("{{\"go\":\"{gate}\",\"round\":{round}}}"))
            .await
    }

    pub async fn pass(&mut self, gate: Gate, round: u32) -> Talk {
        self.until_gate(gate).await?;
        self.go(gate, round).await
    }

    pub async fn ask_clock(&mut self) -> Talk {
        self.grammar.asked_clock();
        self.say("{\"tell\":\"clock\"}").await
    }

    /// Reads up to `done`, and the end of the process behind it.
    pub async fn until_over(&mut self) -> Talk {
        self.until_named("done").await?;
        self.until_ended().await
    }

    pub async fn until_ended(&mut self) -> Talk {
        let rest = async {
            while let Some(line) = self.console.lines.recv().await {
                match line {
                    ConsoleLine::Err(line) => self.stderr.push(line),
                    ConsoleLine::Out(line) => return Some(line),
                }
            }
            None
        };
        match timeout(END, rest).await {
            Ok(None) => Ok(()),
            Ok(Some(line)) => {
                Err(self.wrong(line, "a line after the last one".into(), "nothing".into()))
            }
            Err(_) => {
                let seconds = END.as_secs();
                Err(self.wrong_last(
                    &format!("the process still runs {seconds} s later"),
                    "a worker that ends when it is done, and when its stdin ends".into(),
                ))
            }
        }
    }

    /// Lets go of its console, and waits for its end.
    pub async fn hang_up(self, cluster: &dyn Cluster) -> Talk {
        let seconds = END.as_secs();
        let wrong = self.wrong_last(
            &format!("the process still runs {seconds} s after its stdin ended"),
            "a worker that ends when its stdin ends: whoever started it is gone".into(),
        );
        let Conversation { node, console, .. } = self;
        drop(console);
        match timeout(END, cluster.await_end(&node)).await {
            Ok(ended) => ended.map_err(|error| Ended::NotSeen(error.to_string())),
            Err(_) => Err(wrong),
        }
    }

    async fn say(&mut self, line: &str) -> Talk {
        match self.console.stdin.say(line).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.wrong_last(
                &format!("it does not read its stdin: {error}"),
                format!("a worker that reads {line}"),
            )),
        }
    }

    /// Reads the next line.
    pub async fn next(&mut self) -> Talk<Heard> {
        let at = self.over_at.min(Instant::now() + NEXT_LINE);
        let text = match timeout_at(at, self.next_text()).await {
            Ok(Some(text)) => text,
            Ok(None) => {
                let expected = self.grammar.expected();
                return Err(self.wrong_last("the process ended", expected));
            }
            Err(_) if at == self.over_at => return Err(self.not_over()),
            Err(_) => {
                let seconds = NEXT_LINE.as_secs();
                let problem = format!(
                    "nothing came for {seconds} s (is its stdout flushed after each line?)"
                );
                let expected = self.grammar.expected();
                return Err(self.wrong_last(&problem, expected));
            }
        };
        let now_ns = raw_monotonic_ns();
        let event = match serde_json::from_str::<Event>(&text) {
            Ok(event) => event,
            Err(error) => {
                let problem = format!("not an event: {error}");
                let expected = format!(
                    "{}, as one JSON object with `at_ns` and `event`",
                    self.grammar.expected()
                );
                return Err(self.wrong(text, problem, expected));
            }
        };
        let heard = Heard {
            text,
            at_ns: event.at_ns,
            event: event.kind.clone(),
        };
        if let Err(Misfit { problem, expected }) = self.grammar.take(&event, now_ns) {
            return Err(self.wrong(heard.text, problem, expected));
        }
        self.heard.push(heard.clone());
        match event.kind {
            EventKind::Ready { lacks, only } => self.declared = Declared { lacks, only },
            EventKind::Refused { reason } => return Err(Ended::NotOffered(reason)),
            _ => {}
        }
        Ok(heard)
    }

    fn not_over(&self) -> Ended {
        let problem = format!("it goes on {} s after its start", CHECK.as_secs());
        let expected = "a worker that plays FENCEPOST_ROUNDS rounds, says `done` and ends";
        self.wrong_last(&problem, expected.into())
    }

    async fn next_text(&mut self) -> Option<String> {
        loop {
            match self.console.lines.recv().await? {
                ConsoleLine::Out(line) => return Some(line),
                ConsoleLine::Err(line) => self.stderr.push(line),
            }
        }
    }

    /// A mistake in a line that has just come.
    fn wrong(&self, text: String, problem: String, expected: String) -> Ended {
        Ended::Wrong(Box::new(Wrong {
            line: Some(self.heard.len() + 1),
            text,
            problem,
            expected,
            stderr: self.stderr.joined(),
        }))
    }

    /// A mistake after the last line that came.
    pub fn wrong_last(&self, problem: &str, expected: String) -> Ended {
        let last = self.heard.last();
        Ended::Wrong(Box::new(Wrong {
            line: last.map(|_| self.heard.len()),
            text: last.map(|heard| heard.text.clone()).unwrap_or_default(),
            problem: problem.to_owned(),
            expected,
            stderr: self.stderr.joined(),
        }))
    }

    /// A mistake that showed later, in the line of this event.
    pub fn wrong_in(&self, name: &str, problem: String, expected: String) -> Ended {
        let line = self
            .heard
            .iter()
            .rposition(|heard| heard.event.name() == name);
        Ended::Wrong(Box::new(Wrong {
            line: line.map(|line| line + 1),
            text: line
                .map(|line| self.heard[line].text.clone())
                .unwrap_or_default(),
            problem,
            expected,
            stderr: self.stderr.joined(),
        }))
    }
}
