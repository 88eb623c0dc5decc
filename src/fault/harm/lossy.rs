use super::super::field::Field;
use super::super::journal::Debt;
use super::Harm;
use super::expected::Expected;
use super::probes::Probes;
use crate::model::Name;
use async_trait::async_trait;

/// So many rounds of probes are sent until a packet was lost.
const MOST_ROUNDS: usize = 100;

/// Packets between the node and the others get lost; those between it and the
/// harness do not. Proven by what the filter counted, and where all get lost
/// by probes as well.
pub struct Lossy {
    node: Name,
    percent: u8,
    probes: Probes,
}

impl Lossy {
    pub fn new(node: Name, percent: u8) -> Lossy {
        Lossy {
            node,
            percent,
            probes: Probes::default(),
        }
    }
}

#[async_trait]
impl Harm for Lossy {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        if !field.packet_filters.is_clear(&self.node).await? {
            return Err("packets of it get lost already".to_owned());
        }
        self.probes = Probes::around(field, &self.node).await?;
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let filters = &field.packet_filters;
        filters.lose(&self.node, self.percent).await
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        let seen = match self.percent {
            100 => self.probes.show(field, &Expected::no_answer()).await?,
            _ => {
                for _ in 0..MOST_ROUNDS {
                    self.probes.send(field).await?;
                    if field.packet_filters.lost(&self.node).await? > 0 {
                        break;
                    }
                }
                "probes were sent".to_owned()
            }
        };
        match field.packet_filters.lost(&self.node).await? {
            0 => Err(format!("{seen}, and no packet was dropped")),
            lost => Ok(format!("{seen}; {lost} packet(s) were dropped")),
        }
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        match field.packet_filters.is_clear(&self.node).await? {
            true => Err("somebody else has cleared the packet filter".to_owned()),
            false => Ok(()),
        }
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        field.packet_filters.clear(&self.node).await
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        match field.packet_filters.is_clear(&self.node).await? {
            true => self.probes.work_again(field, &Expected::no_answer()).await,
            false => Err("the packet filter is still there".to_owned()),
        }
    }

    fn debts(&self) -> Vec<Debt> {
        vec![Debt::Filters {
            node: self.node.clone(),
        }]
    }
}
