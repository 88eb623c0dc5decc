use crate::dlock::LockClient;
use crate::resource::ResourceClient;
use std::time::Duration;
use tokio::time::sleep;

/// Asks for a lock that nobody else wants, and reads what nobody wrote: whether
/// the servers answer at all.
pub(super) struct Probe {
    pub(super) locks: LockClient,
    pub(super) resource: ResourceClient,
}

const KEY: &str = "contend-probe";
const TRIES: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(250);

impl Probe {
    pub(super) async fn locks_answer(&self) -> Result<(), String> {
        locks_answer(&self.locks, KEY).await
    }

    pub(super) async fn resource_answers(&self) -> Result<(), String> {
        let answer = self.resource.get(KEY).await;
        answer.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Whether this client is answered, in a few tries. That somebody else holds the
/// lock is an answer, too: another load may be asking at the same time.
pub(super) async fn locks_answer(locks: &LockClient, key: &str) -> Result<(), String> {
    let mut tried = 0;
    loop {
        tried += 1;
        match locks.try_acquire(key).await {
            Ok(None) => return Ok(()),
            Ok(Some(lease)) => {
                lease.release().await;
                return Ok(());
            }
            // Without the server's address, which is told beside it.
            Err(error) if tried == TRIES => return Err(error.problem.to_string()),
            Err(_) => sleep(BETWEEN).await,
        }
    }
}
