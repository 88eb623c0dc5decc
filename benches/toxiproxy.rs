//! What one connection through the Toxiproxy role costs while it has no toxic, and how well toxics keep
//! their word: `cargo bench --bench toxiproxy`, with `-- --quick` for a first look and `-- --toxics` for
//! the toxics alone.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};
use tokio::io::copy_bidirectional;
use tokio::runtime::Runtime;
use toxiproxy_server::server::{LogLevel, Settings, open};
use toxiproxy_server::{NewProxy, Stream, Toxic, ToxicKind, ToxiproxyClient};

const BLOCK: usize = 128 << 10;
const PING: [u8; 64] = [7; 64];
/// Of everything that is waited for: a proxy that hangs ends the run.
const DEADLINE: Duration = Duration::from_secs(60);
const LEAST_THROUGHPUT: f64 = 0.8;
const MOST_LATENCY: f64 = 1.3;

struct Size {
    rounds: usize,
    bytes: usize,
    pings: usize,
}

const FULL: Size = Size {
    rounds: 15,
    bytes: 1 << 30,
    pings: 10_000,
};
const QUICK: Size = Size {
    rounds: 3,
    bytes: 32 << 20,
    pings: 300,
};

fn main() {
    let is_asked = |flag| std::env::args().any(|argument| argument == flag);
    let size = if is_asked("--quick") { QUICK } else { FULL };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let upstream = upstream();
    if !is_asked("--toxics") {
        without_toxics(&runtime, upstream, &size);
        println!();
    }
    with_toxics(&runtime, upstream, &size);
    // The proxies have nothing to clean up.
    runtime.shutdown_background();
}

fn without_toxics(runtime: &Runtime, upstream: SocketAddr, size: &Size) {
    let Size {
        rounds,
        bytes,
        pings,
    } = *size;
    println!("One connection, no toxics, everything in this process on loopback. 'copy' is a bare");
    println!(
        "proxy around tokio's copy_bidirectional, 'ours' the Toxiproxy role, 'direct' neither."
    );
    println!(
        "{rounds} rounds in which all three take turns: {pings} round trips of 64 bytes one after"
    );
    println!(
        "another, then {} MiB one way. Medians, quartiles behind them.",
        bytes >> 20
    );
    println!();
    let candidates = [
        ("direct", upstream),
        ("copy", runtime.block_on(bare_copy(upstream))),
        ("ours", runtime.block_on(ours(upstream)).1),
    ];
    let mut latencies = [(); 3].map(|()| Vec::new());
    let mut throughputs = [(); 3].map(|()| Vec::new());
    for round in 0..=rounds {
        for turn in 0..candidates.len() {
            // Nobody is always the first.
            let number = (turn + round) % candidates.len();
            let mut connection = connect(candidates[number].1);
            let latency = round_trip_us(&mut connection, pings);
            let throughput = mib_per_s(&mut connection, bytes);
            // The first round is for warming up.
            if round > 0 {
                latencies[number].push(latency);
                throughputs[number].push(throughput);
            }
        }
    }
    println!("            MiB/s                     round trip in µs");
    for (number, (name, _)) in candidates.iter().enumerate() {
        let throughput = Quartiles::of(throughputs[number].clone());
        let latency = Quartiles::of(latencies[number].clone());
        println!(
            "{name:>8}    {:<24}  {}",
            throughput.show(0),
            latency.show(1)
        );
    }
    println!();
    let [direct, copy, ours] = &latencies;
    let added = |through: &[f64], round: usize| through[round] - direct[round];
    let ratios = (0..rounds).map(|round| added(ours, round) / added(copy, round));
    let latency = Quartiles::of(ratios.collect());
    let [_, copy, ours] = &throughputs;
    let ratios = ours.iter().zip(copy).map(|(ours, copy)| ours / copy);
    let throughput = Quartiles::of(ratios.collect());
    let verdict = |met| if met { "met" } else { "MISSED" };
    println!(
        "throughput, ours / copy:     {}  at least {LEAST_THROUGHPUT}: {}",
        throughput.show(2),
        verdict(throughput.median >= LEAST_THROUGHPUT)
    );
    println!(
        "added latency, ours / copy:  {}  at most {MOST_LATENCY}: {}",
        latency.show(2),
        verdict(latency.median <= MOST_LATENCY)
    );
}

/// Measures fast lines and late ones. The figures of the original, 2.12, are medians on another machine of
/// two cores.
fn with_toxics(runtime: &Runtime, upstream: SocketAddr, size: &Size) {
    let (client, proxy) = runtime.block_on(ours(upstream));
    let dosed = |kind: ToxicKind, measure: &dyn Fn() -> f64| {
        let toxic = Toxic::new(Stream::Upstream, kind);
        let added = runtime.block_on(client.add_toxic("bench", &toxic));
        added.expect("a new toxic");
        let rounds = size.rounds.min(5);
        let measured = Quartiles::of((0..rounds).map(|_| measure()).collect());
        let removed = runtime.block_on(client.remove_toxic("bench", &toxic.name));
        removed.expect("it was there");
        measured
    };
    let mb_per_s = || mib_per_s(&mut started(proxy), size.bytes) * 1.048_576;
    println!(
        "One connection with one toxic upstream; {} MiB.",
        size.bytes >> 20
    );
    println!("                                ours, MB/s               the original");
    for (rate_kb_per_s, original) in [(100_000, 88), (300_000, 216), (1_000_000, 406)] {
        let measured = dosed(ToxicKind::Bandwidth { rate_kb_per_s }, &mb_per_s);
        println!(
            "bandwidth, rate {rate_kb_per_s:>12}    {:<24} {original}",
            measured.show(0)
        );
    }
    for (latency_ms, original) in [(10, 471), (100, 306), (1_000, 34)] {
        let before = peak_kib();
        let measured = dosed(latency(latency_ms), &mb_per_s);
        let grown = (peak_kib() - before) >> 10;
        println!(
            "latency, {latency_ms:>16} ms    {:<24} {original}   (peak memory + {grown} MiB)",
            measured.show(0)
        );
    }
    println!("                                ours, ms late            the original");
    for (latency_ms, original) in [(1, 0.22), (10, 0.5), (50, 0.5)] {
        let late = || round_trip_us(&mut connect(proxy), 100) / 1e3 - latency_ms as f64;
        let measured = dosed(latency(latency_ms), &late);
        println!(
            "latency, {latency_ms:>16} ms    {:<24} {original}",
            measured.show(2)
        );
    }
}

