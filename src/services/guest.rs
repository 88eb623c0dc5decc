//! A guest at servers of somebody else: what is looked at before anything is written, where the keys
//! of a run are, and how they are removed.

use crate::model::{AttachedServer, Login};
pub use fencing_lock::LockProblem;
use futures_util::future::BoxFuture;
use std::time::Duration;
use tokio::time::timeout;

/// The limit for removing the keys of a run. A server with very many keys takes long to look
/// through.
const REMOVE_WITHIN: Duration = Duration::from_secs(120);
/// The limit for everything else that a guest asks for.
pub(super) const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How a program's servers are used by somebody who may leave nothing there.
pub struct Guest {
    /// The port of its servers, unless another is named.
    pub port: u16,
    pub has_login: bool,
    pub has_database: bool,
    /// Returns what a run with this prefix writes there, in words.
    pub writes: fn(&str) -> String,
    /// The setting without which a server does not report what happens to its keys.
    pub setting: Option<GuestSetting>,
    /// The locks of other libraries can be watched there too.
    pub sees_others: bool,
    /// Returns the variables by which a client of another library keeps to the run's own place.
    pub(super) environment: fn(&str) -> Vec<(&'static str, String)>,
    pub(super) url: fn(&Door<'_>) -> String,
    pub(super) look: for<'a> fn(&'a str) -> Asked<'a, Sighting>,
    pub(super) begin: for<'a> fn(&'a str, &'a str) -> Asked<'a, ()>,
    pub(super) remove: for<'a> fn(&'a str, &'a str) -> Asked<'a, ()>,
}

pub struct GuestSetting {
    pub name: &'static str,
    pub is_enough: fn(&str) -> bool,
    /// Returns a value that is enough and has everything that this one has.
    pub enough: fn(&str) -> String,
    /// Returns whether a server takes two values for the same.
    pub(super) is_same: fn(&str, &str) -> bool,
    pub(super) read: for<'a> fn(&'a str) -> Asked<'a, String>,
    pub(super) write: for<'a> fn(&'a str, &'a str) -> Asked<'a, ()>,
}

pub(super) type Asked<'a, T> = BoxFuture<'a, Result<T, LockProblem>>;

/// What was seen of a server before anything was written there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// What tells it from every other server; it changes when the server is restarted.
    pub identity: String,
    pub version: String,
    /// The signs that somebody depends on it: `57 other clients`.
    pub signs: Vec<String>,
}

/// Everything that an address is made of.
pub(super) struct Door<'a> {
    /// `host:port`.
    pub(super) server: &'a str,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) database: Option<String>,
    pub(super) prefix: &'a str,
}

/// The stay of one run at one server.
#[derive(Clone)]
pub struct Visit {
    guest: &'static Guest,
    server: AttachedServer,
    /// The address for this process.
    url: String,
    pub prefix: String,
}

impl Guest {
    /// Returns the stay of a run whose keys begin so, at the server at this `host:port`.
    pub fn visit(
        &'static self,
        server: &AttachedServer,
        at: &str,
        prefix: &str,
    ) -> Result<Visit, String> {
        Ok(Visit {
            url: self.url(server, at, prefix)?,
            guest: self,
            server: server.clone(),
            prefix: prefix.to_owned(),
        })
    }

    fn url(&self, server: &AttachedServer, at: &str, prefix: &str) -> Result<String, String> {
        let login = server.login.as_ref();
        let password = match login.and_then(|login| login.password_in.as_ref()) {
            None => None,
            Some(variable) => Some(std::env::var(variable).map_err(|_| {
                format!(
                    "the password is to be in the variable {variable}, which is not set; set it"
                )
            })?),
        };
        let user = login.map(|Login { user, .. }| user.clone());
        Ok((self.url)(&Door {
            server: at,
            user: user.filter(|user| !user.is_empty()),
            password,
            database: server.database.clone(),
            prefix,
        }))
    }
}

impl Visit {
    /// Returns the stay at this address, where the same server is now.
    pub fn moved_to(&self, at: &str) -> Result<Visit, String> {
        self.guest.visit(&self.server, at, &self.prefix)
    }

    /// Returns the address for this process.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address for a worker of ours that finds the server at this `host:port`.
    pub fn url_at(&self, at: &str) -> Result<String, String> {
        self.guest.url(&self.server, at, &self.prefix)
    }

    /// Looks at the server, and changes nothing.
    pub async fn look(&self) -> Result<Sighting, String> {
        in_time(ANSWER_WITHIN, (self.guest.look)(&self.url)).await
    }

