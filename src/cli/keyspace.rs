use super::contend::topology;
use super::load::{self, ServerAddresses, WrittenScenario};
use super::*;
use crate::run::LocalRequest;
use crate::services::Backend;

/// Measure what a great many short-lived locks leave behind at servers that already run
///
/// Of a Redis: memory and expiry over time. Of an etcd: leases, revisions and the size of its
/// database; at the end the whole history of that etcd is compacted, whoever wrote it, and every
/// member that is named is defragmented. Use servers that hold nothing else.
#[derive(Args)]
pub struct Keyspace {
    #[command(flatten)]
    servers: ServerAddresses,
    /// Number of locks, such as 10M
    #[arg(long, default_value = "1M", value_name = "N")]
    keys: String,
    /// Lifetime of each lock
    #[arg(long, default_value = "60s", value_name = "DURATION")]
    ttl: String,
    /// Keep a fence counter beside each lock for DURATION
    #[arg(long, value_name = "DURATION")]
    counters: Option<String>,
    /// Redis: set active-expire-effort, 1 to 10; it is restored at the end
    #[arg(long, value_name = "N")]
    effort: Option<String>,
    /// Redis: once every lock is dead, touch every key with a SCAN
    #[arg(long)]
    scan: bool,
    /// Watch for DURATION after the last key was made [default: until nothing dead is left]
    #[arg(long, value_name = "DURATION")]
    watch: Option<String>,
    /// Seed every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write results to DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Keyspace {
    pub async fn execute(self, home: Option<&Path>) -> Result<Exit, Failure> {
        let mut mistakes = load::mistakes_in_addresses(&self.servers);
        let [redis, etcd] = ["redis", "etcd"].map(|program| self.servers.of_program(program));
        let measured = [Backend::Redis, Backend::Etcd].map(|backend| backend.servers().program);
        for program in self.servers.programs() {
            if !measured.contains(&program) {
                let option = program.name;
                mistakes.push(format!(
                    "--{option}: only a Redis or an etcd can be measured"
                ));
            }
        }
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
            servers: self.servers,
            resource: None,
            seed: self.seed,
        };
        load::run(&request, &self.printed).await
    }

    fn written(&self, backend: Backend) -> WrittenScenario {
        let about = "A great many locks live for a short while at a server that was there already. \
                     What they cost it, and for how long after their end, is measured.";
        let mut written = WrittenScenario::new("keyspace", about);
        written.line(format!("topology: {}", topology(backend)));
        written.line("lock:");
        written.line(format!("  backend: {backend}"));
        written.field("--ttl", "  ttl", &self.ttl);
        written.line("keyspace:");
        written.field("--keys", "  keys", &self.keys);
        written.field("--counters", "  counters", &self.counters);
        written.field("--effort", "  effort", &self.effort);
        if self.scan {
            written.from("--scan", "  scan: true");
        }
        written.field("--watch", "  watch", &self.watch);
        written.line("cases:");
        written.line(format!("  {backend}: {{}}"));
        written
    }
}
