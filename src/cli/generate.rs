use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::{interrupt, output, progress};
use crate::load::{GeneratePlan, Generated, generate};
use crate::model::{format_count, format_duration, parse_count, parse_duration};
use crate::progress::Progress;
use clap::Args;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The same seed makes the same keys and owners. How far it came is kept in the
/// server: after Ctrl-C or a kill, the same command goes on where it was.
#[derive(Args)]
pub struct Generate {
    /// host:port of the Redis, or redis://:PASSWORD@host:port
    #[arg(long, value_name = "ADDRESS")]
    redis: String,
    /// How many locks: 10M, 500k, 10_000_000
    #[arg(long, value_name = "N", value_parser = count)]
    keys: u64,
    /// How long each of them lives: 60s, 500ms, 2m
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = duration)]
    ttl: Duration,
    /// What owners and names are made from
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Commands that are sent before answers are awaited
    #[arg(long, default_value_t = 100, value_name = "N")]
    pipeline: u32,
    #[arg(long, default_value_t = 2, value_name = "N")]
    connections: u32,
    /// Begin with the first key, however far an earlier fill came
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    pub printed: Printed,
}

impl Generate {
    /// On a runtime of one thread: whoever reads an answer then sends the next batch, and
    /// nobody has to be woken for it.
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
            return Err(Failure::usage(lines.collect::<Vec<_>>().join("\n")));
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
                match self.printed.is_json() {
                    true => document(&told(&plan, &generated))?,
                    false => output::print(summary(&plan, &generated))?,
                }
                Ok(Exit::AsExpected)
            }
            Err(error) if interrupt.is_cancelled() => Err(Failure::new(Exit::Interrupted, error)),
            Err(error) => Err(error.into()),
        }
    }
}

fn told(plan: &GeneratePlan, generated: &Generated) -> Value {
    let Generated {
        before,
        made,
        refused,
        evicted,
        elapsed,
        peak_memory_kib,
    } = generated;
    json!({
        "keys": plan.keys,
        "ttl_ms": plan.ttl.as_millis() as u64,
        "seed": plan.seed,
        "made_before": before,
        "made": made,
        "refused": refused,
        "evicted": evicted,
        "elapsed_ms": elapsed.as_millis() as u64,
        "peak_memory_kib": peak_memory_kib,
    })
}

fn summary(plan: &GeneratePlan, generated: &Generated) -> String {
    let Generated {
        before,
        made,
        refused,
        evicted,
        elapsed,
        peak_memory_kib,
    } = generated;
    let seconds = elapsed.as_secs_f64();
    let per_s = (made + refused) as f64 / seconds.max(0.001);
    let mut text = format!(
        "keys     {} locks of {}, seed {}\n",
        format_count(plan.keys),
        format_duration(plan.ttl),
        plan.seed
    );
    if *before > 0 {
        let before = format_count(*before);
        text += &format!("resumed  {before} of them were made by an earlier fill\n");
    }
    text += &format!(
        "made     {} in {seconds:.1} s: {} a second\n",
        format_count(*made),
        format_count(per_s as u64)
    );
    text += &format!(
        "refused  {} that were there already\n",
        format_count(*refused)
    );
    if *evicted > 0 {
        let evicted = format_count(*evicted);
        text += &format!("evicted  {evicted}: the server has a `maxmemory` and throws keys away\n");
    }
    text += &format!(
        "memory   {:.1} MiB at most\n",
        *peak_memory_kib as f64 / 1024.0
    );
    text
}

fn count(text: &str) -> Result<u64, String> {
    parse_count(text).ok_or_else(|| "write a whole number: 10M, 500k, 10_000_000".to_owned())
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "write a number and its unit: 60s, 500ms, 2m".to_owned())
}
