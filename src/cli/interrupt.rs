use super::exit::{Exit, Failure};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The first Ctrl-C (or SIGTERM) asks the run to heal and clean up; the second
/// ends the program at once.
pub fn listen() -> Result<CancellationToken, Failure> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::harness)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::harness)?;
    let token = CancellationToken::new();
    let asked = token.clone();
    // Ends with the program: it has nothing to clean up.
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if asked.is_cancelled() {
                eprintln!("stopped at once; `fencepost clean` removes what is left");
                std::process::exit(Exit::Interrupted as i32);
            }
            eprintln!("interrupted: healing and removing; once more stops at once");
            asked.cancel();
        }
    });
    Ok(token)
}
