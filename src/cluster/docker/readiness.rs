use super::engine::{Engine, failed};
use super::read_log;
use crate::cluster::{ClusterError, LastLines};
use bollard::query_parameters::LogsOptions;
use futures_util::StreamExt;
use std::time::Duration;

const READY_DEADLINE: Duration = Duration::from_secs(30);

/// Returns when the node's log has a line with this text. The log is followed,
/// not polled, and its end means that the process ended.
pub async fn await_said(
    engine: &Engine,
    container: &str,
    node: &str,
    wanted: &str,
) -> Result<(), ClusterError> {
    let options = LogsOptions {
        follow: true,
        stdout: true,
        stderr: true,
        ..Default::default()
    };
    let mut stream = engine.docker().logs(container, Some(options));
    let seen = async {
        let mut text = String::new();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|error| failed("follow its log", &error))?;
            text.push_str(&String::from_utf8_lossy(&chunk.into_bytes()));
            if text.contains(wanted) {
                return Ok(());
            }
            // Only the last, unfinished line can still become the one awaited.
            text = text.rsplit('\n').next().unwrap_or_default().to_owned();
        }
        Err(ClusterError::Failed {
            what: format!("start {node}"),
            reason: "its process ended".to_owned(),
        })
    };
    let reason = match tokio::time::timeout(READY_DEADLINE, seen).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!(
            "no log line with `{wanted}` within {} s",
            READY_DEADLINE.as_secs()
        ),
    };
    let log = read_log(engine, container).await;
    let log = log.unwrap_or_else(|error| error.to_string());
    Err(ClusterError::NotReady {
        node: node.to_owned(),
        reason,
        log: LastLines::of(&log).below(),
    })
}
