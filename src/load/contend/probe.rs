use super::*;
use tokio::time::Instant;

/// A check whether the servers answer at all: it asks for a lock that nobody else wants, and
/// reads a key that nobody wrote.
pub(super) struct Probe {
    pub(super) locks: LockClient,
    pub(super) resource: ResourceClient,
}

const KEY: &str = "contend-probe";
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(250);
/// Whoever was silent for so long is not asked again.
const PATIENCE: Duration = Duration::from_secs(5);

impl Probe {
    pub(super) async fn locks_answer(&self) -> Result<(), LockProblem> {
        locks_answer(&self.locks, KEY).await
    }

    pub(super) async fn resource_answers(&self) -> Result<(), String> {
        let answer = self.resource.get(KEY).await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Checks in a few tries whether this client gets an answer. A lock that somebody else holds is
/// an answer, too: another load may be asking at the same time.
pub(super) async fn locks_answer(locks: &LockClient, key: &str) -> Result<(), LockProblem> {
    let began = Instant::now();
    let mut tried = 0;
    loop {
        tried += 1;
        match locks.try_acquire(key).await {
            Ok(None) => return Ok(()),
            Ok(Some(lease)) => {
                lease.release().await;
                return Ok(());
            }
            // The server's address is left out because the caller reports it.
            Err(error) if tried == TRIES || began.elapsed() >= PATIENCE => {
                return Err(error.problem);
            }
            Err(_) => sleep(BETWEEN).await,
        }
    }
}
