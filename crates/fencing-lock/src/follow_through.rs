use crate::Env;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future that runs to its end even if it is dropped: its caller polls it, and once it
/// is dropped it goes on in the background.
pub(crate) struct FollowThrough<F: Future + Send + 'static> {
    rest: Option<Pin<Box<F>>>,
    env: Env,
}

impl<F: Future + Send + 'static> FollowThrough<F> {
    pub(crate) fn new(env: &Env, future: F) -> FollowThrough<F> {
        FollowThrough {
            rest: Some(Box::pin(future)),
            env: env.clone(),
        }
    }
}

impl<F: Future + Send + 'static> Future for FollowThrough<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Some(rest) = &mut self.rest else {
            // A future that has returned its result is not polled again.
            return Poll::Pending;
        };
        let polled = rest.as_mut().poll(context);
        if polled.is_ready() {
            self.rest = None;
        }
        polled
    }
}

impl<F: Future + Send + 'static> Drop for FollowThrough<F> {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.env.in_background(async move {
                rest.await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn what_was_begun_comes_to_its_end_although_nobody_waits() {
        let (go, gate) = oneshot::channel::<()>();
        let (done, is_done) = oneshot::channel();
        let mut begun = FollowThrough::new(&Env::default(), async move {
            gate.await.unwrap();
            done.send(7).unwrap();
        });
        assert!((&mut begun).now_or_never().is_none());
        drop(begun);
        go.send(()).unwrap();
        assert_eq!(is_done.await, Ok(7));
    }
}
