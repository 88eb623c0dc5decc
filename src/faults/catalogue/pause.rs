use super::process::{observe, send};
use super::*;
use crate::cluster::Signal;

pub const PAUSE: Form = Form {
    done: |_, node| format!("SIGSTOP {node}, which stands still"),
    proven: "when every thread is in state T",
    injection: |fault| Box::new(Stopped { node: fault.node }),
    ..Form::PLAIN
};

pub const RESUME: Form = Form {
    done: |_, node| format!("SIGCONT {node}"),
    ..Form::PLAIN
};

/// A node stopped by SIGSTOP, proven when every thread of it was seen in state T.
struct Stopped {
    node: Name,
}

#[async_trait]
impl Injection for Stopped {
    async fn look_before(&mut self, field: &Field) -> Proof {
        // An error of the engine says more about the engine than about the target.
        let Ok(threads) = field.cluster.threads(&self.node).await else {
            return Ok(());
        };
        ensure(!threads.is_empty(), UnprovenReason::ProcessEnded)?;
        let runs = threads.iter().any(|thread| !thread.is_stopped());
        ensure(runs, UnprovenReason::StoppedAlready)?;
        let state = field.cluster.state(&self.node).await;
        let frozen = state.is_ok_and(|state| state.frozen);
        ensure(!frozen, UnprovenReason::FrozenAlready)
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let threads = field.cluster.threads(&self.node).await.unwrap_or_default();
        let stopped = threads.iter().all(|thread| thread.is_stopped());
        ensure(stopped, UnprovenReason::ContinuedByOthers)
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        send(field, &self.node, Signal::Stop).await
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        observe(field, &self.node, |threads| {
            !threads.is_empty() && threads.iter().all(|thread| thread.is_stopped())
        })
        .await
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        match send(field, &self.node, Signal::Continue).await {
            // A target that has ended since is not stopped either.
            Err(reason) if !has_ended(field, &self.node).await => Err(reason),
            _ => Ok(()),
        }
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        observe(field, &self.node, |threads| {
            !threads.iter().any(|thread| thread.is_stopped())
        })
        .await
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        vec![Debt::Continue { node }]
    }
}

async fn has_ended(field: &Field, node: &Name) -> bool {
    let ended = observe(field, node, |threads| threads.is_empty());
    ended.await.is_ok()
}
