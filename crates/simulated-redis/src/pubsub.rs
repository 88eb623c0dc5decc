//! Who listens to what.

use crate::client::Outbox;
use crate::glob;
use crate::keyspace::Bytes;
use crate::reply::Reply;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Listeners {
    all: BTreeMap<u64, Listener>,
}

struct Listener {
    outbox: Arc<Outbox>,
    channels: Vec<Bytes>,
    patterns: Vec<Bytes>,
}

/// Whether names are channels or patterns of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    Channels,
    Patterns,
}

impl Listener {
    fn names(&mut self, names: Names) -> &mut Vec<Bytes> {
        match names {
            Names::Channels => &mut self.channels,
            Names::Patterns => &mut self.patterns,
        }
    }

    fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }
}

impl Listeners {
    pub(crate) fn connect(&mut self, client: u64, outbox: &Arc<Outbox>) {
        let listener = Listener {
            outbox: outbox.clone(),
            channels: Vec::new(),
            patterns: Vec::new(),
        };
        self.all.insert(client, listener);
    }

    pub(crate) fn disconnect(&mut self, client: u64) {
        self.all.remove(&client);
    }

    /// Ends every connection.
    pub(crate) fn end_all(&mut self) {
        for listener in std::mem::take(&mut self.all).into_values() {
            listener.outbox.end();
        }
    }

    /// Returns how many channels and patterns a client listens to.
    pub(crate) fn count(&self, client: u64) -> usize {
        self.all.get(&client).map_or(0, Listener::count)
    }

    pub(crate) fn add(&mut self, client: u64, names: Names, name: &[u8]) {
        if let Some(listener) = self.all.get_mut(&client) {
            let names = listener.names(names);
            if !names.iter().any(|known| known == name) {
                names.push(name.to_vec());
            }
        }
    }

    pub(crate) fn remove(&mut self, client: u64, names: Names, name: &[u8]) {
        if let Some(listener) = self.all.get_mut(&client) {
            listener.names(names).retain(|known| known != name);
        }
    }

    pub(crate) fn of(&mut self, client: u64, names: Names) -> Vec<Bytes> {
        let listener = self.all.get_mut(&client);
        listener.map_or_else(Vec::new, |listener| listener.names(names).clone())
    }

    /// Sends a message; returns how often it was received.
    pub(crate) fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        let bulk = |bytes: &[u8]| Reply::Bulk(bytes.to_vec());
        let mut received = 0;
        for listener in self.all.values() {
            if listener.channels.iter().any(|known| known == channel) {
                let words = vec![Reply::text("message"), bulk(channel), bulk(message)];
                listener.outbox.push(Reply::Push(words));
                received += 1;
            }
        }
        for listener in self.all.values() {
            let patterns = listener.patterns.iter();
            for pattern in patterns.filter(|pattern| glob::fits(pattern, channel)) {
                let kind = Reply::text("pmessage");
                let words = vec![kind, bulk(pattern), bulk(channel), bulk(message)];
                listener.outbox.push(Reply::Push(words));
                received += 1;
            }
        }
        received
    }
}
