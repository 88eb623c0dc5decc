//! Servers that are there already, and that a scenario uses in the place of a topology's own.

use super::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    pub servers: BTreeMap<Name, AttachedServer>,
    /// The servers whose processes faults may stop and end.
    pub allow_faults_on: Vec<Name>,
    /// The servers whose settings may be changed for as long as a case runs.
    pub allow_settings_on: Vec<Name>,
}

impl Attach {
    pub fn may_be_faulted(&self, server: &str) -> bool {
        self.allow_faults_on.iter().any(|name| *name == *server)
    }

    pub fn may_be_set(&self, server: &str) -> bool {
        self.allow_settings_on.iter().any(|name| *name == *server)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachedServer {
    pub place: ServerPlace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<Login>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerPlace {
    Address {
        host: String,
        port: u16,
    },
    /// The one container of a service in a Compose project.
    Compose {
        project: String,
        service: String,
        port: u16,
    },
}

impl AttachedServer {
    /// Returns the same server by the address that its name led to: a name may lead elsewhere later.
    pub fn at(&self, address: SocketAddr) -> AttachedServer {
        let place = match &self.place {
            ServerPlace::Address { .. } => ServerPlace::Address {
                host: address.ip().to_string(),
                port: address.port(),
            },
            // Its container may get another address, and is found by its labels.
            service @ ServerPlace::Compose { .. } => service.clone(),
        };
        AttachedServer {
            place,
            ..self.clone()
        }
    }
}

/// A user and the variable of the environment that has the password: a file and the results of a
/// run never hold the password itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub user: String,
    pub password_in: Option<String>,
}

impl ServerPlace {
    pub fn port(&self) -> u16 {
        match self {
            ServerPlace::Address { port, .. } | ServerPlace::Compose { port, .. } => *port,
        }
    }
}

impl fmt::Display for ServerPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerPlace::Address { host, port } if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            ServerPlace::Address { host, port } => write!(f, "{host}:{port}"),
            ServerPlace::Compose {
                project, service, ..
            } => write!(f, "the Compose service {project}/{service}"),
        }
    }
}

impl ServerPlace {
    /// Reads `host:port`; a host of IPv6 is in brackets.
    pub fn parse_address(text: &str) -> Option<ServerPlace> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port| *port > 0)?;
        let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_host = match inner {
            Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let letters = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                !host.is_empty() && host.chars().all(letters)
            }
        };
        let host = inner.unwrap_or(host).to_owned();
        is_host.then_some(ServerPlace::Address { host, port })
    }
}

impl Login {
    /// Reads `user`, `user:${VARIABLE}` or `:${VARIABLE}`; None for anything else, such as a
    /// password that stands there itself.
    pub fn parse(text: &str) -> Option<Login> {
        let (user, password) = match text.split_once(':') {
            Some((user, password)) => (user, Some(password)),
            None => (text, None),
        };
        let password_in = match password {
            None => None,
            Some(password) => Some(variable(password)?.to_owned()),
        };
        let is_user = !user.chars().any(|c| c.is_control() || c.is_whitespace());
        let says_something = !user.is_empty() || password_in.is_some();
        (is_user && says_something).then(|| Login {
            user: user.to_owned(),
            password_in,
        })
    }
}

/// Returns the name in `${NAME}`.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (name.starts_with(begins) && name.chars().all(letters)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["127.0.0.1:6379", "redis.staging:1", "[::1]:6379", "a_b:7"] {
            let place = ServerPlace::parse_address(good);
            assert_eq!(place.expect(good).to_string(), good);
        }
        for bad in ["", "redis", "redis:", ":6379", "a:0", "a:66000", "a b:1"] {
            assert_eq!(ServerPlace::parse_address(bad), None, "{bad}");
        }
        for bad in ["redis://h:1", "u@h:1", "[x]:1", "::1:6379"] {
            assert_eq!(ServerPlace::parse_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_login_names_where_its_password_is() {
        let login = |user: &str, password_in: Option<&str>| {
            Some(Login {
                user: user.to_owned(),
                password_in: password_in.map(str::to_owned),
            })
        };
        assert_eq!(Login::parse("me"), login("me", None));
        assert_eq!(Login::parse("me:${PW}"), login("me", Some("PW")));
        assert_eq!(Login::parse(":${PW_2}"), login("", Some("PW_2")));
        for bad in ["", ":", "me:", "me:s3cret", "me:${}", "me:${1}", "m e"] {
            assert_eq!(Login::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_server_is_pinned_to_the_address_that_its_name_led_to() {
        let server = |place| AttachedServer {
            place,
            login: None,
            database: None,
        };
        let named = server(ServerPlace::Address {
            host: "db".to_owned(),
            port: 5432,
        });
        let found = "[::1]:5432".parse().unwrap();
        assert_eq!(named.at(found).place.to_string(), "[::1]:5432");
        let service = server(ServerPlace::Compose {
            project: "shop".to_owned(),
            service: "db".to_owned(),
            port: 5432,
        });
        assert_eq!(service.at(found), service);
    }
}
