use super::super::field::Field;
use super::Harm;
use super::process::state;
use super::restarted::{runs_anew, start_again};
use crate::model::Name;
use async_trait::async_trait;

/// 128 and the number of SIGKILL.
const KILLED: i64 = 137;

/// SIGKILL, proven when the process was seen to have ended by it.
pub struct Killed {
    node: Name,
    started_at: String,
}

impl Killed {
    pub fn new(node: Name) -> Killed {
        let started_at = String::new();
        Killed { node, started_at }
    }
}

#[async_trait]
impl Harm for Killed {
    async fn look(&mut self, field: &Field) -> Result<(), String> {
        let state = state(field, &self.node).await?;
        self.started_at = state.started_at;
        match state.running {
            true => Ok(()),
            false => Err("it had ended already".to_owned()),
        }
    }

    async fn inflict(&mut self, field: &Field) -> Result<(), String> {
        let killed = field.cluster.kill(&self.node).await;
        killed.map_err(|error| error.to_string())
    }

    async fn bitten(&mut self, field: &Field) -> Result<String, String> {
        let state = state(field, &self.node).await?;
        match (state.running, state.exit_code) {
            (false, Some(KILLED)) => Ok("its process ended by SIGKILL".to_owned()),
            (false, code) => Err(format!(
                "its process ended by itself, with exit code {}",
                code.unwrap_or_default()
            )),
            (true, _) => Err("its process still runs".to_owned()),
        }
    }

    async fn stands(&mut self, field: &Field) -> Result<(), String> {
        match state(field, &self.node).await?.running {
            true => Err("somebody else has started it again".to_owned()),
            false => Ok(()),
        }
    }

    async fn undo(&mut self, field: &Field) -> Result<(), String> {
        start_again(field, &self.node).await
    }

    async fn undone(&mut self, field: &Field) -> Result<String, String> {
        runs_anew(field, &self.node, &self.started_at).await
    }
}
