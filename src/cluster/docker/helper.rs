//! Containers beside a node, for a fault or its proof.

use super::*;
use crate::cluster::{LastLines, Rights, Shared};

const HELPER_DEADLINE: Duration = Duration::from_secs(30);

/// Makes the container a helper of the container `beside`. A container that shares a network has
/// no host name, ports or hosts of its own.
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

/// The end of a helper; without a code somebody removed it.
pub struct HelperExit {
    pub code: Option<i64>,
    pub printed: ContainerOutput,
}

/// Runs a created helper to its end; returns what it prints.
pub async fn run(target: &Target, helper: &Helper) -> ClusterResult<String> {
    let HelperExit { code, printed } = run_and_remove(target).await?;
    let reason = match code {
        Some(0) => return Ok(printed.stdout),
        Some(code) => format!("exit code {code}"),
        None => "somebody removed it".to_owned(),
    };
    Err(ClusterError::failed(
        format!(
            "run `{}` beside {}",
            helper.command.join(" "),
            helper.beside
        ),
        reason + &LastLines::of(&printed.all).below(),
    ))
}

/// Starts a created helper, and removes it when it has ended or was given up.
pub async fn run_and_remove(target: &Target) -> ClusterResult<HelperExit> {
    let ran = async {
        container::start(target, &[]).await?;
        Ok(HelperExit {
            code: target.exit_code(HELPER_DEADLINE).await?,
            printed: target.printed().await?,
        })
    };
    let ran = ran.await;
    let removed = target.discard().await;
    ran.and_then(|ended| removed.map(|()| ended))
}
