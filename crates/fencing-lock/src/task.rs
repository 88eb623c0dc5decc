use futures_util::future::{self, BoxFuture};
use tokio::task::JoinHandle;

/// A task that ends when this is dropped.
pub(super) enum Task {
    OfTokio(tokio::task::AbortHandle),
    /// A world may have an executor of its own, so this task finds out by itself that it
    /// has to end, when it is polled again.
    OfWorld(future::AbortHandle),
}

impl Task {
    pub(super) fn of_tokio(task: JoinHandle<()>) -> Task {
        Task::OfTokio(task.abort_handle())
    }

    /// Returns the task, and the future that the world has to run.
    pub(super) fn of_world(
        task: impl Future<Output = ()> + Send + 'static,
    ) -> (Task, BoxFuture<'static, ()>) {
        let (run, task) = future::abortable(task);
        let run = async move {
            let _or_aborted = run.await;
        };
        (Task::OfWorld(task), Box::pin(run))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        match self {
            Task::OfTokio(task) => task.abort(),
            Task::OfWorld(task) => task.abort(),
        }
    }
}
