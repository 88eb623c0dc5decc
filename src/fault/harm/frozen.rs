use super::super::field::Field;
use super::super::journal::Debt;
use super::Harm;
use super::process::state;
use crate::model::Name;
use async_trait::async_trait;

/// The cgroup's freezer, proven when the engine says that it is shut.
pub struct Frozen {
    pub node: Name,
}

#[async_trait]
impl Harm for Frozen {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        let state = state(field, &self.node).await?;
        match (state.running, state.frozen) {
            (false, _) => return Err("its process has ended".to_owned()),
            (true, true) => return Err("it is frozen already".to_owned()),
            (true, false) => {}
        }
        let threads = field.cluster.threads(&self.node).await;
        let threads = threads.map_err(|error| error.to_string())?;
        match threads.iter().all(|thread| thread.is_stopped()) {
            true => Err("it is stopped already".to_owned()),
            false => Ok(()),
        }
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        match state(field, &self.node).await?.frozen {
            true => Ok(()),
            false => Err("somebody else has thawed it".to_owned()),
        }
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let frozen = field.cluster.freeze(&self.node).await;
        frozen.map_err(|error| error.to_string())
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        match state(field, &self.node).await?.frozen {
            true => Ok("its cgroup is frozen".to_owned()),
            false => Err("its cgroup is not frozen".to_owned()),
        }
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        match field.cluster.thaw(&self.node).await {
            Err(error) if state(field, &self.node).await?.frozen => Err(error.to_string()),
            _ => Ok(()),
        }
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        match state(field, &self.node).await?.frozen {
            true => Err("its cgroup is still frozen".to_owned()),
            false => Ok("its cgroup is not frozen any more".to_owned()),
        }
    }

    fn debts(&self) -> Vec<Debt> {
        vec![Debt::Thaw {
            node: self.node.clone(),
        }]
    }
}
