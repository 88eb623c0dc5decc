//! Refuses an engine on another machine. Its ports are published on its own loopback, and the times
//! in a record are compared with ours: neither would work, so this is found out before anything
//! starts.

use super::*;
use crate::cluster::OWN_IMAGE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use uuid::Uuid;

const SERVER: &str = "server";
const PORT: u16 = 8474;
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);
const MOST_ANSWER: u64 = 1 << 10;

/// Checks that the engine has the kernel, and with it the clocks, that this program has.
pub fn check_kernel(engine: &Engine) -> ClusterResult {
    let ours = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match other_kernel(ours.trim(), &engine.about.kernel) {
        None => Ok(()),
        Some(reason) => Err(elsewhere(engine, reason)),
    }
}

fn other_kernel(ours: &str, its: &str) -> Option<String> {
    let differs = !ours.is_empty() && ours != its;
    differs.then(|| format!("it runs on another machine, with the kernel {its} instead of {ours}"))
}

/// Checks that the ports which the engine publishes can be reached from here. The engine at the
/// usual socket is this machine's; any other has to start a server for a test.
pub async fn check_ports(engine: &Engine, images: &ImageIds) -> ClusterResult {
    if engine.is_usual || !images.contains_key(OWN_IMAGE) {
        return Ok(());
    }
    let (of, images) = (engine.clone(), images.clone());
    let mut trial = Trial(tokio::spawn(async move {
        let run = Name::of_id(Uuid::new_v4()).behind("reach");
        let cluster = DockerCluster::create(&of, images, &run, false).await?;
        let reached = reach(&cluster).await;
        cluster.remove().await?;
        reached
    }));
    let reached = (&mut trial.0).await;
    let reached = reached.map_err(|error| ClusterError::failed("reach a published port", error))?;
    reached?.map_err(|reason| {
        let reason = format!("its ports are published on its own loopback, not on ours ({reason})");
        elsewhere(engine, reason)
    })
}

/// A trial cluster. Dropped early (Ctrl-C), it waits until the cluster is removed.
struct Trial<T>(JoinHandle<T>);

impl<T> Drop for Trial<T> {
    fn drop(&mut self) {
        if !self.0.is_finished() {
            let rest = || Handle::current().block_on(&mut self.0);
            let _ = tokio::task::block_in_place(rest);
        }
    }
}

async fn reach(cluster: &DockerCluster) -> ClusterResult<Result<(), String>> {
    let server = server();
    start_services(cluster, std::slice::from_ref(&server)).await?;
    let address = cluster.address(&server.name, PORT).await?;
    let asked = tokio::time::timeout(ANSWER_DEADLINE, ask(address)).await;
    Ok(match asked {
        Ok(Ok(answer)) if answer.starts_with("HTTP/1.1 200") => Ok(()),
        Ok(Ok(_)) => Err(format!("another server answers at {address}")),
        Ok(Err(error)) => Err(format!("{address}: {error}")),
        Err(_) => Err(format!("no answer at {address}")),
    })
}

async fn ask(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let request = "GET /version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MOST_ANSWER).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Returns a Toxiproxy of ours, which answers and does nothing else unasked.
fn server() -> NodeSpec {
    let command = ["toxiproxy", "-host", "0.0.0.0", "-port", &PORT.to_string()];
    let command = command.map(str::to_owned).to_vec();
    let name = Name::new(SERVER).expect("a name");
    NodeSpec {
        ports: vec![Port {
            host: 0,
            container: PORT,
        }],
        ready: Some("toxiproxy listening".to_owned()),
        ..NodeSpec::new(name, OWN_IMAGE, command)
    }
}

fn elsewhere(engine: &Engine, reason: String) -> ClusterError {
    ClusterError::Elsewhere {
        host: engine.about.host.clone(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_is_another_machine() {
        assert_eq!(other_kernel("6.1.0-9", "6.1.0-9"), None);
        let reason = other_kernel("6.1.0-9", "5.15.0-linuxkit").unwrap();
        assert!(reason.contains("5.15.0-linuxkit instead of 6.1.0-9"));
    }
}
