//! How fast a log is read and judged, and in how much memory: `cargo bench --bench judge`.

mod heap;
mod rows;
mod target;

use fencepost::model::{CaseRecord, Judgement, Log, LogRow, Row};
use fencepost_judge::checker::judge;
use heap::Heap;
use nix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;
use target::Targets;

#[global_allocator]
static HEAP: Heap = Heap::new();

const SIZES: [usize; 3] = [1_000_000, 2_000_000, 4_000_000];
const TIMES: usize = 5;

fn main() {
    println!("A log as the resource writes it, over {} keys:", rows::KEYS);
    println!("holds of one to four writes, each hold with a token and an owner of its own, one");
    println!("row in fifty a stale rejection, no violation. One thread, no disk; times are of the");
    println!("processor, best of {TIMES}.");
    let text = rows::jsonl(SIZES[SIZES.len() - 1]);
    let mut targets = Targets::default();
    from_memory(&text, &mut targets);
    from_jsonl(&text, &mut targets);
    memory(&text, &mut targets);
    targets.print();
}

/// The judge on rows that were read before.
fn from_memory(text: &[u8], targets: &mut Targets) {
    println!();
    println!("From memory: 'judge' is checker::judge with all its rules and counts; 'floor' is");
    println!("one plain pass over the same rows that only sums their tokens.");
    println!();
    println!("    rows  judge rows/s  floor rows/s  ns/row");
    let mut times = Vec::new();
    for rows in SIZES {
        let record = read(first_rows(text, rows).to_vec());
        assert_eq!(record.log.len(), rows);
        let judged = best(|| (), |()| judge(black_box(&record)));
        let floor = best(|| (), |()| sum_of_tokens(black_box(&record.log.rows)));
        println!(
            "{:>6} M  {:>10.2} M  {:>10.2} M  {:>6.1}",
            rows / 1_000_000,
            millions_per_s(rows, judged),
            millions_per_s(rows, floor),
            judged.as_nanos() as f64 / rows as f64,
        );
        times.push(judged);
    }
    targets.rate("judge, from memory", 10.0, slowest(&times));
    targets.linear("judge, from memory", &times);
}

/// Reading and judging from the bytes of a file.
fn from_jsonl(text: &[u8], targets: &mut Targets) {
    println!();
    println!("From JSONL: 'read' is Log::read_jsonl; 'serde' is serde_json into LogRow, line by");
    println!("line; 'floor' is one pass over the bytes that only counts lines.");
    println!();
    println!("    rows    MiB  read rows/s  read + judge  serde rows/s  floor rows/s");
    let mut times = Vec::new();
    for rows in SIZES {
        let text = first_rows(text, rows);
        let copy = || text.to_vec();
        let read_only = best(copy, |text| Log::read_jsonl(black_box(text)));
        let both = best(copy, |text| read_and_judge(black_box(text)));
        let by_serde = best(|| (), |()| parse_by_serde(black_box(text)));
        let floor = best(|| (), |()| count_lines(black_box(text)));
        println!(
            "{:>6} M  {:>5}  {:>9.2} M  {:>10.2} M  {:>10.2} M  {:>10.2} M",
            rows / 1_000_000,
            text.len() >> 20,
            millions_per_s(rows, read_only),
            millions_per_s(rows, both),
            millions_per_s(rows, by_serde),
            millions_per_s(rows, floor),
        );
        times.push(both);
    }
    targets.rate("read + judge, from JSONL", 3.0, slowest(&times));
    targets.linear("read + judge, from JSONL", &times);
}

/// The most that the heap held at once, the text itself included.
fn memory(text: &[u8], targets: &mut Targets) {
    println!();
    println!("Memory: the most that the heap held, the text of the file included.");
    println!();
    println!("    rows  bytes/row of the file     read  read + judge");
    let mut worst: f64 = 0.0;
    for rows in SIZES {
        let text = first_rows(text, rows);
        let beside_file = |work: &dyn Fn(Vec<u8>)| {
            let peak = HEAP.peak_of(|| work(text.to_vec()));
            peak as f64 / text.len() as f64
        };
        let read_only = beside_file(&|text| drop(black_box(read(text))));
        let both = beside_file(&|text| drop(black_box(read_and_judge(text))));
        println!(
            "{:>6} M  {:>21}  {read_only:>5.2} x  {both:>10.2} x",
            rows / 1_000_000,
            text.len() / rows,
        );
        worst = worst.max(both);
    }
    targets.at_most("memory beside the file", 2.0, worst, "x");
}

/// The best of a few is the least disturbed by whatever else the machine does.
/// Making what the work takes and dropping what it gives is not measured.
fn best<T, R>(prepare: impl Fn() -> T, work: impl Fn(T) -> R) -> Duration {
    let times = (0..TIMES).map(|_| {
        let input = prepare();
        let start = processor_time();
        let output = black_box(work(input));
        let time = processor_time() - start;
        drop(output);
        time
    });
    times.min().unwrap_or_default()
}

/// Of this thread: it stands still while others have the core.
fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    now.expect("Linux counts the time of a thread").into()
}

fn millions_per_s(rows: usize, time: Duration) -> f64 {
    rows as f64 / time.as_secs_f64() / 1e6
}

/// The lowest rate at any size, in millions of rows a second.
fn slowest(times: &[Duration]) -> f64 {
    let rates = SIZES.iter().zip(times);
    let rates = rates.map(|(rows, time)| millions_per_s(*rows, *time));
    rates.fold(f64::INFINITY, f64::min)
}

fn first_rows(text: &[u8], rows: usize) -> &[u8] {
    let mut ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let (last, _) = ends.nth(rows - 1).expect("there are enough rows");
    &text[..=last]
}

fn read(text: Vec<u8>) -> CaseRecord {
    let file = Log::read_jsonl(text).expect("the rows were just written");
    CaseRecord {
        log: file.log,
        ..CaseRecord::default()
    }
}

fn read_and_judge(text: Vec<u8>) -> (CaseRecord, Judgement) {
    let record = read(text);
    let judgement = judge(&record);
    assert!(judgement.violations.is_empty());
    (record, judgement)
}

fn sum_of_tokens(rows: &[Row]) -> u64 {
    let tokens = rows.iter().filter_map(|row| row.token);
    tokens.fold(0, |sum, token| sum.wrapping_add(token.0))
}

fn parse_by_serde(text: &[u8]) -> Vec<LogRow> {
    let text = std::str::from_utf8(text).expect("JSON is UTF-8");
    let rows = text.lines().map(serde_json::from_str);
    let rows: Result<_, _> = rows.collect();
    rows.expect("the rows were just written")
}

fn count_lines(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte == b'\n').count()
}
