use super::exit::{Exit, Failure};
use super::output;
use futures_util::future::select_all;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The first Ctrl-C (or SIGTERM, or a closed terminal) asks the run to heal and clean up; the second
/// ends the program at once.
pub fn listen() -> Result<CancellationToken, Failure> {
    let mut asked = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        // The terminal is gone, and with it whoever could have cleaned up by hand.
        SignalKind::hangup(),
    ]
    .map(signal)
    .into_iter()
    .collect::<Result<Vec<Signal>, _>>()
    .map_err(Failure::harness)?;
    let token = CancellationToken::new();
    let run = token.clone();
    // Ends with the program: it has nothing to clean up.
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

/// Completes when a role is asked to end.
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
