use super::super::field::{Field, Server};
use super::super::probe::{Outcome, Question};
use super::super::readback::redis;
use super::Harm;
use super::probes::{ANSWER_MS, ask, living};
use crate::cluster::topology::Endpoint;
use crate::model::{Link, Name};
use async_trait::async_trait;
use std::net::SocketAddr;

/// A replica becomes a primary, and all links to its primary lead to it.
/// Proven when it says so itself, and says so over every one of those links.
pub struct Promoted {
    node: Name,
    links: Vec<Link>,
}

#[async_trait]
impl Harm for Promoted {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        if redis::is_primary(self.address(field).await?.1).await? {
            return Err("it is a primary already".to_owned());
        }
        self.links = switched(field, &self.node)?;
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let (server, address) = self.address(field).await?;
        redis::promote(address).await?;
        let here = Endpoint {
            node: self.node.clone(),
            port: server.port(),
        };
        for link in &self.links {
            let links = field.links()?;
            links.lead_to(field.cluster.as_ref(), link, &here).await?;
        }
        Ok(())
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        let (_, address) = self.address(field).await?;
        if !redis::is_primary(address).await? {
            return Err("it still calls itself a replica".to_owned());
        }
        let own_id = redis::run_id(address).await?;
        // Whoever has ended needs no way to it.
        for link in &living(field, self.links.clone()).await? {
            let question = Question {
                say: Some("INFO server\r\n".to_owned()),
                ..Question::within(ANSWER_MS)
            };
            let answer = ask(field, link, &question).await?;
            if answer.outcome != Outcome::Answered || !answer.text.contains(&own_id) {
                return Err(format!("{link} does not lead to it"));
            }
        }
        Ok(format!(
            "it calls itself a primary, and {} link(s) lead to it",
            self.links.len()
        ))
    }
}

impl Promoted {
    pub fn new(node: Name) -> Promoted {
        let links = Vec::new();
        Promoted { node, links }
    }

    async fn address(&self, field: &Field) -> Result<(Server, SocketAddr), String> {
        match field.server(&self.node).await? {
            Some((server @ Server::Redis { .. }, address)) => Ok((server, address)),
            _ => Err("it is not a Redis".to_owned()),
        }
    }
}

/// The links to the old primary, but for the replica's own.
pub fn switched(field: &Field, replica: &str) -> Result<Vec<Link>, String> {
    let primary = field.replicas.get(replica);
    let primary = primary.ok_or_else(|| "it is not a replica of any node here".to_owned())?;
    let links = field.links()?.around(primary).into_iter();
    Ok(links
        .filter(|link| link.to == *primary && link.from != replica)
        .collect())
}
