//! Servers that were there before, and that a run uses without having started them.

use super::docker::compose;
use super::*;
use crate::model::ServerPlace;
use serde::{Deserialize, Serialize};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// A server where it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundServer {
    /// Its address for this process.
    pub address: SocketAddr,
    /// Its container, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Its process may be stopped, ended and started.
    #[serde(default)]
    pub may_be_faulted: bool,
}

/// Finds a server that somebody answers at.
pub async fn find_server(place: &ServerPlace) -> ClusterResult<FoundServer> {
    match place {
        ServerPlace::Address { host, port } => Ok(FoundServer {
            address: answering(place, host, *port).await?,
            container: None,
            may_be_faulted: false,
        }),
        ServerPlace::Compose {
            project,
            service,
            port,
        } => {
            let found = compose::find(project, service).await?;
            Ok(FoundServer {
                address: SocketAddr::new(found.address, *port),
                container: Some(found.container),
                may_be_faulted: false,
            })
        }
    }
}

/// Returns the first address of a name at which somebody answers.
async fn answering(place: &ServerPlace, host: &str, port: u16) -> ClusterResult<SocketAddr> {
    let unusable = |reason: String| ClusterError::NoServer {
        place: place.to_string(),
        reason,
        remedy: "start it, or name another address in `attach`".to_owned(),
    };
    let found = match timeout(CONNECT_DEADLINE, lookup_host((host, port))).await {
        Ok(found) => found.map_err(|error| unusable(error.to_string()))?,
        Err(_) => return Err(unusable("its name cannot be looked up in time".to_owned())),
    };
    let mut reason = "its name has no address".to_owned();
    for address in found {
        match timeout(CONNECT_DEADLINE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return Ok(address),
            Ok(Err(error)) => reason = error.to_string(),
            Err(_) => reason = format!("no answer within {} s", CONNECT_DEADLINE.as_secs()),
        }
    }
    Err(unusable(reason))
}

/// The attached servers of a cluster, by name.
#[derive(Default)]
pub(super) struct Attachments(parking_lot::Mutex<BTreeMap<Name, FoundServer>>);

impl Attachments {
    pub fn add(&self, name: &Name, server: &FoundServer) {
        self.0.lock().insert(name.clone(), server.clone());
    }

    pub fn get(&self, name: &Name) -> Option<FoundServer> {
        self.0.lock().get(name).cloned()
    }

    pub fn address(&self, name: &Name) -> Option<SocketAddr> {
        self.get(name).map(|server| server.address)
    }
}
