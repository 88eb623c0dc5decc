use super::super::field::Field;
use super::super::journal::Debt;
use super::Harm;
use super::expected::Expected;
use super::probes::Probes;
use crate::model::Name;
use async_trait::async_trait;

/// Off the network, proven by probes over every link from and to the node.
pub struct Disconnected {
    node: Name,
    probes: Probes,
}

impl Disconnected {
    pub fn new(node: Name) -> Disconnected {
        Disconnected {
            node,
            probes: Probes::default(),
        }
    }
}

#[async_trait]
impl Harm for Disconnected {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        self.probes = Probes::around(field, &self.node).await?;
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let disconnected = field.cluster.disconnect(&self.node).await;
        disconnected.map_err(|error| error.to_string())
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        self.probes.show(field, &Expected::no_answer()).await
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        match field.cluster.inner_address(&self.node).await {
            Err(_) => Ok(()),
            Ok(_) => Err("somebody else has put it on the network again".to_owned()),
        }
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        let connected = field.cluster.connect(&self.node).await;
        connected.map_err(|error| error.to_string())
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        self.probes.work_again(field, &Expected::no_answer()).await
    }

    fn debts(&self) -> Vec<Debt> {
        vec![Debt::Connect {
            node: self.node.clone(),
        }]
    }
}
