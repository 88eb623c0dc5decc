//! A replica has what its primary had a moment ago. The primary sends everything once, and then
//! what each command changed, after it has answered the command.
//!
//! The frames are this crate's own: commands of which a replica has the effect, not the words.

use crate::client::{Client, Outbox};
use crate::keyspace::{Bytes, Entry, Value};
use crate::notify::Class;
use crate::reply::Reply;
use crate::state::State;
use crate::{Change, Redis, request};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Where a server gets its data from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    #[default]
    Primary,
    Replica {
        host: String,
        port: u16,
        /// It has had everything of the primary once.
        is_synced: bool,
    },
}

/// The replicas that are connected.
pub(crate) type Replicas = BTreeMap<u64, Arc<Outbox>>;

const WHOLE: &[u8] = b"whole";
const CHANGES: &[u8] = b"changes";

impl State {
    pub(crate) fn is_replica(&self) -> bool {
        self.role != Role::Primary
    }

    /// Sends everything to a client, and what changes from then on.
    pub(crate) fn begin_replica(&mut self, client: &Client) {
        client.outbox.push(self.whole());
        self.replicas.insert(client.id, client.outbox.clone());
    }

    pub(crate) fn send_whole(&self) {
        for replica in self.replicas.values() {
            replica.push(self.whole());
        }
    }

    pub(crate) fn send_changes(&self, changes: &[(Class, Change)]) {
        if self.replicas.is_empty() || changes.is_empty() {
            return;
        }
        let mut words = vec![CHANGES.to_vec()];
        for (class, change) in changes {
            // A replica deletes what has ended at its primary.
            let (class, event) = match class {
                Class::Expired => (Class::Generic, "del"),
                class => (*class, &*change.event),
            };
            words.push(class.letter().to_string().into_bytes());
            words.push(event.as_bytes().to_vec());
            self.put_key(&mut words, change.db, &change.key);
        }
        let frame = Reply::bulks(words);
        for replica in self.replicas.values() {
            replica.push(frame.clone());
        }
    }

    fn whole(&self) -> Reply {
        let mut words = vec![WHOLE.to_vec()];
        for (db, keys) in self.databases.iter().enumerate() {
            for key in keys.keys() {
                self.put_key(&mut words, db, key);
            }
        }
        Reply::bulks(words)
    }

    /// Writes a key with what it has now.
    fn put_key(&self, words: &mut Vec<Bytes>, db: usize, key: &[u8]) {
        words.push(db.to_string().into_bytes());
        words.push(key.to_vec());
        let Some(Entry { value, ends_ms }) = self.databases[db].entry(key) else {
            return words.push(b"-".to_vec());
        };
        let items: Vec<Bytes> = match value {
            Value::Text(text) => vec![text.clone()],
            Value::Hash(fields) => fields
                .iter()
                .flat_map(|(field, value)| [field.clone(), value.clone()])
                .collect(),
            Value::List(items) => items.iter().cloned().collect(),
        };
        let ends = ends_ms.map_or_else(|| "-".to_owned(), |ends_ms| ends_ms.to_string());
        words.extend([
            value.kind().into(),
            ends.into(),
            items.len().to_string().into(),
        ]);
        words.extend(items);
    }

    /// Carries out a frame of the primary.
    fn follow(&mut self, words: Vec<Bytes>) -> Option<()> {
        let mut words = words.into_iter();
        let is_whole = words.next()? == WHOLE;
        if is_whole {
            self.clear();
        }
        while let Some(first) = words.next() {
            if is_whole {
                self.take_key(first, &mut words)?;
                continue;
            }
            let class = Class::of_letter(char::from(*first.first()?))?;
            let event = String::from_utf8(words.next()?).ok()?;
            let db = words.next()?;
            let (db, key) = self.take_key(db, &mut words)?;
            self.changed(db, class, event, &key);
        }
        self.report();
        if let Role::Replica { is_synced, .. } = &mut self.role {
            *is_synced = true;
            self.role_changed.notify_waiters();
        }
        Some(())
    }

    fn take_key(
        &mut self,
        db: Bytes,
        words: &mut impl Iterator<Item = Bytes>,
    ) -> Option<(usize, Bytes)> {
        let db: usize = number(&db)?;
        let key = words.next()?;
        let keys = self.databases.get_mut(db)?;
        let kind = words.next()?;
        if kind == b"-" {
            keys.remove(&key);
            return Some((db, key));
        }
        let ends_ms = number(&words.next()?);
        let count: usize = number(&words.next()?)?;
        let mut items = words.take(count);
        let value = match kind.as_slice() {
            b"string" => Value::Text(items.next()?),
            b"list" => Value::List(items.collect()),
            b"hash" => {
                let mut fields = BTreeMap::new();
                while let Some(field) = items.next() {
                    fields.insert(field, items.next()?);
                }
                Value::Hash(fields)
            }
            _ => return None,
        };
        keys.set(&key, value);
        keys.set_end(&key, ends_ms);
        Some((db, key))
    }
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    str::from_utf8(word).ok()?.parse().ok()
}

impl Redis {
    /// Makes it a replica; somebody has to let it [`follow`](Redis::follow) its primary.
    pub fn replicate(&self, host: &str, port: u16) {
        self.state.lock().role = Role::Replica {
            host: host.to_owned(),
            port,
            is_synced: false,
        };
    }

    /// Returns the primary of a replica.
    pub fn primary(&self) -> Option<(String, u16)> {
        match &self.state.lock().role {
            Role::Primary => None,
            Role::Replica { host, port, .. } => Some((host.clone(), *port)),
        }
    }

    /// Waits until it has had everything of its primary once, or is none.
    pub async fn synced(&self) {
        loop {
            let bell = self.state.lock().role_changed.clone();
            let rings = bell.notified();
            let waits = matches!(
                self.state.lock().role,
                Role::Replica {
                    is_synced: false,
                    ..
                }
            );
            if !waits {
                return;
            }
            rings.await;
        }
    }

    /// Follows the primary over a connection to it, until the connection ends, or it is no
    /// replica any more.
    pub async fn follow(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        stream
            .write_all(b"*3\r\n$5\r\nPSYNC\r\n$1\r\n?\r\n$2\r\n-1\r\n")
            .await?;
        let bell = self.state.lock().role_changed.clone();
        let mut received = Vec::new();
        let mut is_greeted = false;
        while self.primary().is_some() {
            if !is_greeted && let Some(end) = received.windows(2).position(|two| two == b"\r\n") {
                received.drain(..end + 2);
                is_greeted = true;
            }
            let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
            while is_greeted && let Some(words) = request::take(&mut received).map_err(wrong)? {
                let followed = self.state.lock().follow(words);
                followed.ok_or_else(|| wrong("this is no frame of a primary".to_owned()))?;
            }
            tokio::select! {
                biased;
                () = bell.notified() => {}
                count = stream.read_buf(&mut received) => {
                    if count? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            }
        }
        Ok(())
    }
}
