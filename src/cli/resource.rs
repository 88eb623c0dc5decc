use super::*;
use crate::resource::{self, Config};
use std::net::SocketAddr;
use tokio::net::TcpListener;

#[derive(Args)]
pub struct Resource {
    /// Address to listen on; port 0 lets the system choose
    #[arg(long, default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Folder for the log of all writes
    #[arg(long, default_value = "resource-data", value_name = "DIR")]
    data: PathBuf,
    /// Compare fencing tokens (on), or be the unsafe baseline (off)
    #[arg(
        long,
        env = "FENCEPOST_FENCE",
        default_value = "on",
        value_name = "on|off"
    )]
    fence: Fence,
    /// Switch a defect on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, env = "FENCEPOST_MUTANT")]
    mutant: Option<String>,
}

impl Resource {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            Failure::harness(format!("cannot listen on {}: {error}", self.listen))
        })?;
        let address = listener.local_addr().map_err(Failure::harness)?;
        let shutdown = interrupt::end()?;
        let resource = resource::open(self.config()?).map_err(Failure::harness)?;
        // The harness takes this line as readiness, so nothing that can fail may come after it.
        output::line(format_args!(
            "resource listening on {address}, fence {}",
            self.fence
        ))?;
        let served = resource.serve(listener, shutdown).await;
        served.map_err(Failure::harness)?;
        Ok(Exit::AsExpected)
    }

    fn config(&self) -> Result<Config, Failure> {
        let config = Config::new(self.fence, &self.data);
        #[cfg(debug_assertions)]
        if let Some(name) = &self.mutant {
            let mutant = name.parse::<resource::Mutant>();
            let mutant = mutant.map_err(|_| Failure::usage(format!("no mutant `{name}`")))?;
            return Ok(Config {
                mutant: Some(mutant),
                ..config
            });
        }
        Ok(config)
    }
}
