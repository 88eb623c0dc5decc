use super::super::field::{Field, Server};
use super::super::lock;
use super::super::readback::redis;
use super::Harm;
use super::process::state;
use crate::model::Name;
use async_trait::async_trait;

/// SIGKILL and a new start, proven by another start time and by what the server
/// remembers: a Redis is given something to remember beforehand.
pub struct Restarted {
    node: Name,
    keeps_data: bool,
    started_at: String,
}

impl Restarted {
    pub fn with_data(node: Name) -> Restarted {
        Restarted::new(node, true)
    }

    pub fn empty(node: Name) -> Restarted {
        Restarted::new(node, false)
    }

    fn new(node: Name, keeps_data: bool) -> Restarted {
        Restarted {
            node,
            keeps_data,
            started_at: String::new(),
        }
    }
}

#[async_trait]
impl Harm for Restarted {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        self.started_at = state(field, &self.node).await?.started_at;
        Ok(())
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        if state(field, &self.node).await?.running {
            let killed = field.cluster.kill(&self.node).await;
            killed.map_err(|error| error.to_string())?;
        }
        if !self.keeps_data {
            let discarded = field.cluster.discard(&self.node).await;
            discarded.map_err(|error| error.to_string())?;
            create(field, &self.node).await?;
        }
        start_again(field, &self.node).await
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        let seen = runs_anew(field, &self.node, &self.started_at).await?;
        let kept = is_remembered(field, &self.node).await?;
        let came_to = match (kept, self.keeps_data) {
            (None, _) => Ok(seen),
            (Some(true), true) => Ok(format!("{seen}, with its data")),
            (Some(false), false) => Ok(format!("{seen}, without its data")),
            (Some(false), true) => Err(
                "it has lost its data: this server keeps nothing on disk; use `restart-empty`, or a topology whose servers do"
                    .to_owned(),
            ),
            (Some(true), false) => Err("it still has its data".to_owned()),
        };
        give_memory(field, &self.node).await?;
        came_to
    }

    /// One that was given up half-way must not stay dead: the evidence may be in it.
    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        match state(field, &self.node).await {
            Ok(state) if state.running => Ok(()),
            Ok(_) => start_again(field, &self.node).await,
            Err(_) => {
                create(field, &self.node).await?;
                start_again(field, &self.node).await
            }
        }
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        match state(field, &self.node).await?.running {
            true => Ok("it runs".to_owned()),
            false => Err("it does not run".to_owned()),
        }
    }
}

/// Gives a Redis something that it remembers, unless it loses its data.
/// Servers of other kinds, and replicas, are not asked to remember anything.
pub async fn give_memory(field: &Field, node: &Name) -> Result<(), String> {
    if let Some((Server::Redis { .. }, address)) = field.server(node).await?
        && redis::is_primary(address).await?
    {
        redis::remember(address).await?;
        lock(&field.remembering).insert(node.clone());
    }
    Ok(())
}

async fn is_remembered(field: &Field, node: &Name) -> Result<Option<bool>, String> {
    let was_given = lock(&field.remembering).contains(node);
    match (was_given, field.server(node).await?) {
        (true, Some((_, address))) => redis::remembers(address).await.map(Some),
        _ => Ok(None),
    }
}

async fn create(field: &Field, node: &Name) -> Result<(), String> {
    let created = field.cluster.create_node(&field.service(node)?).await;
    created.map_err(|error| error.to_string())
}

/// Starts a service that has ended; returns when it is ready.
pub async fn start_again(field: &Field, node: &Name) -> Result<(), String> {
    let service = field.service(node)?;
    let started = async {
        field.cluster.start(&service).await?;
        match &service.ready {
            Some(line) => field.cluster.await_said(node, line).await,
            None => Ok(()),
        }
    };
    let started = started.await.map_err(|error| error.to_string());
    // It has another network now, and they are in the old one.
    field.witnesses.forget(node).await;
    field.packet_filters.forget(node).await;
    started
}

pub async fn runs_anew(field: &Field, node: &Name, before: &str) -> Result<String, String> {
    let state = state(field, node).await?;
    match state.running && state.started_at != before {
        true => Ok("it runs again, started anew".to_owned()),
        false if state.running => Err("it was not started anew".to_owned()),
        false => Err("it does not run".to_owned()),
    }
}
