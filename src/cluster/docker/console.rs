use super::engine::call;
use super::target::Target;
use crate::cluster::{ClusterError, Console, ConsoleLine, Stdin};
use bollard::container::LogOutput;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::StreamExt;
use tokio::sync::mpsc;

/// Lines that may wait for the orchestrator; a worker that prints more is slowed down.
const WAITING_LINES: usize = 1024;
/// A longer line is no event; it is cut so that it cannot fill the memory.
const LONGEST_LINE: usize = 64 * 1024;

/// Takes hold of a created container's stdin, stdout and stderr.
pub async fn attach(target: &Target) -> Result<Console, ClusterError> {
    let options = AttachContainerOptions {
        stream: true,
        stdin: true,
        stdout: true,
        stderr: true,
        ..Default::default()
    };
    let docker = target.docker();
    let attach = docker.attach_container(&target.container, Some(options));
    let mut attached = call(&format!("attach to {}", target.node), attach).await?;
    let (send, lines) = mpsc::channel(WAITING_LINES);
    // The task ends with the container's output or with the reader of the lines,
    // and with it our hold on the container: its stdin ends.
    tokio::spawn(async move {
        let (mut out, mut err) = (Lines::default(), Lines::default());
        loop {
            let chunk = tokio::select! {
                chunk = attached.output.next() => chunk,
                () = send.closed() => return,
            };
            let Some(Ok(chunk)) = chunk else { return };
            let whole: Vec<ConsoleLine> = match chunk {
                LogOutput::StdOut { message } => out
                    .take(&message)
                    .into_iter()
                    .map(ConsoleLine::Out)
                    .collect(),
                LogOutput::StdErr { message } => err
                    .take(&message)
                    .into_iter()
                    .map(ConsoleLine::Err)
                    .collect(),
                _ => Vec::new(),
            };
            for line in whole {
                if send.send(line).await.is_err() {
                    return;
                }
            }
        }
    });
    Ok(Console {
        stdin: Stdin(attached.input),
        lines,
    })
}

/// Puts chunks together into whole lines.
#[derive(Default)]
struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    fn take(&mut self, chunk: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(chunk);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]);
            lines.push(text.trim_end_matches('\r').to_owned());
        }
        self.rest.truncate(LONGEST_LINE);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_whole_lines() {
        let mut lines = Lines::default();
        assert!(lines.take(b"{\"a\"").is_empty());
        assert_eq!(
            lines.take(b":1}\n{\"b\":2}\nre"),
            ["{\"a\":1}", "{\"b\":2}"]
        );
        assert_eq!(lines.take(b"st\r\n"), ["rest"]);
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.take(&[b'x'; 4096]).is_empty());
        }
        assert!(lines.rest.len() <= LONGEST_LINE);
    }
}
