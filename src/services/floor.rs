use fencing_lock::LockProblem;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// The two cheapest writes of a service that are as durable as its locks, through the same client
/// library and without anything else: no lock on it can be faster than these.
pub struct Floor {
    /// The words for them: `SET, DEL`.
    pub words: &'static str,
    pub(super) open: for<'a> fn(&'a [String]) -> BoxFuture<'a, Result<BareWrites, LockProblem>>,
}

/// Both writes, one after the other, each time that it is called.
pub type BareWrites = Box<dyn FnMut() -> BoxFuture<'static, Result<(), LockProblem>> + Send>;

/// The limit for each answer of a server.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Floor {
    /// Connects to these servers (`host:port`) and prepares what is written.
    pub async fn open(&self, servers: &[String]) -> Result<BareWrites, LockProblem> {
        (self.open)(servers).await
    }
}

/// Makes one write twice, through clones of a client.
pub(super) fn twice<C, W>(client: C, write: impl Fn(C) -> W + Send + 'static) -> BareWrites
where
    C: Clone + Send + 'static,
    W: Future<Output = Result<(), LockProblem>> + Send + 'static,
{
    Box::new(move || {
        let (first, second) = (write(client.clone()), write(client.clone()));
        Box::pin(async move {
            first.await?;
            second.await
        })
    })
}

/// Waits for an answer, but not forever.
pub(super) async fn answered<T, E: Into<LockProblem>>(
    request: impl Future<Output = Result<T, E>>,
) -> Result<T, LockProblem> {
    match tokio::time::timeout(ANSWER_WITHIN, request).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(LockProblem::NoAnswer("nothing within 5 s".to_owned())),
    }
}
