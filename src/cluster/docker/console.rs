use super::*;
use crate::cluster::lines::Lines;
use crate::cluster::{ConsoleLine, Stdin};
use bollard::container::LogOutput;
use bollard::query_parameters::AttachContainerOptions;
use tokio::sync::mpsc;

/// Attaches to a created container's stdin, stdout and stderr.
pub async fn attach(target: &Target) -> ClusterResult<Console> {
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
    let (send, lines) = mpsc::channel(ConsoleLine::MOST_WAITING);
    // The task ends with the container's output or with the reader of the lines. Our attachment
    // ends with it, and so does the container's stdin.
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
