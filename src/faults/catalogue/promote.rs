use super::probes::{ANSWER_MS, ask, living};
use super::*;
use crate::cluster::topology::Endpoint;
use crate::services::{Reached, Sign};

pub const PROMOTE: Form = Form {
    refuses,
    done: |_, node| format!("make {node} the primary; every link to the old one leads to it"),
    proven: "when it says that it is the primary, and the links lead to it",
    injection: |fault| {
        let links = Vec::new();
        let node = fault.node;
        Box::new(Promoted { node, links })
    },
    ..Form::PLAIN
};

fn refuses(node: &Candidate<'_>) -> Option<String> {
    let replicas = node.replicas?;
    if replicas.contains_key(node.name) {
        return None;
    }
    let known: Vec<&str> = replicas.keys().map(String::as_str).collect();
    let hint = if known.is_empty() {
        "this topology has none".to_owned()
    } else {
        format!("replicas here: {}", known.join(", "))
    };
    Some(format!("`{}` is no replica; {hint}", node.name))
}

/// A replica made the primary, with all links to the old primary leading to it. Proven when the
/// replica says so itself, over every one of those links too.
struct Promoted {
    node: Name,
    links: Vec<Link>,
}

#[async_trait]
impl Injection for Promoted {
    async fn prepare(&mut self, field: &Field) -> Proof {
        probes::prepare(field, switched(field, &self.node)?.into_iter()).await
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        let primary = is_primary(&self.replica(field).await?).await?;
        ensure(!primary, UnprovenReason::PrimaryAlready)?;
        self.links = switched(field, &self.node)?;
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        let replica = self.replica(field).await?;
        replica.answers.promote(&replica).await?;
        let here = Endpoint {
            node: self.node.clone(),
            port: field.servers[&self.node].port,
        };
        for link in &self.links {
            let links = field.links()?;
            links.lead_to(field.cluster.as_ref(), link, &here).await?;
        }
        Ok(())
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let replica = self.replica(field).await?;
        ensure(is_primary(&replica).await?, UnprovenReason::StillReplica)?;
        let sign = replica.answers.sign(&replica).await?;
        let seen = self.links_show(field, &sign).await;
        replica.answers.remove(&replica, &sign).await?;
        seen?;
        Ok(format!(
            "it calls itself a primary, and {} link(s) lead to it",
            self.links.len()
        ))
    }
}

impl Promoted {
    async fn replica(&self, field: &Field) -> Proof<Reached> {
        let server = field.server(&self.node).await?;
        server.ok_or(UnprovenReason::NotPromotable)
    }

    async fn links_show(&self, field: &Field, sign: &Sign) -> Proof {
        // A node that has ended needs no link to the new primary.
        for link in &living(field, self.links.clone()).await? {
            let question = Question {
                say: Some(sign.question.clone()),
                ..Question::within(ANSWER_MS)
            };
            let answer = ask(field, link, &question).await?;
            if answer.outcome != Outcome::Answered || !sign.is_in(&answer.text) {
                let link = link.clone();
                return Err(UnprovenReason::LeadsElsewhere { link });
            }
        }
        Ok(())
    }
}

async fn is_primary(replica: &Reached) -> Proof<bool> {
    replica.answers.is_primary(replica).await
}

/// Returns the links to the old primary, except the replica's own.
fn switched(field: &Field, replica: &str) -> Proof<Vec<Link>> {
    let primary = field.replicas.get(replica);
    let primary = primary.ok_or(UnprovenReason::NotAReplica)?;
    let links = field.links()?.around(primary).into_iter();
    Ok(links
        .filter(|link| link.to == *primary && link.from != replica)
        .collect())
}
