//! The only access to the Docker Engine: connecting, and calling with a deadline.

use super::*;
use bollard::{API_DEFAULT_VERSION, Docker};
use std::future::Future;
use std::sync::Arc;
use tokio::sync::{Semaphore, SemaphorePermit};

const USUAL_HOST: &str = "unix:///var/run/docker.sock";
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);
/// The longest that a single answer of the engine takes; streams have deadlines of their own.
const ANSWER_DEADLINE_S: u64 = 60;
/// The number of containers that may join or leave networks at the same time. If dozens do, the
/// engine (seen with 20.10) may miscount those of a network, and then never removes it.
const AT_A_TIME: usize = 8;
const TURN_DEADLINE: Duration = Duration::from_secs(120);
pub const CALL_DEADLINE: Duration = Duration::from_secs(30);

/// A connected engine, at an API version that both sides speak.
#[derive(Clone)]
pub struct Engine {
    docker: Docker,
    turns: Arc<Semaphore>,
    /// It listens at the socket of this machine's own engine.
    pub is_usual: bool,
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
    pub async fn connect() -> ClusterResult<Engine> {
        let named = std::env::var("DOCKER_HOST").ok();
        let named = named.filter(|host| !host.is_empty());
        let is_usual = named.is_none();
        let host = named.unwrap_or_else(|| USUAL_HOST.to_owned());
        let docker = client(&host)?;
        let unreachable = |reason: String| ClusterError::Unreachable {
            host: host.clone(),
            reason,
        };
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
        Ok(Engine {
            docker,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            is_usual,
            about,
        })
    }

    pub fn docker(&self) -> &Docker {
        &self.docker
    }

    /// Returns a permit to hold while a container joins or leaves a network.
    pub async fn turn(&self) -> ClusterResult<SemaphorePermit<'_>> {
        match tokio::time::timeout(TURN_DEADLINE, self.turns.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(ClusterError::deadline(
                "the Docker Engine to be done with other containers",
                TURN_DEADLINE,
            )),
        }
    }
}

/// Creates the client. Nothing is asked yet, so an error here is about the address itself.
fn client(host: &str) -> ClusterResult<Docker> {
    let bad_host = |reason: &str| ClusterError::BadHost {
        host: host.to_owned(),
        reason: reason.to_owned(),
    };
    let (scheme, path) = host
        .split_once("://")
        .ok_or_else(|| bad_host("it is not an address"))?;
    let client = match scheme {
        "unix" => Docker::connect_with_unix(path, ANSWER_DEADLINE_S, API_DEFAULT_VERSION),
        "tcp" | "http"
            if std::env::var_os("DOCKER_TLS_VERIFY").is_some_and(|it| !it.is_empty()) =>
        {
            return Err(bad_host(
                "with DOCKER_TLS_VERIFY the engine speaks TLS, which fencepost does not",
            ));
        }
        "tcp" | "http" => Docker::connect_with_http(host, ANSWER_DEADLINE_S, API_DEFAULT_VERSION),
        "https" => return Err(bad_host("the engine speaks TLS, which fencepost does not")),
        "ssh" => {
            let reason = "nothing of a run would be on this machine; run fencepost over there";
            return Err(bad_host(&format!("{reason}: ssh {path} fencepost …")));
        }
        _ => return Err(bad_host("it is not an address of an engine")),
    };
    client.map_err(|error| ClusterError::Unreachable {
        host: host.to_owned(),
        reason: error.to_string(),
    })
}

/// Awaits one call of the engine; `what` completes "could not …".
pub async fn call<T>(
    what: &str,
    future: impl Future<Output = Result<T, Error>>,
) -> ClusterResult<T> {
    match tokio::time::timeout(CALL_DEADLINE, future).await {
        Ok(result) => result.map_err(|error| failed(what, &error)),
        Err(_) => Err(ClusterError::deadline(
            format!("the Docker Engine to {what}"),
            CALL_DEADLINE,
        )),
    }
}

pub fn failed(what: &str, error: &Error) -> ClusterError {
    ClusterError::failed(what, root_cause(error))
}

pub fn is_not_found(error: &Error) -> bool {
    is_refusal(error, 404, "")
}

/// Returns whether the engine answered with this status, and these words.
pub fn is_refusal(error: &Error, status: u16, words: &str) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code, message }
        if *status_code == status && message.contains(words))
}

/// Returns the answer; None if the engine says that the thing is not there.
pub async fn if_there<T>(
    asked: impl Future<Output = Result<T, Error>>,
) -> Result<Option<T>, Error> {
    match asked.await {
        Err(error) if is_not_found(&error) => Ok(None),
        other => other.map(Some),
    }
}

pub fn label_filter(label: &str) -> HashMap<String, Vec<String>> {
    HashMap::from([("label".to_owned(), vec![label.to_owned()])])
}

/// Returns the innermost message: "No such file or directory" says more than
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
