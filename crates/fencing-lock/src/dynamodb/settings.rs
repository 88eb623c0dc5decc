use std::fmt;
use std::time::Duration;

/// The table, the credentials and the time limits of a DynamoDB backend.
#[derive(Clone, Debug)]
pub struct DynamoDbSettings {
    pub region: String,
    pub credentials: AwsCredentials,
    /// It is created at the first use if it is missing and the credentials allow it.
    pub table: String,
    pub connect_timeout: Duration,
    /// Checked ten times in that time, so the wait can be a tenth longer. A request that is
    /// not answered is sent again, twice at most.
    pub response_timeout: Duration,
}

/// The key that requests are signed with.
#[derive(Clone)]
pub struct AwsCredentials {
    pub access_key: String,
    pub secret_key: String,
    /// Temporary credentials have one.
    pub session_token: Option<String>,
}

impl DynamoDbSettings {
    pub const TABLE: &str = "fencing_locks";

    pub fn new(region: impl Into<String>, credentials: AwsCredentials) -> DynamoDbSettings {
        DynamoDbSettings {
            region: region.into(),
            credentials,
            table: DynamoDbSettings::TABLE.to_owned(),
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
        }
    }

    /// Reads the variables that AWS's own programs read: `AWS_REGION` or
    /// `AWS_DEFAULT_REGION` (else it is us-east-1), `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`. Returns `None` without a key.
    pub fn from_environment() -> Option<DynamoDbSettings> {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION"));
        let credentials = AwsCredentials {
            access_key: set("AWS_ACCESS_KEY_ID")?,
            secret_key: set("AWS_SECRET_ACCESS_KEY")?,
            session_token: set("AWS_SESSION_TOKEN"),
        };
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        Some(DynamoDbSettings::new(region, credentials))
    }
}

impl AwsCredentials {
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> AwsCredentials {
        AwsCredentials {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
        }
    }
}

impl fmt::Debug for AwsCredentials {
    /// Shows no secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsCredentials")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}
