//! What was found out before the first case, and holds for every case of a command.

use super::*;
use crate::model::AttachedServer;
use parking_lot::Mutex;

/// Everybody who plays cases in one lab sees the same.
#[derive(Default)]
pub struct Groundwork {
    /// The identity of the server that was met first where one is attached.
    servers: Mutex<BTreeMap<String, String>>,
    /// Why workers refuse cases, by the title of the case.
    refusals: Mutex<BTreeMap<String, String>>,
}

impl Groundwork {
    /// Returns an error unless this is the server that was met there first.
    pub fn meet(&self, server: &AttachedServer, identity: &str) -> Result<(), String> {
        let mut servers = self.servers.lock();
        let first = servers.entry(format!("{server:?}"));
        match first.or_insert_with(|| identity.to_owned()) == identity {
            true => Ok(()),
            false => Err(
                "it is another server than the one that was looked at first: it was started anew, or its address leads to several servers; name an address of one server, or run it again".to_owned(),
            ),
        }
    }

    pub fn refused(&self, title: String, reason: String) {
        self.refusals.lock().insert(title, reason);
    }

    pub fn refusal(&self, title: &str) -> Option<String> {
        self.refusals.lock().get(title).cloned()
    }
}