    /// Returns the variables by which a client of another library keeps to the run's own place.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        (self.guest.environment)(&self.prefix)
    }

    /// Makes the place for the keys of the run, if the server needs one.
    pub async fn begin(&self) -> Result<(), String> {
        in_time(ANSWER_WITHIN, (self.guest.begin)(&self.url, &self.prefix)).await
    }

    /// Removes every key of the run; it is fine if there is none.
    pub async fn remove(&self) -> Result<(), String> {
        in_time(REMOVE_WITHIN, (self.guest.remove)(&self.url, &self.prefix)).await
    }

    /// Returns the value of the setting on which watching depends, if there is one.
    pub async fn setting(&self) -> Result<Option<String>, String> {
        match &self.guest.setting {
            None => Ok(None),
            Some(setting) => {
                let read = in_time(ANSWER_WITHIN, (setting.read)(&self.url)).await;
                read.map(Some)
            }
        }
    }

    /// Puts a value back, if the server still has the one that we gave it: it may be another server
    /// now, or somebody else may have changed it since.
    pub async fn put_back(&self, before: &str, ours: &str) -> Result<(), String> {
        let now = self.setting().await?;
        match (&self.guest.setting, now) {
            (Some(setting), Some(now)) if (setting.is_same)(&now, ours) => self.set(before).await,
            _ => Ok(()),
        }
    }

    pub async fn set(&self, value: &str) -> Result<(), String> {
        match &self.guest.setting {
            None => Ok(()),
            Some(setting) => in_time(ANSWER_WITHIN, (setting.write)(&self.url, value)).await,
        }
    }
}

async fn in_time<T>(limit: Duration, asked: Asked<'_, T>) -> Result<T, String> {
    match timeout(limit, asked).await {
        Ok(answer) => answer.map_err(|problem| problem.to_string()),
        Err(_) => Err(format!("no answer within {} s", limit.as_secs())),
    }
}

/// Escapes everything that has a meaning in a URL.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                escaped.push(byte as char);
            }
            _ => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}

/// Returns `user:password@`, as far as there is any.
pub(super) fn userinfo(door: &Door<'_>) -> String {
    let user = door.user.as_deref().map(escaped).unwrap_or_default();
    match &door.password {
        Some(password) => format!("{user}:{}@", escaped(password)),
        None if user.is_empty() => String::new(),
        None => format!("{user}@"),
    }
}

/// Returns `1 key` or `2 keys`; None for none.
pub(super) fn counted(count: u64, one: &str, many: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {many}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ServerPlace;
    use crate::services::Backend;

    fn server(login: Option<&str>, database: Option<&str>) -> AttachedServer {
        AttachedServer {
            place: ServerPlace::Address {
                host: "h".to_owned(),
                port: 1,
            },
            login: login.and_then(Login::parse),
            database: database.map(str::to_owned),
        }
    }

    fn guest(backend: Backend) -> &'static Guest {
        backend.servers().program.guest.expect("it has guests")
    }

    #[test]
    fn addresses_have_the_form_that_the_clients_know() {
        let plain = server(None, None);
        let redis = guest(Backend::Redis)
            .visit(&plain, "h:1", "fencepost-7-")
            .unwrap();
        assert_eq!(redis.url(), "redis://h:1");
        let etcd = guest(Backend::Etcd)
            .visit(&plain, "h:1", "fencepost-7-")
            .unwrap();
        assert_eq!(etcd.url(), "h:1");
        let postgres = guest(Backend::PostgresLease)
            .visit(&server(Some("me"), Some("shop")), "h:1", "fencepost-7-")
            .unwrap();
        assert_eq!(
            postgres.url_at("db:5432").unwrap(),
            "postgres://me@db:5432/shop?options=-csearch_path%3Dfencepost_7%20-cfencing_lock.observed%3Don"
        );
    }

    #[test]
    fn a_password_comes_from_the_environment_and_nothing_in_it_is_taken_for_the_address() {
        let with = server(Some("me:${PATH}"), None);
        let url = guest(Backend::Redis).visit(&with, "h:1", "p").unwrap().url;
        let (password, at) = url.split_once('@').unwrap();
        assert_eq!(at, "h:1");
        assert!(password.starts_with("redis://me:%2F"), "{password}");
        let without = server(Some("me:${FENCEPOST_NOT_SET}"), None);
        let unset = guest(Backend::Redis)
            .visit(&without, "h:1", "p")
            .err()
            .unwrap();
        assert!(unset.contains("FENCEPOST_NOT_SET"), "{unset}");
    }
}
