use super::*;
use crate::run::RunError;
use futures_util::future::select_all;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Signals within this time are one: `timeout` and others send each to a process and to its group.
const TOGETHER: Duration = Duration::from_millis(100);

/// Listens for interrupts. The first Ctrl-C (or SIGTERM, or a closed terminal) asks the run to
/// heal and clean up; the second ends the program at once.
pub fn listen() -> Result<CancellationToken, Failure> {
    listen_and_say("`fencepost clean` removes what is left".to_owned())
}

/// Does the same. `left` is what the second one says of what the program has not cleaned up.
pub fn listen_and_say(left: String) -> Result<CancellationToken, Failure> {
    let mut asked = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        // The terminal is gone, so its user cannot clean up by hand.
        SignalKind::hangup(),
    ]
    .map(signal)
    .into_iter()
    .collect::<Result<Vec<Signal>, _>>()
    .map_err(Failure::harness)?;
    let token = CancellationToken::new();
    let run = token.clone();
    // This task ends with the program: it has nothing to clean up.
    tokio::spawn(async move {
        next(&mut asked).await;
        run.cancel();
        let more = async { while next(&mut asked).await.is_some() {} };
        let _ = timeout(TOGETHER, more).await;
        output::complain("interrupted: healing and removing; once more stops at once");
        next(&mut asked).await;
        output::complain(format_args!("stopped at once; {left}"));
        std::process::exit(Exit::Interrupted as i32);
    });
    Ok(token)
}

/// Does the work, but drops it and fails on an interrupt.
pub async fn or<T, E: Into<Failure>>(
    interrupt: &CancellationToken,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failure> {
    tokio::select! {
        () = interrupt.cancelled() => Err(RunError::Interrupted.into()),
        done = work => done.map_err(E::into),
    }
}

/// Returns a future that completes when a role is asked to end.
pub fn end() -> Result<impl Future<Output = ()> + Send, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::harness)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::harness)?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

async fn next(signals: &mut [Signal]) -> Option<()> {
    let received = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    select_all(received).await.0
}