fn latency(latency_ms: u64) -> ToxicKind {
    let jitter_ms = 0;
    ToxicKind::Latency {
        latency_ms,
        jitter_ms,
    }
}

/// Returns a connection that is ready for bytes.
fn started(proxy: SocketAddr) -> TcpStream {
    let mut connection = connect(proxy);
    let no_pings = 0_usize.to_le_bytes();
    connection.write_all(&no_pings).expect("written");
    connection
}

/// The most memory that this process has had.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|peak| peak.split_whitespace().next());
    peak.and_then(|kib| kib.parse().ok()).expect("a number")
}

/// A server that says 64 bytes back for each 64, until it is told to count what
/// comes instead, and then says once that all of it has come.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the program.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = prepared(stream.expect("a connection"));
            std::thread::spawn(move || serve(&mut stream));
        }
    });
    address
}

/// The first eight bytes are the number of pings, the next the number of bytes.
fn serve(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; BLOCK];
    for _ in 0..read_number(stream)? {
        stream.read_exact(&mut buffer[..PING.len()])?;
        stream.write_all(&PING)?;
    }
    let mut left = read_number(stream)?;
    while left > 0 {
        let read = stream.read(&mut buffer)?;
        assert_ne!(read, 0, "{left} bytes are missing");
        left -= read;
    }
    stream.write_all(&PING)
}

fn read_number(stream: &mut TcpStream) -> std::io::Result<usize> {
    let mut number = [0; 8];
    stream.read_exact(&mut number)?;
    Ok(usize::from_le_bytes(number))
}

fn connect(address: SocketAddr) -> TcpStream {
    prepared(TcpStream::connect(address).expect("it listens"))
}

fn prepared(stream: TcpStream) -> TcpStream {
    stream.set_nodelay(true).expect("an option of TCP");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// The median: a few trips during which something else ran say nothing.
fn round_trip_us(stream: &mut TcpStream, pings: usize) -> f64 {
    stream.write_all(&pings.to_le_bytes()).expect("written");
    let mut answer = PING;
    let mut times: Vec<Duration> = (0..pings)
        .map(|_| {
            let start = Instant::now();
            stream.write_all(&PING).expect("written");
            stream.read_exact(&mut answer).expect("answered");
            start.elapsed()
        })
        .collect();
    times.sort();
    times[pings / 2].as_secs_f64() * 1e6
}

fn mib_per_s(stream: &mut TcpStream, bytes: usize) -> f64 {
    let block = vec![7; BLOCK];
    let start = Instant::now();
    stream.write_all(&bytes.to_le_bytes()).expect("written");
    for _ in 0..bytes / BLOCK {
        stream.write_all(&block).expect("written");
    }
    stream.read_exact(&mut PING.clone()).expect("all came");
    (bytes >> 20) as f64 / start.elapsed().as_secs_f64()
}

async fn bare_copy(upstream: SocketAddr) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await?;
            tokio::spawn(async move {
                let mut there = tokio::net::TcpStream::connect(upstream).await?;
                client.set_nodelay(true)?;
                there.set_nodelay(true)?;
                copy_bidirectional(&mut client, &mut there).await
            });
        }
        #[expect(unreachable_code, reason = "names the error")]
        std::io::Result::Ok(())
    });
    address
}

async fn ours(upstream: SocketAddr) -> (ToxiproxyClient, SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let settings = Settings {
        log: LogLevel::Off,
        ..Settings::default()
    };
    let opened = open(settings).await.expect("an open server");
    tokio::spawn(opened.serve(listener, std::future::pending()));
    let client = ToxiproxyClient::new(&base, DEADLINE).expect("an address");
    let new = NewProxy {
        name: "bench".into(),
        listen: "127.0.0.1:0".into(),
        upstream: upstream.to_string(),
        enabled: true,
    };
    let proxy = client.create(&new).await.expect("a proxy");
    let listen = proxy.listen.parse().expect("an address");
    (client, listen)
}

struct Quartiles {
    low: f64,
    median: f64,
    high: f64,
}

impl Quartiles {
    fn of(mut values: Vec<f64>) -> Quartiles {
        values.sort_by(f64::total_cmp);
        let at = |share: usize| values[(values.len() - 1) * share / 4];
        Quartiles {
            low: at(1),
            median: at(2),
            high: at(3),
        }
    }

    fn show(&self, digits: usize) -> String {
        let Quartiles { low, median, high } = self;
        format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
    }
}
