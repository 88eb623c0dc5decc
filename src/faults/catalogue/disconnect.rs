use super::*;

pub const DISCONNECT: Form = Form {
    done: |_, node| format!("take {node} off the network"),
    proven: "when no probe gets through any more",
    need: Some(Need::Network),
    injection: |fault| {
        let probes = Probes::default();
        let node = fault.node;
        Box::new(Disconnected { node, probes })
    },
    ..Form::PLAIN
};

/// A node off the network, proven by probes over every link from and to it.
struct Disconnected {
    node: Name,
    probes: Probes,
}

#[async_trait]
impl Injection for Disconnected {
    async fn prepare(&mut self, field: &Field) -> Proof {
        probes::prepare_around(field, &self.node).await
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        self.probes = Probes::around(field, &self.node).await?;
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        Ok(field.cluster.disconnect(&self.node).await?)
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
        self.probes.show(field, &Expected::no_answer()).await
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let found = field.cluster.inner_address(&self.node).await;
        ensure(found.is_err(), UnprovenReason::ConnectedByOthers)
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        Ok(field.cluster.connect(&self.node).await?)
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        self.probes.work_again(field, &Expected::no_answer()).await
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        vec![Debt::Connect { node }]
    }
}
