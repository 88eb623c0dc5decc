use crate::redis::Reply;
use crate::{Env, LockProblem};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll};

/// Requests to several nodes, all under way at once.
///
/// It is a handful of futures in one task: none of them needs a separate task, and
/// polling all of them at every wake-up is cheaper than tracking which one is ready.
/// Dropping it drops the requests: one that was not written yet is never sent.
pub(super) struct Fan {
    requests: Vec<(usize, Request)>,
    heard: VecDeque<(usize, Result<Reply, LockProblem>)>,
}

type Request = BoxFuture<'static, Result<Reply, LockProblem>>;

impl Fan {
    /// Takes each request with the number of its node.
    pub(super) fn new(requests: impl Iterator<Item = (usize, Request)>) -> Fan {
        let requests: Vec<_> = requests.collect();
        let heard = VecDeque::with_capacity(requests.len());
        Fan { requests, heard }
    }

    /// Hands every request to its connection if that is open. A connection keeps its
    /// order, so every later request comes after these.
    pub(super) async fn send(&mut self) {
        poll_fn(|context| {
            self.poll_all(context);
            Poll::Ready(())
        })
        .await;
    }

    /// Returns the next answer of any node, or `None` when all have answered. The first
    /// call sends all requests.
    pub(super) async fn next(&mut self) -> Option<(usize, Result<Reply, LockProblem>)> {
        poll_fn(|context| {
            if self.heard.is_empty() {
                self.poll_all(context);
            }
            match self.heard.pop_front() {
                Some(answer) => Poll::Ready(Some(answer)),
                None if self.requests.is_empty() => Poll::Ready(None),
                None => Poll::Pending,
            }
        })
        .await
    }

    /// Carries out the rest in the background, where nobody waits for it. The time limits
    /// of the connections end it.
    pub(super) fn leave_to_background(mut self, env: &Env) {
        if !self.requests.is_empty() {
            env.in_background(async move { while self.next().await.is_some() {} });
        }
    }

    fn poll_all(&mut self, context: &mut Context<'_>) {
        let heard = &mut self.heard;
        self.requests
            .retain_mut(|(node, request)| match request.as_mut().poll(context) {
                Poll::Ready(answer) => {
                    heard.push_back((*node, answer));
                    false
                }
                Poll::Pending => true,
            });
    }
}
