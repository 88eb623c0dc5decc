//! Containers beside a node, for a fault or its proof.

use super::log::Printed;
use super::target::Target;
use super::{confined, container};
use crate::cluster::{ClusterError, Helper, LastLines, Rights, Shared};
use bollard::models::{ContainerCreateBody, HostConfig};
use std::time::Duration;

const HELPER_DEADLINE: Duration = Duration::from_secs(30);

/// What makes it a helper of the container `beside`. Whoever shares a network
/// has neither a host name nor ports nor hosts of its own.
pub fn beside(shares: Shared, beside: &str, body: ContainerCreateBody) -> ContainerCreateBody {
    let joined = Some(format!("container:{beside}"));
    let body = match shares {
        Shared::Network => confined::with_rights(body, &Rights::default()),
        Shared::NetworkWithFilters => confined::with_capability(body, "NET_ADMIN"),
        Shared::Processes => confined::with_capability(body, "SYS_PTRACE"),
    };
    let (network_mode, pid_mode) = match shares {
        Shared::Network | Shared::NetworkWithFilters => (joined, None),
        Shared::Processes => (Some("none".to_owned()), joined),
    };
    ContainerCreateBody {
        host_config: Some(HostConfig {
            network_mode,
            pid_mode,
            ..body.host_config.unwrap_or_default()
        }),
        ..body
    }
}

/// How a helper ended; without a code somebody removed it.
pub struct Ended {
    pub code: Option<i64>,
    pub printed: Printed,
}

/// What a created helper prints, run to its end.
pub async fn run(target: &Target, helper: &Helper) -> Result<String, ClusterError> {
    let Ended { code, printed } = run_and_remove(target).await?;
    let reason = match code {
        Some(0) => return Ok(printed.stdout),
        Some(code) => format!("exit code {code}"),
        None => "somebody removed it".to_owned(),
    };
    Err(ClusterError::Failed {
        what: format!(
            "run `{}` beside {}",
            helper.command.join(" "),
            helper.beside
        ),
        reason: reason + &LastLines::of(&printed.all).below(),
    })
}

/// Starts a created helper, and removes it when it has ended or was given up.
pub async fn run_and_remove(target: &Target) -> Result<Ended, ClusterError> {
    let ran = async {
        container::start(target, &[]).await?;
        Ok(Ended {
            code: target.exit_code(HELPER_DEADLINE).await?,
            printed: target.printed().await?,
        })
    };
    let ran = ran.await;
    let removed = target.discard().await;
    ran.and_then(|ended| removed.map(|()| ended))
}
