//! The one door to the Docker Engine: connecting, and calling with a deadline.

use crate::cluster::ClusterError;
use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// No single answer of the engine takes longer; streams have deadlines of their own.
const ANSWER_DEADLINE_S: u64 = 60;
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// A connected engine, at an API version that both sides speak.
#[derive(Clone)]
pub struct Engine {
    docker: Docker,
    /// Versions, for the `environment` of a result.
    pub about: EngineAbout,
}

#[derive(Clone, Debug, Default)]
pub struct EngineAbout {
    pub host: String,
    pub version: String,
    pub api: String,
    pub kernel: String,
    pub arch: String,
}

impl Engine {
    pub async fn connect() -> Result<Engine, ClusterError> {
        let host = std::env::var("DOCKER_HOST")
            .ok()
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| "unix:///var/run/docker.sock".to_owned());
        let unreachable = |reason: String| ClusterError::Unreachable {
            host: host.clone(),
            reason,
        };
        let docker = match host.strip_prefix("unix://") {
            Some(path) => Docker::connect_with_unix(path, ANSWER_DEADLINE_S, API_DEFAULT_VERSION),
            None => Docker::connect_with_host(&host),
        };
        let docker = docker.map_err(|error| unreachable(error.to_string()))?;
        let negotiated = async {
            let docker = docker.negotiate_version().await?;
            let version = docker.version().await?;
            Ok::<_, Error>((docker, version))
        };
        let (docker, version) = tokio::time::timeout(CONNECT_DEADLINE, negotiated)
            .await
            .map_err(|_| unreachable(format!("no answer in {} s", CONNECT_DEADLINE.as_secs())))?
            .map_err(|error| unreachable(root_cause(&error)))?;
        let client = docker.client_version();
        let about = EngineAbout {
            host,
            version: version.version.unwrap_or_default(),
            api: format!("{}.{}", client.major_version, client.minor_version),
            kernel: version.kernel_version.unwrap_or_default(),
            arch: version.arch.unwrap_or_default(),
        };
        Ok(Engine { docker, about })
    }

    pub fn docker(&self) -> &Docker {
        &self.docker
    }
}

/// Awaits one call of the engine; `what` completes "could not …".
pub async fn call<T>(
    what: &str,
    future: impl Future<Output = Result<T, Error>>,
) -> Result<T, ClusterError> {
    match tokio::time::timeout(CALL_DEADLINE, future).await {
        Ok(result) => result.map_err(|error| failed(what, &error)),
        Err(_) => Err(ClusterError::Deadline {
            what: format!("the Docker Engine to {what}"),
            after: CALL_DEADLINE,
        }),
    }
}

pub fn failed(what: &str, error: &Error) -> ClusterError {
    ClusterError::Failed {
        what: what.to_owned(),
        reason: root_cause(error),
    }
}

/// The engine answered that the thing is not there.
pub fn is_not_found(error: &Error) -> bool {
    matches!(
        error,
        Error::DockerResponseServerError {
            status_code: 404,
            ..
        }
    )
}

/// Labels as the filter of a listing.
pub fn label_filter(label: &str) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![label.to_owned()])])
}

/// The innermost message: "No such file or directory" says more than
/// "client error (Connect)".
fn root_cause(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
