use super::exit::{Exit, Failure};
use super::format::Printed;
use super::load::{self, Servers, Written, scalar};
use crate::model::{Backend, LockServers, WaitPolicy, without_password};
use crate::resource::ResourceClient;
use crate::run::LocalRequest;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RESOURCE_DEADLINE: Duration = Duration::from_secs(5);

/// Contenders for a lock at servers that are there already
///
/// Every hold is written to the resource with its token, so the load is judged like any run. The
/// results have a scenario that does the same in containers, with the same seed:
/// fencepost run RESULTS/scenario.yml --seed N
///
/// What stays behind: the fence counters of its keys in a Redis, which have to outlive their locks.
#[derive(Args)]
pub struct Contend {
    #[command(flatten)]
    servers: Servers,
    /// Which locks, a case each [default: redis for one --redis, redlock for several, etcd for --etcd]
    #[arg(long, value_delimiter = ',', value_name = "BACKEND")]
    backend: Vec<String>,
    /// How to wait for a lock on one Redis, a case each: spin, notify, queue [default: spin]
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    wait: Vec<String>,
    /// How long a grant lives
    #[arg(long, default_value = "5s", value_name = "DURATION")]
    ttl: String,
    /// How long a holder works before it writes; 100ms..900ms is drawn by the seed
    #[arg(long, default_value = "0ms", value_name = "DURATION")]
    work: String,
    /// How many want the lock at the same time, a step for each number
    #[arg(long, value_delimiter = ',', default_value = "50", value_name = "N,…")]
    contenders: Vec<String>,
    /// How many keys they want; 1 is one hot key
    #[arg(long, default_value = "1", value_name = "N")]
    keys: String,
    /// Arrivals a second, all contenders together [default: one for each of them]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rate: Option<String>,
    /// Everybody asks again as soon as they are done, instead of arrivals at a rate
    #[arg(long)]
    closed: bool,
    /// How many arrivals may wait for a contender [default: 10000]
    #[arg(long, value_name = "N")]
    backlog: Option<String>,
    /// How many clients the contenders are spread over, each with connections of its own [default: 12]
    #[arg(long, value_name = "N")]
    clients: Option<String>,
    /// How long anybody waits for the lock [default: 10s]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// How long each step lasts
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    duration: String,
    /// Whether the resource compares tokens; with off, violations are told and not held against anybody
    #[arg(long, default_value = "on", value_name = "on|off")]
    fence: String,
    /// Seeds every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A resource that is running and has no writes yet; --fence has to say what it was started with
    /// [default: one of its own for each case]
    #[arg(long, value_name = "URL")]
    resource: Option<String>,
    /// Where results go [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Contend {
    pub async fn execute(self, home: Option<&Path>) -> Result<Exit, Failure> {
        let mut mistakes = load::mistakes_in_addresses(&self.servers);
        let cases = self.cases(&mut mistakes);
        if self.resource.is_some() && cases.len() > 1 {
            mistakes.push(
                "--resource: tokens of one lock mean nothing to another, so each case needs a fresh resource; leave it out, or ask for one case".to_owned(),
            );
        }
        let scenario = load::scenario(&self.written(&cases), mistakes)?;
        load::must_answer(&self.servers).await?;
        if let Some(url) = &self.resource {
            must_be_fresh(url).await?;
        }
        let request = LocalRequest {
            scenario: &scenario,
            results: load::results(self.results, home)?,
            servers: self.servers.into(),
            resource: self.resource,
            seed: self.seed,
        };
        load::run(&request, &self.printed).await
    }

    /// Every lock that is asked for. Where none is left, one stands for them, so that
    /// the other options are looked at all the same.
    fn cases(&self, mistakes: &mut Vec<String>) -> Vec<(Backend, Option<WaitPolicy>)> {
        let backends = self.backends(mistakes);
        let waits = words::<WaitPolicy>("--wait", &self.wait, mistakes);
        let needless = !self.wait.is_empty() && !backends.contains(&Backend::Redis);
        if needless && !backends.is_empty() {
            mistakes.push("--wait: only the redis backend has a choice".to_owned());
        }
        let mut cases = Vec::new();
        for backend in backends {
            match backend {
                Backend::Redis if !waits.is_empty() => {
                    cases.extend(waits.iter().map(|wait| (backend, Some(*wait))));
                }
                _ => cases.push((backend, None)),
            }
        }
        if cases.is_empty() {
            cases.push((Backend::Redis, None));
        }
        cases
    }

