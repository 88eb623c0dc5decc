use super::load::{self, ServerAddresses, WrittenScenario, scalar};
use super::*;
use crate::resource::ResourceClient;
use crate::run::LocalRequest;
use crate::services::{Backend, Program};

const RESOURCE_DEADLINE: Duration = Duration::from_secs(5);

/// Let contenders compete for a lock at servers that already run
///
/// Every hold is written to the resource with its token, so the load is judged like any run. The
/// results have a scenario that does the same in containers, with the same seed:
/// fencepost run RESULTS/scenario.yml --seed N
///
/// The fence counters of its keys stay in a Redis: they have to outlive their locks.
#[derive(Args)]
pub struct Contend {
    #[command(flatten)]
    servers: ServerAddresses,
    /// Locks to use, a case each [default: by the servers that are named: redis for one --redis, redlock for several, postgres-lease for --postgres, otherwise the lock that is called like the option]
    #[arg(long, value_delimiter = ',', value_name = "BACKEND")]
    backend: Vec<String>,
    /// Ways to wait for a lock on one Redis, a case each: spin, notify, queue [default: spin]
    #[arg(long, value_delimiter = ',', value_name = "POLICY")]
    wait: Vec<String>,
    /// Lifetime of a grant
    #[arg(long, default_value = "5s", value_name = "DURATION")]
    ttl: String,
    /// Time that a holder works before it writes; 100ms..900ms is drawn by the seed
    #[arg(long, default_value = "0ms", value_name = "DURATION")]
    work: String,
    /// Number of contenders at the same time, a step for each number
    #[arg(long, value_delimiter = ',', default_value = "50", value_name = "N,…")]
    contenders: Vec<String>,
    /// Number of keys that they want; 1 is one hot key
    #[arg(long, default_value = "1", value_name = "N")]
    keys: String,
    /// Arrivals per second, all contenders together [default: one for each of them]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    rate: Option<String>,
    /// Let contenders ask again as soon as they are done, instead of arriving at a rate
    #[arg(long)]
    closed: bool,
    /// Number of arrivals that may wait for a contender [default: 10000]
    #[arg(long, value_name = "N")]
    backlog: Option<String>,
    /// Number of clients that the contenders are spread over, each with connections of its own [default: 12]
    #[arg(long, value_name = "N")]
    clients: Option<String>,
    /// Time that a contender waits for the lock [default: 10s]
    #[arg(long, value_name = "DURATION")]
    timeout: Option<String>,
    /// Duration of each step
    #[arg(long, default_value = "20s", value_name = "DURATION")]
    duration: String,
    /// Whether the resource compares tokens; with off, violations are reported and expected
    #[arg(long, default_value = "on", value_name = "on|off")]
    fence: String,
    /// Seed every random choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Running resource that has no writes yet; --fence has to be what it was started with
    /// [default: a new one for each case]
    #[arg(long, value_name = "URL")]
    resource: Option<String>,
    /// Write results to DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
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
            servers: self.servers,
            resource: self.resource,
            seed: self.seed,
        };
        load::run(&request, &self.printed).await
    }

    /// Returns every lock that is asked for. If none is valid, it returns one as a placeholder,
    /// so that the other options are still checked.
    fn cases(&self, mistakes: &mut Vec<String>) -> Vec<(Backend, Option<WaitPolicy>)> {
        let backends = self.backends(mistakes);
        let waits = words::<WaitPolicy>("--wait", &self.wait, mistakes);
        let has_choices = |backend: &Backend| backend.service().has_choices;
        let needless = !self.wait.is_empty() && !backends.iter().any(has_choices);
        if needless && !backends.is_empty() {
            mistakes.push("--wait: only the redis backend has a choice".to_owned());
        }
        let mut cases = Vec::new();
        for backend in backends {
            match backend {
                _ if has_choices(&backend) && !waits.is_empty() => {
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
        if self.servers.all().next().is_none() {
            let options = Program::all().into_iter();
            let options = options.map(|program| format!("--{} HOST:PORT", program.name));
            let options = options.collect::<Vec<_>>().join(", ");
            mistakes.push(format!("name the lock servers with one of {options}"));
        }
        let (asked_by, backends) = if self.backend.is_empty() {
            let backends = self.servers.programs().filter_map(|program| {
                let named = self.servers.of_program(program.name).len();
                program.usual_backend(named)
            });
            let backends: Vec<Backend> = backends.collect();
            ("--redis", backends)
        } else {
            let backends = words::<Backend>("--backend", &self.backend, mistakes);
            ("--backend", backends)
        };
        for backend in &backends {
            let servers = backend.servers();
            let option = format!("--{}", servers.program.name);
            let given = self.servers.of(servers).len();
            if given < servers.at_least || servers.at_most.is_some_and(|most| given > most) {
                let needs = match (servers.at_least, servers.at_most) {
                    (1, None) => option,
                    (1, Some(_)) => format!("one {option}"),
                    _ => format!("three {option} or more"),
                };
                mistakes.push(format!("{asked_by}: `{backend}` needs {servers}: {needs}"));
            }
        }
        backends
    }

    fn written(&self, cases: &[(Backend, Option<WaitPolicy>)]) -> WrittenScenario {
        let about = "Contenders want a lock at servers that were there already, and write with its token. \
                     With a fence nothing is violated, however long they wait and whoever overtakes whom.";
        let mut written = WrittenScenario::new("contend", about);
        written.line("lock:");
        written.field("--ttl", "  ttl", &self.ttl);
        written.field("--duration", "duration", &self.duration);
        written.line("contend:");
        let contenders: Vec<String> = self.contenders.iter().map(|n| scalar(n)).collect();
        written.from(
            "--contenders",
            format!("  contenders: [{}]", contenders.join(", ")),
        );
        written.field("--keys", "  keys", &self.keys);
        written.field("--work", "  work", &self.work);
        if self.closed {
            written.from("--closed", "  model: closed");
        }
        written.field("--rate", "  rate", &self.rate);
        written.field("--backlog", "  backlog", &self.backlog);
        written.field("--clients", "  clients", &self.clients);
        written.field("--timeout", "  timeout", &self.timeout);
        written.field("--fence", "fence", &self.fence);
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

/// Returns the topology that has such servers in containers.
pub fn topology(backend: Backend) -> &'static str {
    backend.servers().topology
}

/// Parses the words and drops duplicates; an unknown word is a mistake.
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

/// Refuses a resource that has writes: the judge reads the whole log, so every row has to be of
/// this load.
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
