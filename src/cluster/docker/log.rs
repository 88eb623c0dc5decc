//! The output of a container, so far and to come.

use super::engine::{failed, is_not_found};
use super::*;
use crate::cluster::LastLines;
use bollard::container::LogOutput;
use bollard::models::ContainerState;
use bollard::query_parameters::LogsOptions;

const READY_DEADLINE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct ContainerOutput {
    /// Both streams, in their order.
    pub all: String,
    pub stdout: String,
    pub stderr: String,
}

impl Target {
    pub async fn printed(&self) -> ClusterResult<ContainerOutput> {
        let options = LogsOptions {
            stdout: true,
            stderr: true,
            ..Default::default()
        };
        let mut stream = self.docker().logs(&self.container, Some(options));
        let collect = async {
            let mut printed = ContainerOutput::default();
            while let Some(chunk) = stream.next().await {
                let (message, is_stdout) = match chunk {
                    Ok(LogOutput::StdOut { message }) => (message, true),
                    Ok(LogOutput::StdErr { message }) => (message, false),
                    Ok(_) => continue,
                    Err(error) if is_not_found(&error) => break,
                    Err(error) => return Err(error),
                };
                let text = String::from_utf8_lossy(&message);
                printed.all.push_str(&text);
                if is_stdout {
                    printed.stdout.push_str(&text)
                } else {
                    printed.stderr.push_str(&text)
                }
            }
            Ok(printed)
        };
        call(&format!("read the log of {}", self.node), collect).await
    }

    /// Waits until the log has a line with this text from the present process. The log is followed,
    /// not polled, and its end means that the process ended.
    pub async fn await_said(&self, wanted: &str) -> ClusterResult {
        let seen = async {
            let found = self.inspect(&format!("look at {}", self.node)).await?;
            let earlier = end_of_earlier_life(found.state.unwrap_or_default());
            self.follow(wanted, &earlier).await
        };
        let reason = match tokio::time::timeout(READY_DEADLINE, seen).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!(
                "no log line with `{wanted}` within {} s",
                READY_DEADLINE.as_secs()
            ),
        };
        let log = self.printed().await.map(|printed| printed.all);
        let log = log.unwrap_or_else(|error| error.to_string());
        Err(ClusterError::NotReady {
            node: self.node.to_string(),
            reason,
            log: LastLines::of(&log).below(),
        })
    }

    async fn follow(&self, wanted: &str, earlier: &str) -> ClusterResult {
        let options = LogsOptions {
            follow: true,
            stdout: true,
            stderr: true,
            timestamps: true,
            ..Default::default()
        };
        let mut stream = self.docker().logs(&self.container, Some(options));
        let mut text = String::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| failed("follow its log", &error))?;
            let chunk = chunk.into_bytes();
            let chunk = String::from_utf8_lossy(&chunk);
            let (said_at, said) = chunk.split_once(' ').unwrap_or_default();
            if sortable(said_at).as_str() <= earlier {
                continue;
            }
            text.push_str(said);
            if text.contains(wanted) {
                return Ok(());
            }
            // Only the last, unfinished line can still become the awaited one.
            text = text.rsplit('\n').next().unwrap_or_default().to_owned();
        }
        Err(ClusterError::failed(
            format!("start {}", self.node),
            "its process ended",
        ))
    }
}

/// Returns the moment up to which all lines are from an earlier process. It is the end of that
/// process and not the start of this one: engines note the start once the process runs, and it may
/// have printed something by then.
fn end_of_earlier_life(state: ContainerState) -> String {
    let moment = if state.running.unwrap_or_default() {
        state.finished_at
    } else {
        // The end is that of the present process, so only its start can be used.
        state.started_at
    };
    sortable(&moment.unwrap_or_default())
}

/// Formats a moment of the engine so that texts compare as the moments do: they are in UTC, and the
/// engine leaves out zeros at the end.
fn sortable(moment: &str) -> String {
    let (seconds, nanoseconds) = moment
        .trim_end_matches('Z')
        .split_once('.')
        .unwrap_or((moment.trim_end_matches('Z'), ""));
    format!("{seconds}.{nanoseconds:0<9}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_compare_to_the_nanosecond() {
        let in_order = [
            "0001-01-01T00:00:00Z",
            "2026-11-16T06:56:20Z",
            "2026-11-16T06:56:20.000000001Z",
            "2026-11-16T06:56:20.64869159Z",
            "2026-11-16T06:56:20.648691600Z",
            "2026-11-16T06:56:21.1Z",
        ];
        let sortable = in_order.map(sortable);
        assert!(sortable.is_sorted(), "{sortable:?}");
        assert_eq!(super::sortable("x.10Z"), super::sortable("x.100000000Z"));
    }
}
