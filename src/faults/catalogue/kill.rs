use super::restart::{runs_anew, start_again};
use super::*;

pub const KILL: Form = Form {
    refuses,
    done: |_, node| format!("SIGKILL {node}"),
    proven: "when its end is seen",
    injection: |fault| {
        Box::new(Killed {
            node: fault.node,
            started_at: String::new(),
            is_attached: false,
        })
    },
    ..Form::PLAIN
};

fn refuses(node: &Candidate<'_>) -> Option<String> {
    let name = node.name;
    match (node.role, node.has_end) {
        (Role::Worker, true) => Some(format!(
            "a worker that died stays dead: leave `for` out, and start another one at `{name}.killed`"
        )),
        (Role::Resource, false) => Some(format!(
            "the judge needs `{name}` at the end; give the kill a `for`, after which it is started again"
        )),
        (Role::Worker | Role::Resource | Role::Server | Role::Leader | Role::Unasked, _) => None,
    }
}

/// The exit code of a process that SIGKILL ended: 128 and the number of the signal.
const KILLED: i64 = 137;

/// A node killed by SIGKILL, proven when its process was seen to have ended by it.
struct Killed {
    node: Name,
    started_at: String,
    /// It was there before the run, and has to run after it.
    is_attached: bool,
}

#[async_trait]
impl Injection for Killed {
    async fn look_before(&mut self, field: &Field) -> Proof {
        let state = state(field, &self.node).await?;
        self.started_at = state.started_at;
        self.is_attached = field.attached.contains_key(&self.node);
        ensure(state.running, UnprovenReason::EndedAlready)
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        Ok(field.cluster.kill(&self.node).await?)
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let state = state(field, &self.node).await?;
        match (state.running, state.exit_code) {
            (false, Some(KILLED)) => Ok("its process ended by SIGKILL".to_owned()),
            (false, code) => Err(UnprovenReason::EndedByItself {
                exit_code: code.unwrap_or_default(),
            }),
            (true, _) => Err(UnprovenReason::StillRuns),
        }
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let running = state(field, &self.node).await?.running;
        ensure(!running, UnprovenReason::StartedByOthers)
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        start_again(field, &self.node).await
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        runs_anew(field, &self.node, &self.started_at).await
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        let start = self.is_attached.then_some(Debt::Start { node });
        start.into_iter().collect()
    }
}
