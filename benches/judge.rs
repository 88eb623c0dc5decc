//! How fast the judge reads a log: `cargo bench --bench judge`.

use fencepost::checker::judge;
use fencepost::model::{CaseRecord, FencingToken, LogRow, RowOutcome};
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZES: [usize; 3] = [1_000_000, 2_000_000, 4_000_000];
const KEYS: usize = 1_000;
const PARSED_ROWS: usize = 1_000_000;

fn main() {
    println!("A resource's log of n rows over {KEYS} keys: holds of one to four writes, each hold");
    println!("with its own token and owner, one row in fifty a stale rejection, no violation.");
    println!("One thread. 'judge' is checker::judge on rows in memory, all rules and counts;");
    println!("'floor' is one plain pass over the same rows that only sums their tokens.");
    println!();
    println!("      rows   judge rows/s   floor rows/s   ns/row   time beside half the rows");
    let mut record = CaseRecord {
        log: log(SIZES[SIZES.len() - 1]),
        ..CaseRecord::default()
    };
    let mut times: Vec<Duration> = Vec::new();
    let all_rows = std::mem::take(&mut record.log);
    for rows in SIZES {
        record.log = all_rows[..rows].to_vec();
        let judged = best_of_three(|| {
            let judgement = judge(black_box(&record));
            assert!(judgement.violations.is_empty() && judgement.doubts.is_empty());
            judgement.counts.accepted_writes
        });
        let floor = best_of_three(|| sum_of_tokens(black_box(&record.log)));
        let ratio = times.last().map_or("-".to_owned(), |half| {
            format!("{:.2} x", judged.as_secs_f64() / half.as_secs_f64())
        });
        println!(
            "{rows:>10} {:>14} {:>14} {:>8.0}   {ratio}",
            per_second(rows, judged),
            per_second(rows, floor),
            judged.as_nanos() as f64 / rows as f64,
        );
        times.push(judged);
    }
    drop(record);

    let text = jsonl(&all_rows[..PARSED_ROWS]);
    let mib = text.len() as f64 / (1 << 20) as f64;
    let parsed = best_of_three(|| parse(black_box(&text)).len() as u64);
    let both = best_of_three(|| {
        let record = CaseRecord {
            log: parse(black_box(&text)),
            ..CaseRecord::default()
        };
        judge(&record).counts.accepted_writes
    });
    println!();
    println!("From JSONL in memory ({PARSED_ROWS} rows, {mib:.0} MiB), no disk:");
    println!(
        "  parse          {:>12} rows/s",
        per_second(PARSED_ROWS, parsed)
    );
    println!(
        "  parse + judge  {:>12} rows/s",
        per_second(PARSED_ROWS, both)
    );
}

/// The best of a few is the least disturbed by whatever else the machine does.
fn best_of_three(mut work: impl FnMut() -> u64) -> Duration {
    let times = (0..3).map(|_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    });
    times.min().unwrap_or_default()
}

fn per_second(rows: usize, time: Duration) -> String {
    format!("{:.2} M", rows as f64 / time.as_secs_f64() / 1e6)
}

fn sum_of_tokens(log: &[LogRow]) -> u64 {
    log.iter()
        .filter_map(|row| row.token)
        .fold(0, |sum, token| sum.wrapping_add(token.0))
}

fn parse(text: &str) -> Vec<LogRow> {
    let rows = text.lines().map(serde_json::from_str::<LogRow>);
    rows.collect::<Result<_, _>>()
        .expect("the rows were just written")
}

fn jsonl(log: &[LogRow]) -> String {
    let lines = log.iter().map(serde_json::to_string);
    let lines: Vec<String> = lines
        .collect::<Result<_, _>>()
        .expect("rows are plain data");
    lines.join("\n")
}

/// The latest hold of a key and how far its writes have come.
#[derive(Clone, Default)]
struct Key {
    token: u64,
    writes: u64,
    writes_left: u64,
    last_position: u64,
}

fn log(rows: usize) -> Vec<LogRow> {
    let mut random = fastrand::Rng::with_seed(42);
    let mut keys = vec![Key::default(); KEYS];
    (1..=rows as u64)
        .map(|seq| {
            let number = random.usize(..KEYS);
            let key = &mut keys[number];
            if key.token > 1 && random.u32(..50) == 0 {
                return row(seq, number, key.token - 1, key, RowOutcome::Rejected);
            }
            if key.writes_left == 0 {
                key.token += 1;
                key.writes = 0;
                key.writes_left = random.u64(1..=4);
            }
            let accepted = row(seq, number, key.token, key, RowOutcome::Accepted);
            key.writes += 1;
            key.writes_left -= 1;
            key.last_position = seq;
            accepted
        })
        .collect()
}

fn row(seq: u64, number: usize, token: u64, key: &Key, outcome: RowOutcome) -> LogRow {
    LogRow {
        seq,
        at_ns: seq * 1_000,
        key: format!("account-{number}"),
        outcome,
        token: Some(FencingToken(token)),
        token_seq: key.writes,
        seen: Some(FencingToken(key.token)),
        owner: Some(format!("owner-{number}-{token}")),
        based_on: Some(key.last_position),
        value: None,
    }
}
