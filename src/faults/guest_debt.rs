use super::{Proof, UnprovenReason};
use crate::cluster::find_server;
use crate::model::AttachedServer;
use crate::services::{Program, Visit};
use serde::{Deserialize, Serialize};

/// Something that a run owes to a server of somebody else's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestDebt {
    /// The name of the server's program.
    pub program: String,
    pub server: AttachedServer,
    pub prefix: String,
    /// The value that its setting had; without one, the keys with the prefix are owed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The value that it was given. With another one, it is left alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ours: Option<String>,
}

impl GuestDebt {
    pub(super) async fn pay(&self) -> Proof {
        let paid = match self.visit().await {
            Ok(visit) => match &self.setting {
                Some(value) => match &self.ours {
                    Some(ours) => visit.put_back(value, ours).await,
                    None => visit.set(value).await,
                },
                None => visit.remove().await,
            },
            Err(reason) => Err(reason),
        };
        paid.map_err(|error| UnprovenReason::Server {
            server: format!("{} ({})", self.server.place, self.words()),
            error,
        })
    }

    async fn visit(&self) -> Result<Visit, String> {
        let mut programs = Program::all().into_iter();
        let program = programs.find(|program| program.name == self.program);
        let guest = program.and_then(|program| program.guest);
        let guest = guest.ok_or_else(|| format!("`{}` is not known", self.program))?;
        let found = find_server(&self.server.place).await;
        let found = found.map_err(|error| error.to_string())?;
        guest.visit(&self.server, &found.address.to_string(), &self.prefix)
    }

    pub(super) fn words(&self) -> String {
        let place = &self.server.place;
        match &self.setting {
            Some(value) => format!("set the setting of {place} to `{value}` again"),
            None => format!("removed the keys with {} from {place}", self.prefix),
        }
    }
}
