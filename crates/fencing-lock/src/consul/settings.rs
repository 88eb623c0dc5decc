use std::fmt;
use std::time::Duration;

/// The time limits of a Consul backend, and how its sessions are made.
#[derive(Clone)]
pub struct ConsulSettings {
    pub connect_timeout: Duration,
    /// A server without a leader answers only after an election, or after 7 s.
    pub response_timeout: Duration,
    /// How long the server grants the lock to nobody after a session was invalidated that
    /// held it; not after a release. Consul's own default is 15 s, and more than 60 s counts
    /// as 60 s. It gives a holder time that does not look at its own deadline; ours does, so
    /// it is 0 by default.
    pub lock_delay: Duration,
    /// The ACL token of every request, if the server asks for one. It needs `key:write` for
    /// `locks/` and `session:write`.
    pub acl_token: Option<String>,
}

impl Default for ConsulSettings {
    fn default() -> ConsulSettings {
        ConsulSettings {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(2),
            lock_delay: Duration::ZERO,
            acl_token: None,
        }
    }
}

impl fmt::Debug for ConsulSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsulSettings")
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("lock_delay", &self.lock_delay)
            .field("acl_token", &self.acl_token.as_ref().map(|_| "***"))
            .finish()
    }
}
