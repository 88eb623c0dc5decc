use tokio::task::JoinHandle;

/// A background task that ends with its owner.
pub(super) struct Owned(JoinHandle<()>);

impl Owned {
    pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Owned {
        Owned(tokio::spawn(task))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.0.abort();
    }
}
