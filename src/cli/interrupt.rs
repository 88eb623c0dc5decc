use super::*;
use crate::run::RunError;
use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Listens for interrupts. The first Ctrl-C (or SIGTERM, or a closed terminal) asks the run to
/// heal and clean up; the second ends the program at once.
pub fn listen() -> Result<CancellationToken, Failure> {
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
        output::complain("interrupted: healing and removing; once more stops at once");
        next(&mut asked).await;
        output::complain("stopped at once; `fencepost clean` removes what is left");
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

async fn next(signals: &mut [Signal]) {
    let received = signals.iter_mut().map(|signal| Box::pin(signal.recv()));
    select_all(received).await;
}
