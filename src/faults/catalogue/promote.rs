use super::super::field::Reached;
use super::super::readback::{postgres, redis};
use super::probes::{ANSWER_MS, ask, living};
use super::*;
use crate::cluster::topology::Endpoint;
use std::net::SocketAddr;

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
        let primary = self.replica(field).await?.is_primary().await?;
        ensure(!primary, UnprovenReason::PrimaryAlready)?;
        self.links = switched(field, &self.node)?;
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        self.replica(field).await?.promote().await?;
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
        ensure(replica.is_primary().await?, UnprovenReason::StillReplica)?;
        let sign = replica.sign().await?;
        let seen = self.links_show(field, &sign).await;
        replica.remove(&sign).await?;
        seen?;
        Ok(format!(
            "it calls itself a primary, and {} link(s) lead to it",
            self.links.len()
        ))
    }
}

impl Promoted {
    async fn replica(&self, field: &Field) -> Proof<Replica> {
        let server = field.server(&self.node).await?;
        match server.map(|server| (server.answers, server)) {
            Some((Readback::Redis, server)) => Ok(Replica::Redis(server)),
            Some((Readback::Postgres, server)) => Ok(Replica::Postgres(server.address)),
            _ => Err(UnprovenReason::NotPromotable),
        }
    }

    async fn links_show(&self, field: &Field, sign: &Sign) -> Proof {
        // A node that has ended needs no link to the new primary.
        for link in &living(field, self.links.clone()).await? {
            let question = Question {
                say: Some(sign.question.clone()),
                ..Question::within(ANSWER_MS)
            };
            let answer = ask(field, link, &question).await?;
            let is_there = answer.text.contains(&sign.answer) && !answer.text.contains(REFUSED);
            if answer.outcome != Outcome::Answered || !is_there {
                let link = link.clone();
                return Err(UnprovenReason::LeadsElsewhere { link });
            }
        }
        Ok(())
    }
}

/// A Postgres says this of a user that it does not know.
const REFUSED: &str = "does not exist";

enum Replica {
    Redis(Reached),
    Postgres(SocketAddr),
}

/// What only one server answers to a question.
struct Sign {
    question: String,
    answer: String,
}

impl Replica {
    async fn is_primary(&self) -> Proof<bool> {
        match self {
            Replica::Redis(server) => redis::is_primary(server).await,
            Replica::Postgres(address) => postgres::is_primary(*address).await,
        }
    }

    async fn promote(&self) -> Proof {
        match self {
            Replica::Redis(server) => redis::promote(server).await,
            Replica::Postgres(address) => postgres::promote(*address).await,
        }
    }

    async fn sign(&self) -> Proof<Sign> {
        match self {
            Replica::Redis(server) => Ok(Sign {
                question: "INFO server\r\n".to_owned(),
                answer: redis::run_id(server).await?,
            }),
            // The start of a session of a user that no other server has.
            Replica::Postgres(address) => {
                let user = postgres::make_user(*address).await?;
                let text = format!("\0\x03\0\0user\0{user}\0database\0postgres\0\0");
                // The name is so short that the length is one character.
                let length = char::from(4 + text.len() as u8);
                Ok(Sign {
                    question: format!("\0\0\0{length}{text}"),
                    answer: user,
                })
            }
        }
    }

    async fn remove(&self, sign: &Sign) -> Proof {
        match self {
            Replica::Redis(_) => Ok(()),
            Replica::Postgres(address) => postgres::remove_user(*address, &sign.answer).await,
        }
    }
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
