use super::*;
use crate::load::{GeneratePlan, Generated, generate};
use crate::progress::Progress;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The same seed makes the same keys and owners. How far it came is kept in the
/// server: after Ctrl-C or a kill, the same command goes on where it was.
#[derive(Args)]
pub struct Generate {
    /// Address of the Redis: host:port, or redis://:PASSWORD@host:port
    #[arg(long, value_name = "ADDRESS")]
    redis: String,
    /// Number of locks: 10M, 500k, 10_000_000
    #[arg(long, value_name = "N", value_parser = count)]
    keys: u64,
    /// Lifetime of each lock: 60s, 500ms, 2m
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    ttl: Duration,
    /// Seed of owners and names
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Number of commands that are sent before answers are awaited
    #[arg(long, default_value_t = 100, value_name = "N")]
    pipeline: u32,
    /// Number of connections
    #[arg(long, default_value_t = 2, value_name = "N")]
    connections: u32,
    /// Begin with the first key, however far an earlier fill came
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Generate {
    /// Runs on one thread: the task that reads an answer then sends the next batch, and no
    /// other thread has to be woken for it.
    pub fn execute(self) -> Result<Exit, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Failure::harness)?;
        runtime.block_on(self.fill())
    }

    async fn fill(self) -> Result<Exit, Failure> {
        let plan = GeneratePlan {
            keys: self.keys,
            ttl: self.ttl,
            seed: self.seed,
            pipeline: self.pipeline,
            connections: self.connections,
            restart: self.restart,
        };
        let mistakes = plan.mistakes();
        if !mistakes.is_empty() {
            let lines = mistakes
                .iter()
                .map(|(field, text)| format!("--{field}: {text}"));
            return Err(Failure::usage(joined(lines, "\n")));
        }
        let asked_to_end = interrupt::end()?;
        let interrupt = CancellationToken::new();
        let cancel = interrupt.clone();
        let _listening = AbortOnDropHandle::new(tokio::spawn(async move {
            asked_to_end.await;
            cancel.cancel();
        }));
        let shown = progress::for_this_output();
        let task = shown.begin(&format!("{} locks", format_count(plan.keys)));
        match generate(&plan, &self.redis, task.as_ref(), &interrupt).await {
            Ok(generated) => {
                task.finish("made");
                let text = summary(&plan, &generated);
                self.printed.show(&told(&plan, &generated), text)
            }
            Err(error) if interrupt.is_cancelled() => Err(Failure::new(Exit::Interrupted, error)),
            Err(error) => Err(error.into()),
        }
    }
}

fn told(plan: &GeneratePlan, generated: &Generated) -> Value {
    json!({
        "keys": plan.keys,
        "ttl_ms": plan.ttl.as_millis() as u64,
        "seed": plan.seed,
        "made_before": generated.before,
        "made": generated.made,
        "refused": generated.refused,
        "evicted": generated.evicted,
        "elapsed_ms": generated.elapsed.as_millis() as u64,
        "peak_memory_kib": generated.peak_memory_kib,
    })
}

fn summary(plan: &GeneratePlan, generated: &Generated) -> String {
    let Generated { made, refused, .. } = *generated;
    let [before, evicted] = [generated.before, generated.evicted].map(|count| {
        let some = Some(count).filter(|count| *count > 0);
        some.map(format_count)
    });
    let seconds = generated.elapsed.as_secs_f64();
    let per_s = (made + refused) as f64 / seconds.max(0.001);
    let lines = [
        Some(format!(
            "keys     {} locks of {}, seed {}\n",
            format_count(plan.keys),
            format_duration(plan.ttl),
            plan.seed
        )),
        before.map(|before| format!("resumed  {before} of them were made by an earlier fill\n")),
        Some(format!(
            "made     {} in {seconds:.1} s: {} a second\n",
            format_count(made),
            format_count(per_s as u64)
        )),
        Some(format!(
            "refused  {} that were there already\n",
            format_count(refused)
        )),
        evicted.map(|evicted| {
            format!("evicted  {evicted}: the server has a `maxmemory` and throws keys away\n")
        }),
        Some(format!(
            "memory   {:.1} MiB at most\n",
            generated.peak_memory_kib as f64 / 1024.0
        )),
    ];
    lines.into_iter().flatten().collect()
}

fn count(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a whole number: 10M, 500k, 10_000_000".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a number and its unit: 60s, 500ms, 2m".to_owned())
}
