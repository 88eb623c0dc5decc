use super::*;
use crate::resource::s3::{self, Config, DEFAULT_BUCKET, DEFAULT_KEY};
use fencing_lock::AwsCredentials;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// Run the S3 role: objects with If-Match and If-None-Match, on a durable log
///
/// Clients of S3 use it as they are (path-style addresses, plain HTTP, AWS Signature Version 4).
/// Objects have up to 64 KiB. GET /-/log returns every write that it decided on, as JSON lines, with
/// the bodies and without a signature: whoever reaches the address can read everything.
#[derive(Args)]
pub struct S3 {
    /// Address to listen on; port 0 lets the system choose
    #[arg(long, default_value = "127.0.0.1:9000", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Folder for the log of all writes
    #[arg(long, default_value = "s3-data", value_name = "DIR")]
    data: PathBuf,
    /// Make this bucket at the start, unless it is there
    #[arg(long, default_value = DEFAULT_BUCKET, value_name = "NAME")]
    bucket: String,
    /// Accept requests with this access key
    #[arg(long, env = "FENCEPOST_S3_ACCESS_KEY", default_value = DEFAULT_KEY, value_name = "KEY")]
    access_key: String,
    /// Accept requests that are signed with this secret
    #[arg(
        long,
        env = "FENCEPOST_S3_SECRET_KEY",
        default_value = DEFAULT_KEY,
        hide_env_values = true,
        value_name = "SECRET"
    )]
    secret_key: String,
    /// Switch a defect on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, env = "FENCEPOST_MUTANT")]
    mutant: Option<s3::Mutant>,
}

impl S3 {
    pub async fn execute(self) -> Result<Exit, Failure> {
        if let Some(problem) = s3::bucket_problem(&self.bucket) {
            let bucket = &self.bucket;
            return Err(Failure::usage(format!(
                "cannot make the bucket {bucket}: {problem}"
            )));
        }
        let listener = TcpListener::bind(self.listen).await.map_err(|error| {
            Failure::harness(format!("cannot listen on {}: {error}", self.listen))
        })?;
        let address = listener.local_addr().map_err(Failure::harness)?;
        let shutdown = interrupt::end()?;
        let bucket = self.bucket.clone();
        let store = s3::open(Config {
            data_dir: self.data,
            credentials: AwsCredentials::new(self.access_key, self.secret_key),
            bucket: self.bucket,
            #[cfg(debug_assertions)]
            mutant: self.mutant,
        });
        let store = store.map_err(Failure::harness)?;
        // The harness takes this line as readiness, so nothing that can fail may come after it.
        output::line(format_args!("s3 listening on {address}, bucket {bucket}"))?;
        let served = store.serve(listener, shutdown).await;
        served.map_err(Failure::harness)?;
        Ok(Exit::AsExpected)
    }
}
