use super::*;

pub const FREEZE: Form = Form {
    done: |_, node| {
        format!("freeze {node}: it and its children stand still, and no signal wakes them")
    },
    proven: "when the engine says so and no thread can run",
    need: Some(Need::Freezer),
    injection: |fault| Box::new(Frozen { node: fault.node }),
    ..Form::PLAIN
};

pub const THAW: Form = Form {
    done: |_, node| format!("thaw {node}"),
    ..Form::PLAIN
};

/// A node frozen by its cgroup's freezer, proven when the engine says that it is frozen.
struct Frozen {
    node: Name,
}

#[async_trait]
impl Injection for Frozen {
    async fn look_before(&mut self, field: &Field) -> Proof {
        let state = state(field, &self.node).await?;
        ensure(state.running, UnprovenReason::ProcessEnded)?;
        ensure(!state.frozen, UnprovenReason::FrozenAlready)?;
        let threads = field.cluster.threads(&self.node).await?;
        let runs = threads.iter().any(|thread| !thread.is_stopped());
        ensure(runs, UnprovenReason::StoppedAlready)
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let frozen = state(field, &self.node).await?.frozen;
        ensure(frozen, UnprovenReason::ThawedByOthers)
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        Ok(field.cluster.freeze(&self.node).await?)
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        let frozen = state(field, &self.node).await?.frozen;
        ensure(frozen, UnprovenReason::NotFrozen)?;
        Ok("its cgroup is frozen".to_owned())
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        match field.cluster.thaw(&self.node).await {
            Err(error) if state(field, &self.node).await?.frozen => Err(error.into()),
            _ => Ok(()),
        }
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        let frozen = state(field, &self.node).await?.frozen;
        ensure(!frozen, UnprovenReason::StillFrozen)?;
        Ok("its cgroup is not frozen any more".to_owned())
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        vec![Debt::Thaw { node }]
    }
}
