use std::time::Duration;

/// The time limits of a MariaDB backend.
#[derive(Clone, Copy, Debug)]
pub struct MariadbSettings {
    pub connect_timeout: Duration,
    /// A token is on disk before it is answered, and a disk can be slow.
    pub response_timeout: Duration,
}

impl Default for MariadbSettings {
    fn default() -> MariadbSettings {
        MariadbSettings {
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(2),
        }
    }
}
