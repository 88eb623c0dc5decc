//! The process of a container: signals to it, and its state.

use super::engine::{failed, is_not_found, is_refusal};
use super::*;
use bollard::models::ContainerStateStatusEnum;
use bollard::query_parameters::{KillContainerOptions, TopOptions, WaitContainerOptions};

const END_DEADLINE: Duration = Duration::from_secs(30);

/// The kernel cannot freeze a group while a process of it is just being born, and the engine gives
/// up soon.
const TOO_BUSY: &str = "unable to freeze";
const FREEZE_TRIES: u32 = 5;
const FREEZE_PAUSE: Duration = Duration::from_millis(100);

impl Target {
    pub async fn signal(&self, signal: Signal) -> ClusterResult {
        let (what, signal) = match signal {
            Signal::Stop => ("stop", "SIGSTOP"),
            Signal::Continue => ("continue", "SIGCONT"),
            Signal::Kill => ("kill", "SIGKILL"),
        };
        let options = KillContainerOptions {
            signal: signal.to_owned(),
        };
        let kill = self.docker().kill_container(&self.container, Some(options));
        call(&format!("{what} {} ({signal})", self.node), kill).await
    }

    /// Runs `ps` on the engine's own machine, which works for a stopped container and needs nothing
    /// inside of it.
    pub async fn threads(&self) -> ClusterResult<Vec<ThreadState>> {
        let options = TopOptions {
            ps_args: "-L -o pid,lwp,stat".to_owned(),
        };
        let top = self.docker().top_processes(&self.container, Some(options));
        let seen = async {
            match top.await {
                Err(error) if is_refusal(&error, 409, "is not running") => Ok(None),
                other => other.map(|answer| answer.processes),
            }
        };
        let rows = call(&format!("see the threads of {}", self.node), seen).await?;
        let rows = rows.unwrap_or_default();
        let letter = |row: Vec<String>| row.get(2).and_then(|state| state.chars().next());
        Ok(rows
            .into_iter()
            .filter_map(letter)
            .map(ThreadState)
            .collect())
    }

    pub async fn state(&self) -> ClusterResult<NodeState> {
        let found = self.inspect(&format!("look at {}", self.node)).await?;
        let id = found.id.unwrap_or_default();
        let state = found.state.unwrap_or_default();
        let has_ended = matches!(
            state.status,
            Some(ContainerStateStatusEnum::EXITED | ContainerStateStatusEnum::DEAD)
        );
        let pid = state.pid.and_then(|pid| i32::try_from(pid).ok());
        Ok(NodeState {
            running: state.running.unwrap_or_default(),
            frozen: state.paused.unwrap_or_default(),
            started_at: state.started_at.unwrap_or_default(),
            exit_code: state.exit_code.filter(|_| has_ended),
            local_pid: pid.filter(|pid| is_local(*pid, &id)),
        })
    }

    pub async fn await_end(&self) -> ClusterResult {
        self.exit_code(END_DEADLINE).await.map(drop)
    }

    /// Waits for the end of its process. Returns None if the container is gone, and the process
    /// with it.
    pub async fn exit_code(&self, deadline: Duration) -> ClusterResult<Option<i64>> {
        let what = format!("the end of {}", self.node);
        let options = WaitContainerOptions::default();
        let mut waiting = self.docker().wait_container(&self.container, Some(options));
        let answer = tokio::time::timeout(deadline, waiting.next()).await;
        let answer = answer.map_err(|_| ClusterError::deadline(what.clone(), deadline))?;
        match answer {
            Some(Ok(ended)) => Ok(Some(ended.status_code)),
            // Every exit code but 0 comes as an error.
            Some(Err(Error::DockerContainerWaitError { code, .. })) => Ok(Some(code)),
            Some(Err(error)) if is_not_found(&error) => Ok(None),
            Some(Err(error)) => Err(failed(&format!("await {what}"), &error)),
            None => Err(ClusterError::failed(
                format!("await {what}"),
                "the engine hung up",
            )),
        }
    }

    /// Freezes it; it is fine if it is frozen already.
    pub async fn freeze(&self) -> ClusterResult {
        let mut last = Ok(());
        for _ in 0..FREEZE_TRIES {
            let pause = self.docker().pause_container(&self.container);
            let paused = call(&format!("freeze {}", self.node), pause).await;
            last = self.fine_if(paused, |state| state.frozen).await;
            if !matches!(&last, Err(refused) if refused.to_string().contains(TOO_BUSY)) {
                break;
            }
            tokio::time::sleep(FREEZE_PAUSE).await;
        }
        last
    }

    /// Thaws it; it is fine if it is not frozen, or has ended.
    pub async fn thaw(&self) -> ClusterResult {
        let unpause = self.docker().unpause_container(&self.container);
        let unpaused = call(&format!("thaw {}", self.node), unpause).await;
        self.fine_if(unpaused, |state| !state.frozen).await
    }

    /// Ignores a refusal if the wanted state holds already.
    async fn fine_if(
        &self,
        done: ClusterResult,
        holds: impl Fn(&NodeState) -> bool,
    ) -> ClusterResult {
        let Err(refused) = done else { return Ok(()) };
        match self.state().await {
            Ok(state) if holds(&state) => Ok(()),
            _ => Err(refused),
        }
    }
}

/// Returns whether a process id of the engine's machine is one of this machine, names a process of
/// this container, and can be looked into. The engine may be on another machine, or see other ids
/// than we do.
pub fn is_local(pid: i32, container_id: &str) -> bool {
    // Cgroup paths name the container; if namespaces hide them, the files that the engine mounts
    // into it do.
    let names_it = |file: &str| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/{file}"));
        text.is_ok_and(|text| text.contains(container_id))
    };
    pid > 0
        && !container_id.is_empty()
        && nix::unistd::geteuid().is_root()
        && (names_it("cgroup") || names_it("mountinfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_is_not_the_containers_is_not_local() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(!is_local(own, &"0".repeat(64)));
        assert!(!is_local(own, ""), "an unknown container has no process");
        assert!(!is_local(0, "/"), "an ended process has no id");
    }
}
