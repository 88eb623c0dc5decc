use crate::clock::{own_clocks_ns, raw_monotonic_ns};
use crate::model::{Event, EventKind, Gate};
use serde::Deserialize;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::Mutex;
use tokio::sync::{mpsc, watch};

/// The writer of events, which report what the worker does: one JSON object per line, flushed.
///
/// It writes synchronously, so a cancelled round never tears a line. A harness that does not
/// read blocks its worker.
pub(super) struct Emitter {
    worker: String,
    out: Mutex<Box<dyn Write + Send>>,
}

impl Emitter {
    pub(super) fn new(worker: &str, out: impl Write + Send + 'static) -> Emitter {
        Emitter {
            worker: worker.to_owned(),
            out: Mutex::new(Box::new(out)),
        }
    }

    pub(super) fn emit(&self, kind: EventKind) -> io::Result<()> {
        let mut out = self.out.lock().expect("no writer panics in between");
        // The time is read under the lock, so that the lines are in order of time.
        let event = Event {
            at_ns: raw_monotonic_ns(),
            worker: self.worker.clone(),
            kind,
        };
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        out.write_all(&line)?;
        out.flush()
    }
}

/// The gates that a `go` has opened, each for one round.
///
/// A `go` that arrives before the worker reaches the gate is kept.
pub(super) struct Gates {
    stops_at: Vec<Gate>,
    opened: watch::Receiver<HashSet<(Gate, u32)>>,
}

impl Gates {
    /// Returns the gates, and the reader that opens them and answers questions. The reader must
    /// be polled beside the work; it completes when the input has ended.
    pub(super) fn new(
        stops_at: &[Gate],
        lines: mpsc::Receiver<String>,
        emitter: &Emitter,
    ) -> (Gates, impl Future<Output = ()>) {
        let (opener, opened) = watch::channel(HashSet::new());
        let gates = Gates {
            stops_at: stops_at.to_owned(),
            opened,
        };
        (gates, read_lines(lines, opener, emitter))
    }

    /// Waits until the gate is open; returns at once if the worker does not stop at it.
    ///
    /// The wait is for the harness and has no deadline of its own: the end of the input ends it.
    pub(super) async fn pass(&self, gate: Gate, round: u32, emitter: &Emitter) -> io::Result<()> {
        if !self.stops_at.contains(&gate) {
            return Ok(());
        }
        emitter.emit(EventKind::AtGate { round, gate })?;
        let mut opened = self.opened.clone();
        let go = opened.wait_for(|opened| opened.contains(&(gate, round)));
        if go.await.is_err() {
            // The reader is gone: the input has ended, and so will the worker.
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

async fn read_lines(
    mut lines: mpsc::Receiver<String>,
    opener: watch::Sender<HashSet<(Gate, u32)>>,
    emitter: &Emitter,
) {
    while let Some(line) = lines.recv().await {
        match serde_json::from_str::<Order>(&line) {
            Ok(Order::Go { go, round }) => opener.send_modify(|opened| {
                opened.insert((go, round));
            }),
            Ok(Order::Tell {
                tell: Subject::Clock,
            }) => {
                let (realtime_ns, monotonic_ns) = own_clocks_ns();
                // If the output is gone, the next event of a round shows it.
                let _ = emitter.emit(EventKind::Clock {
                    realtime_ns,
                    monotonic_ns,
                });
            }
            Err(error) => eprintln!("fencepost worker: ignored {line:?} on stdin: {error}"),
        }
    }
}

/// An order that the harness can send on stdin.
#[derive(Deserialize)]
#[serde(untagged)]
enum Order {
    /// `{"go":"before_write","round":1}`
    Go { go: Gate, round: u32 },
    /// `{"tell":"clock"}`
    Tell { tell: Subject },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Subject {
    Clock,
}

/// The longest part of a line that is read. Every order is far shorter.
const MAX_LINE_BYTES: usize = 4096;

/// Returns the lines of stdin, read by a separate thread.
///
/// Tokio's stdin would keep the runtime from ending during a read; this thread simply ends with
/// the process.
pub(super) fn stdin_lines() -> mpsc::Receiver<String> {
    let (tx, rx) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        while let Ok(Some(line)) = bounded_io::cut_line(&mut stdin, MAX_LINE_BYTES) {
            let line = String::from_utf8_lossy(&line).trim().to_owned();
            if !line.is_empty() && tx.blocking_send(line).is_err() {
                return;
            }
        }
    });
    rx
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn a_gate_opens_for_its_own_round_only() {
        let (tx, rx) = mpsc::channel(8);
        let emitter: &'static Emitter = Box::leak(Box::new(Emitter::new("a", io::sink())));
        let (gates, reader) = Gates::new(&[Gate::BeforeWrite], rx, emitter);
        tokio::spawn(reader);
        for line in ["nonsense", r#"{"go":"before_write","round":2}"#] {
            tx.send(line.to_owned()).await.unwrap();
        }
        let pass = |gate, round| timeout(SHORT, gates.pass(gate, round, emitter));
        assert!(pass(Gate::BeforeRelease, 1).await.is_ok(), "no stop there");
        assert!(pass(Gate::BeforeWrite, 1).await.is_err(), "round 2 is open");
        assert!(pass(Gate::BeforeWrite, 2).await.is_ok(), "open in advance");
    }

    #[tokio::test]
    async fn the_end_of_the_input_ends_the_reader_and_opens_nothing() {
        let (tx, rx) = mpsc::channel(8);
        let emitter = Emitter::new("a", io::sink());
        let (gates, reader) = Gates::new(&[Gate::Start], rx, &emitter);
        drop(tx);
        timeout(SHORT, reader).await.expect("the reader ends");
        let pass = gates.pass(Gate::Start, 0, &emitter);
        assert!(timeout(SHORT, pass).await.is_err());
    }
}
