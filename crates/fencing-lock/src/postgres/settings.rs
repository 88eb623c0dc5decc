use std::time::Duration;

/// The time limits of a Postgres backend.
#[derive(Clone, Copy, Debug)]
pub struct PostgresSettings {
    pub connect_timeout: Duration,
    /// Checked ten times in that time, so the wait can be a tenth longer. A grant is on
    /// disk before it is answered, and a disk can be slow.
    pub response_timeout: Duration,
}

impl Default for PostgresSettings {
    fn default() -> PostgresSettings {
        PostgresSettings {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(2),
        }
    }
}
