use super::*;
use crate::cluster::NodeSpec;
use crate::services::Visit;
use std::time::Duration;
use tokio::time::Instant;

/// How long an attached server may take until it answers again.
const ANSWER_DEADLINE: Duration = Duration::from_secs(30);
const ASK_AGAIN: Duration = Duration::from_millis(100);

pub const RESTART: Form = Form {
    refuses: stays_dead,
    done: |_, node| format!("SIGKILL {node}, and start it again with its data"),
    proven: "when it is ready again, started anew, and has kept its data",
    injection: |fault| Restarted::boxed(fault, true),
    ..Form::PLAIN
};

pub const RESTART_EMPTY: Form = Form {
    refuses: |node| match node.role {
        Role::Resource => Some(format!(
            "the log of `{}` is the evidence; use `restart`, which keeps it",
            node.name
        )),
        Role::Worker | Role::Server | Role::Leader | Role::Unasked => stays_dead(node),
    },
    done: |_, node| format!("SIGKILL {node}, and start it again without its data"),
    proven: "when it is ready again, started anew, and its data are gone",
    injection: |fault| Restarted::boxed(fault, false),
    ..Form::PLAIN
};

fn stays_dead(node: &Candidate<'_>) -> Option<String> {
    let name = node.name;
    (node.role == Role::Worker).then(|| format!(
        "a worker that died stays dead: write `kill: {name}`, and start another one at `{name}.killed`"
    ))
}

/// A server killed by SIGKILL and started again. Proven by a new start time and by what the
/// server remembers: a Redis or a database is given something to remember beforehand.
struct Restarted {
    node: Name,
    keeps_data: bool,
    started_at: String,
    /// It was there before the run, and has to run after it.
    is_attached: bool,
}

impl Restarted {
    fn boxed(fault: NodeFault, keeps_data: bool) -> Box<dyn Injection> {
        Box::new(Restarted {
            node: fault.node,
            keeps_data,
            started_at: String::new(),
            is_attached: false,
        })
    }
}

#[async_trait]
impl Injection for Restarted {
    async fn prepare(&mut self, field: &Field) -> Proof {
        give_memory(field, &self.node).await
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        self.started_at = state(field, &self.node).await?.started_at;
        self.is_attached = field.attached.contains_key(&self.node);
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        if state(field, &self.node).await?.running {
            field.cluster.kill(&self.node).await?;
        }
        if !self.keeps_data {
            field.cluster.discard(&self.node).await?;
            create(field, &self.node).await?;
        }
        start_again(field, &self.node).await
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let seen = runs_anew(field, &self.node, &self.started_at).await?;
        let kept = is_remembered(field, &self.node).await?;
        let came_to = match (kept, self.keeps_data) {
            (None, _) => Ok(seen),
            (Some(true), true) => Ok(format!("{seen}, with its data")),
            (Some(false), false) => Ok(format!("{seen}, without its data")),
            (Some(false), true) => Err(UnprovenReason::LostItsData),
            (Some(true), false) => Err(UnprovenReason::KeptItsData),
        };
        give_memory(field, &self.node).await?;
        came_to
    }

    /// Starts the server, if the restart was given up half-way: the evidence may be in the server.
    async fn undo(&mut self, field: &Field) -> Proof {
        match state(field, &self.node).await {
            Ok(state) if state.running => Ok(()),
            Ok(_) => start_again(field, &self.node).await,
            Err(_) => {
                create(field, &self.node).await?;
                start_again(field, &self.node).await
            }
        }
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        let running = state(field, &self.node).await?.running;
        ensure(running, UnprovenReason::NotRunning)?;
        Ok("it runs".to_owned())
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        let start = self.is_attached.then_some(Debt::Start { node });
        start.into_iter().collect()
    }
}

/// Gives a server something to remember. Nothing is written to an attached server.
async fn give_memory(field: &Field, node: &Name) -> Proof {
    if field.attached.contains_key(node) {
        return Ok(());
    }
    if let Some(server) = field.server(node).await?
        && server.answers.remember(&server).await?
    {
        field.remembering.lock().insert(node.clone());
    }
    Ok(())
}

async fn is_remembered(field: &Field, node: &Name) -> Proof<Option<bool>> {
    let was_given = field.remembering.lock().contains(node);
    match field.server(node).await?.filter(|_| was_given) {
        Some(server) => server.answers.remembers(&server).await,
        None => Ok(None),
    }
}

async fn create(field: &Field, node: &Name) -> Proof {
    Ok(field.cluster.create_node(&field.service(node)?).await?)
}

/// Starts a service that has ended; returns when it is ready.
pub async fn start_again(field: &Field, node: &Name) -> Proof {
    let service = field.service(node)?;
    let started: Proof = async {
        field.cluster.start(&service).await?;
        match (field.attached.get(node), &service.ready) {
            (Some(visit), _) => answers(field, &service, visit).await?,
            (None, Some(line)) => field.cluster.await_said(node, line).await?,
            (None, None) => {}
        }
        Ok(())
    }
    .await;
    // The node has a new network now, and its helpers are in the old one.
    field.witnesses.called.forget(node).await;
    field.packet_filters.called.forget(node).await;
    started
}

/// Waits until a server of somebody else's answers: what it logs, and where, is its own business.
async fn answers(field: &Field, service: &NodeSpec, visit: &Visit) -> Proof {
    let give_up_at = Instant::now() + ANSWER_DEADLINE;
    let port = service.ports.first().map_or(0, |port| port.container);
    loop {
        let address = field.cluster.address(&service.name, port).await?;
        let moved = visit.moved_to(&address.to_string());
        let looked = match &moved {
            Ok(visit) => visit.look().await.map(drop),
            Err(reason) => Err(reason.clone()),
        };
        match looked {
            Err(error) if Instant::now() >= give_up_at => {
                let server = format!("{} at {address}", service.name);
                return Err(UnprovenReason::Server { server, error });
            }
            Err(_) => tokio::time::sleep(ASK_AGAIN).await,
            Ok(()) => return Ok(()),
        }
    }
}

pub async fn runs_anew(field: &Field, node: &Name, before: &str) -> Proof<String> {
    let state = state(field, node).await?;
    ensure(state.running, UnprovenReason::NotRunning)?;
    ensure(state.started_at != before, UnprovenReason::NotStartedAnew)?;
    Ok("it runs again, started anew".to_owned())
}