    fn backends(&self, mistakes: &mut Vec<String>) -> Vec<Backend> {
        let Servers { redis, etcd } = &self.servers;
        if redis.is_empty() && etcd.is_empty() {
            mistakes
                .push("name the lock servers with --redis HOST:PORT or --etcd HOST:PORT".into());
        }
        let (asked_by, backends) = if self.backend.is_empty() {
            let of_redis = match redis.len() {
                0 => None,
                1 => Some(Backend::Redis),
                _ => Some(Backend::Redlock),
            };
            let of_etcd = (!etcd.is_empty()).then_some(Backend::Etcd);
            let backends: Vec<Backend> = of_redis.into_iter().chain(of_etcd).collect();
            ("--redis", backends)
        } else {
            let backends = words::<Backend>("--backend", &self.backend, mistakes);
            ("--backend", backends)
        };
        for backend in &backends {
            let servers = backend.servers();
            let needs = match servers {
                LockServers::OneRedis if redis.len() != 1 => "one --redis",
                LockServers::RedisNodes if redis.len() < 3 => "three --redis or more",
                LockServers::Etcd if etcd.is_empty() => "--etcd",
                _ => continue,
            };
            mistakes.push(format!("{asked_by}: `{backend}` needs {servers}: {needs}"));
        }
        backends
    }

    fn written(&self, cases: &[(Backend, Option<WaitPolicy>)]) -> Written {
        let about = "Contenders want a lock at servers that were there already, and write with its token. \
                     With a fence nothing is violated, however long they wait and whoever overtakes whom.";
        let mut written = Written::new("contend", about);
        written.line("lock:");
        written.from("--ttl", format!("  ttl: {}", scalar(&self.ttl)));
        written.from(
            "--duration",
            format!("duration: {}", scalar(&self.duration)),
        );
        written.line("contend:");
        let contenders: Vec<String> = self.contenders.iter().map(|n| scalar(n)).collect();
        written.from(
            "--contenders",
            format!("  contenders: [{}]", contenders.join(", ")),
        );
        written.from("--keys", format!("  keys: {}", scalar(&self.keys)));
        written.from("--work", format!("  work: {}", scalar(&self.work)));
        if self.closed {
            written.from("--closed", "  model: closed");
        }
        written.maybe("--rate", "  rate", self.rate.as_ref());
        written.maybe("--backlog", "  backlog", self.backlog.as_ref());
        written.maybe("--clients", "  clients", self.clients.as_ref());
        written.maybe("--timeout", "  timeout", self.timeout.as_ref());
        written.from("--fence", format!("fence: {}", scalar(&self.fence)));
        written.line(match self.fence.as_str() {
            "off" => "expect: { accepted_writes: 1.. }",
            _ => "expect: { violations: 0, rightful_rejections: 0, accepted_writes: 1.. }",
        });
        written.line("cases:");
        for (backend, wait) in cases {
            let name = wait.map_or_else(|| backend.to_string(), |wait| wait.to_string());
            written.line(format!("  {name}:"));
            written.line(format!("    topology: {}", topology(*backend)));
            written.line("    lock:");
            written.from("--backend", format!("      backend: {backend}"));
            if let Some(wait) = wait {
                written.from("--wait", format!("      wait: {wait}"));
            }
        }
        written
    }
}

/// What has such servers in containers.
pub fn topology(backend: Backend) -> &'static str {
    match backend.servers() {
        LockServers::OneRedis => "redis",
        LockServers::RedisNodes => "redlock",
        LockServers::Etcd => "etcd",
    }
}

/// Those that are words, each once; what is none is a mistake.
fn words<T>(option: &str, given: &[String], mistakes: &mut Vec<String>) -> Vec<T>
where
    T: std::str::FromStr<Err = String> + PartialEq,
{
    let mut known = Vec::new();
    for word in given {
        match word.parse() {
            Ok(one) if !known.contains(&one) => known.push(one),
            Ok(_) => {}
            Err(reason) => mistakes.push(format!("{option}: `{word}` is {reason}")),
        }
    }
    known
}

/// The judge looks at the whole log, so it has to be that of this load.
async fn must_be_fresh(url: &str) -> Result<(), Failure> {
    let client = ResourceClient::new(url, RESOURCE_DEADLINE);
    let url = without_password(url);
    let client = client.map_err(|error| Failure::usage(format!("--resource: {error}")))?;
    let log = client.log().await;
    let log = log.map_err(|error| {
        Failure::new(
            Exit::Unavailable,
            format!("--resource: {url} does not answer: {error}"),
        )
    })?;
    match log.len() {
        0 => Ok(()),
        rows => Err(Failure::usage(format!(
            "--resource: {url} has {rows} writes in its log already; start it with an empty --data"
        ))),
    }
}
