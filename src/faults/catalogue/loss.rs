use super::*;
use crate::yaml::Value;

pub const DROP: Form = Form {
    read: |_, _| lost(100),
    done: |_, node| format!("drop every packet between {node} and the other nodes"),
    proven: "when no probe gets through any more",
    ..LOSS_OF_SOME
};

pub const LOSS: Form = Form {
    keys: || {
        let percent = json!({ "type": "integer", "minimum": 1, "maximum": 99 });
        vec![vec![Key::required("percent", percent)]]
    },
    ..LOSS_OF_SOME
};

const LOSS_OF_SOME: Form = Form {
    read,
    done: |lost, node| {
        let percent = lost.percent.unwrap_or_default();
        format!("lose {percent} % of the packets of {node}")
    },
    proven: "when some of many probes get lost",
    need: Some(Need::PacketFilters),
    injection: |fault| {
        Box::new(Lossy {
            node: fault.node,
            percent: fault.parameters.percent.unwrap_or_default(),
            probes: Probes::default(),
        })
    },
    ..Form::PLAIN
};

fn lost(percent: u8) -> Option<Effect> {
    Some(Effect::Node(FaultParameters {
        percent: Some(percent),
        ..FaultParameters::default()
    }))
}

fn read(fields: &mut Fields<'_>, report: &mut Report) -> Option<Effect> {
    let node = fields.required("percent", report)?;
    if matches!(&node.value, Value::Scalar(text) if text == "100") {
        let message = "losing every packet has a name of its own: use `drop`";
        report.add(node.place, message);
        return None;
    }
    lost(number(node, "percent", 1..=99, report)?.value as u8)
}

/// The largest number of rounds of probes that are sent until a packet was lost.
const MOST_ROUNDS: usize = 100;

/// A node that loses packets to and from the other nodes, but not to and from the harness.
/// The count of the filter proves it, and probes as well if all packets get lost.
struct Lossy {
    node: Name,
    percent: u8,
    probes: Probes,
}

#[async_trait]
impl Injection for Lossy {
    async fn prepare(&mut self, field: &Field) -> Proof {
        probes::prepare_around(field, &self.node).await?;
        field.packet_filters.call(&self.node).await
    }

    async fn look_before(&mut self, field: &Field) -> Proof {
        let is_clear = field.packet_filters.is_clear(&self.node).await?;
        ensure(is_clear, UnprovenReason::LossyAlready)?;
        self.probes = Probes::around(field, &self.node).await?;
        Ok(())
    }

    async fn inject(&mut self, field: &Field) -> Proof {
        let filters = &field.packet_filters;
        filters.lose(&self.node, self.percent).await
    }

    async fn verify(&mut self, field: &Field) -> Proof<String> {
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
            0 => Err(UnprovenReason::NothingDropped { seen }),
            lost => Ok(format!("{seen}; {lost} packet(s) were dropped")),
        }
    }

    async fn verify_active(&mut self, field: &Field) -> Proof {
        let is_clear = field.packet_filters.is_clear(&self.node).await?;
        ensure(!is_clear, UnprovenReason::ClearedByOthers)
    }

    async fn undo(&mut self, field: &Field) -> Proof {
        field.packet_filters.clear(&self.node).await
    }

    async fn verify_undone(&mut self, field: &Field) -> Proof<String> {
        let is_clear = field.packet_filters.is_clear(&self.node).await?;
        ensure(is_clear, UnprovenReason::FilterLeft)?;
        self.probes.work_again(field, &Expected::no_answer()).await
    }

    fn debts(&self) -> Vec<Debt> {
        let node = self.node.clone();
        vec![Debt::Filters { node }]
    }
}
