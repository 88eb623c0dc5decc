use super::super::field::Field;
use super::super::journal::Debt;
use super::Harm;
use super::process::{observe, send};
use crate::cluster::Signal;
use crate::model::Name;
use async_trait::async_trait;

/// SIGSTOP, proven when every thread of the target was seen in state T.
pub struct Stopped {
    pub node: Name,
}

#[async_trait]
impl Harm for Stopped {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        // An engine that stumbles says more about itself than about the target.
        let Ok(threads) = field.cluster.threads(&self.node).await else {
            return Ok(());
        };
        if threads.is_empty() {
            return Err("its process has ended".to_owned());
        }
        if threads.iter().all(|thread| thread.is_stopped()) {
            return Err("it is stopped already".to_owned());
        }
        match field.cluster.state(&self.node).await {
            Ok(state) if state.frozen => Err("it is frozen already".to_owned()),
            _ => Ok(()),
        }
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        match field.cluster.threads(&self.node).await {
            Ok(threads) if threads.iter().any(|thread| !thread.is_stopped()) => {
                Err("somebody else has continued it".to_owned())
            }
            _ => Ok(()),
        }
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        send(field, &self.node, Signal::Stop).await
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        observe(field, &self.node, |threads| {
            !threads.is_empty() && threads.iter().all(|thread| thread.is_stopped())
        })
        .await
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        match send(field, &self.node, Signal::Continue).await {
            // A target that has ended since is not standing still either.
            Err(reason) if !has_ended(field, &self.node).await => Err(reason),
            _ => Ok(()),
        }
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        observe(field, &self.node, |threads| {
            !threads.iter().any(|thread| thread.is_stopped())
        })
        .await
    }

    fn debts(&self) -> Vec<Debt> {
        vec![Debt::Continue {
            node: self.node.clone(),
        }]
    }
}

async fn has_ended(field: &Field, node: &Name) -> bool {
    let ended = observe(field, node, |threads| threads.is_empty());
    ended.await.is_ok()
}
