use super::contend::topology;
use super::exit::{Exit, Failure};
use super::format::Printed;
use super::load::{self, Servers, Written, scalar};
use crate::model::Backend;
use crate::run::LocalRequest;
use clap::Args;
use std::path::{Path, PathBuf};

/// A great many short-lived locks at servers that are there already, and what they leave behind
///
/// Of a Redis: memory and expiry over time. Of an etcd: leases, revisions and the size of its
/// database; at the end the whole history of that etcd is compacted, whoever wrote it, and every
/// member that is named is defragmented. Use servers that hold nothing else.
#[derive(Args)]
pub struct Keyspace {
    #[command(flatten)]
    servers: Servers,
    /// How many locks, such as 10M
    #[arg(long, default_value = "1M", value_name = "N")]
    keys: String,
    /// How long each of them lives
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    ttl: String,
    /// A fence counter beside each lock, which lives for so long
    #[arg(long, value_name = "DURATION")]
    counters: Option<String>,
    /// Redis: active-expire-effort, 1 to 10; it is put back at the end
    #[arg(long, value_name = "N")]
    effort: Option<String>,
    /// Redis: once every lock is dead, touch every key with a SCAN
    #[arg(long)]
    scan: bool,
    /// Watch for so long after the last key was made [default: until nothing dead is left]
    #[arg(long, value_name = "DURATION")]
    watch: Option<String>,
    /// Seeds every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where results go [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Keyspace {
    pub async fn execute(self, home: Option<&Path>) -> Result<Exit, Failure> {
        let mut mistakes = load::mistakes_in_addresses(&self.servers);
        let Servers { redis, etcd } = &self.servers;
        let backend = match (redis.len(), etcd.is_empty()) {
            (0, false) => Backend::Etcd,
            (1, true) => Backend::Redis,
            (0, true) => {
                mistakes.push("name the server with --redis HOST:PORT, or --etcd HOST:PORT".into());
                Backend::Redis
            }
            (_, true) => {
                mistakes.push("--redis: the keys are made in one Redis; name one".to_owned());
                Backend::Redis
            }
            (_, false) => {
                mistakes.push("--redis and --etcd: one of them at a time".to_owned());
                Backend::Redis
            }
        };
        let scenario = load::scenario(&self.written(backend), mistakes)?;
        load::must_answer(&self.servers).await?;
        let request = LocalRequest {
            scenario: &scenario,
            results: load::results(self.results, home)?,
            servers: self.servers.into(),
            resource: None,
            seed: self.seed,
        };
        load::run(&request, &self.printed).await
    }

    fn written(&self, backend: Backend) -> Written {
        let about = "A great many locks live for a short while at a server that was there already. \
                     What they cost it, and for how long after their end, is measured.";
        let mut written = Written::new("keyspace", about);
        written.line(format!("topology: {}", topology(backend)));
        written.line("lock:");
        written.line(format!("  backend: {backend}"));
        written.from("--ttl", format!("  ttl: {}", scalar(&self.ttl)));
        written.line("keyspace:");
        written.from("--keys", format!("  keys: {}", scalar(&self.keys)));
        written.maybe("--counters", "  counters", self.counters.as_ref());
        written.maybe("--effort", "  effort", self.effort.as_ref());
        if self.scan {
            written.from("--scan", "  scan: true");
        }
        written.maybe("--watch", "  watch", self.watch.as_ref());
        written.line("cases:");
        written.line(format!("  {backend}: {{}}"));
        written
    }
}
