//! A fencepost worker in Rust 1.63 or newer, without dependencies: copy this file beside your lock,
//! write `mod fencepost_kit;`, implement [`Lock`] and call [`run`] in `main`.
//!
//! An error is reported as a failed step. The protocol is in docs/contract.md of fencepost.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, BufRead, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What you write. One value plays all rounds of a worker; the watchdog calls `renew` from another
/// thread, never beside another call.
pub trait Lock: Send + 'static {
    /// Asks for the lock: a token (any number if there are none), or None if it is not granted now;
    /// then it is asked again until the timeout.
    fn acquire(&mut self, owner: &str, timeout: Duration) -> Result<Option<u64>, Error>;
    /// Returns the outcome: released, expired, superseded or unknown.
    fn release(&mut self) -> Result<&'static str, Error>;
    /// Prolongs the lock; false if it is not ours any more. Offered if [`Offers::renew`] is set.
    fn renew(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
    /// Am I still the holder? Offered if [`Offers::held`] is set.
    fn held(&mut self) -> Result<bool, Error> {
        Ok(true)
    }
}

/// What your lock does.
pub struct Offers {
    /// Settings of which it can do these values alone.
    pub only: &'static [(&'static str, &'static [&'static str])],
    pub tokens: bool,
    pub renew: bool,
    pub held: bool,
}

/// What a lock needs to know.
#[derive(Clone)]
pub struct Task {
    pub key: String,
    pub lock_key: String,
    pub ttl: Duration,
    pub endpoints: Vec<String>,
    pub backend: String,
    pub worker: String,
}

const ONLY: [(&str, &[&str]); 4] = [
    ("FENCEPOST_WAIT", &["spin"]),
    ("FENCEPOST_RELEASE", &["compare-and-delete"]),
    ("FENCEPOST_FENCE_FLOOR", &["none"]),
    ("FENCEPOST_NESTED", &["1"]),
];

/// Plays the task in the environment, and ends the process.
pub fn run<L: Lock>(make: impl FnOnce(Task) -> L, offers: Offers) -> ! {
    extern "C" fn end(_: i32) {
        // SAFETY: `_exit` may be called in a handler.
        unsafe { _exit(0) }
    }
    // SAFETY: the handler ends the process and touches nothing. The kernel ignores SIGTERM for
    // pid 1 unless somebody listens.
    unsafe { signal(15, end) };
    let console = Arc::new(Console::new(setting("GATES", "")));
    let listening = Arc::clone(&console);
    thread::spawn(move || listening.listen());
    let mut only: BTreeMap<&str, &[&str]> = ONLY.into_iter().collect();
    if !offers.renew {
        only.insert("FENCEPOST_RENEW", &["false"]);
    }
    only.extend(offers.only.iter().copied());
    for (name, values) in &only {
        let asked = std::env::var(name).unwrap_or_else(|_| values[0].to_owned());
        if !values.contains(&asked.as_str()) {
            let values = values.join(" or ");
            console.refuse(&format!("this worker has {name}={values} alone, and not {asked}"));
        }
    }
    if !setting("RESOURCE", "").starts_with("http://") {
        console.refuse("this worker writes to an HTTP resource alone");
    }
    let mut lacks = Vec::new();
    if !offers.tokens {
        lacks.push("token");
    }
    if !offers.renew && !offers.held {
        lacks.push("lost");
    }
    let key = setting("KEY", "account-42");
    let task = Task {
        lock_key: setting("LOCK_KEY", &format!("lock:{key}")),
        key,
        ttl: millis("TTL_MS", 2000),
        endpoints: setting("ENDPOINTS", "").split(',').map(str::to_owned).collect(),
        backend: setting("BACKEND", "redis"),
        worker: setting("WORKER", "worker"),
    };
    let lock = Arc::new(Mutex::new(make(task.clone())));
    let worker = Worker { task, lock, console, offers };
    worker.play_all(&lacks, &only);
    std::process::exit(0)
}

struct Worker<L> {
    task: Task,
    lock: Arc<Mutex<L>>,
    console: Arc<Console>,
    offers: Offers,
}

/// The beginning of each event of a hold.
struct Hold {
    round: u64,
    token: Option<u64>,
    fields: String,
}

impl<L: Lock> Worker<L> {
    fn play_all(&self, lacks: &[&str], only: &BTreeMap<&str, &[&str]>) {
        let list = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
            format!("[{}]", values.join(","))
        };
        let only: Vec<String> = only.iter().map(|(name, values)| format!("{}:{}", quoted(name), list(values))).collect();
        self.console.say("ready", &format!("\"lacks\":{},\"only\":{{{}}}", list(lacks), only.join(",")));
        self.console.gate("start", 0);
        let lasting = millis("FOR_MS", 0);
        let otherwise = if lasting.is_zero() { 1 } else { u64::MAX };
        let rounds = setting("ROUNDS", "").parse().unwrap_or(otherwise);
        let (started_ns, mut played) = (now_ns(), 0);
        let goes_on = || lasting.is_zero() || now_ns() - started_ns < nanos(lasting);
        while played < rounds && goes_on() {
            played += 1;
            if !self.play(played) {
                thread::sleep(Duration::from_millis(100));
            }
        }
        self.console.say("done", &format!("\"rounds\":{played}"));
    }

    /// Returns whether every step had an answer.
    fn play(&self, round: u64) -> bool {
        let key = quoted(&self.task.key);
        self.console.say("acquiring", &format!("\"round\":{round},\"key\":{key}"));
        let owner = new_owner();
        let (token, asked_ns) = match self.acquire(&owner) {
            Ok(granted) => granted,
            Err(error) => return self.console.failed(round, "acquire", &error),
        };
        let token = self.offers.tokens.then(|| token);
        let mut fields = format!("\"round\":{round},\"key\":{key}");
        if let Some(token) = token {
            let _ = write!(fields, ",\"token\":{token}");
        }
        let until_ns = asked_ns + nanos(self.task.ttl);
        self.console.say("acquired", &format!("{fields},\"owner\":\"{owner}\",\"valid_until_ns\":{until_ns}"));
        let hold = Hold { round, token, fields };
        let mut dog = self.watchdog(&hold);
        self.console.gate("after_acquire", round);
        let answered = self.read_work_write(&hold, &owner, &dog);
        self.console.gate("before_release", round);
        dog.end();
        self.console.say("releasing", &hold.fields);
        let outcome = self.lock.lock().unwrap().release();
        match outcome {
            Ok(outcome) => self.console.say("released", &format!("{},\"outcome\":\"{outcome}\"", hold.fields)),
            Err(error) => return self.console.failed(round, "release", &error),
        }
        answered
    }

    fn acquire(&self, owner: &str) -> Result<(u64, u64), Error> {
        let limit = millis("ACQUIRE_TIMEOUT_MS", 30000);
        let deadline = Instant::now() + limit;
        loop {
            let asked_ns = now_ns();
            let left = deadline.saturating_duration_since(Instant::now());
            if let Some(token) = self.lock.lock().unwrap().acquire(owner, left)? {
                return Ok((token, asked_ns));
            }
            if Instant::now() >= deadline {
                return Err(format!("not granted within {limit:?}").into());
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn read_work_write(&self, hold: &Hold, owner: &str, dog: &Watchdog) -> bool {
        let round = hold.round;
        let mut headers = format!("X-Owner: {owner}\r\n");
        let mut count = 0;
        if setting("READS", "true") == "true" {
            match self.read() {
                Ok((position, read)) => {
                    let _ = write!(headers, "X-Based-On: {position}\r\n");
                    count = read;
                }
                Err(error) => return self.console.failed(round, "read", &error),
            }
        }
        let stops = setting("ON_LOST", "stop") == "stop";
        self.work(millis("WORK_MS", 50), stops, dog);
        let pause = millis("PAUSE_MS", 0);
        if !pause.is_zero() {
            // Stops the watchdog as well, as a garbage collector would.
            let _world = self.lock.lock().unwrap();
            thread::sleep(pause);
        }
        if let Some(reason) = self.lost(dog) {
            self.console.say("lost", &format!("{},\"reason\":{}", hold.fields, quoted(&reason)));
            if stops {
                return true;
            }
        }
        let token = hold.token.map_or("null".to_owned(), |token| token.to_string());
        if hold.token.is_some() && setting("FENCE", "on") == "on" {
            let _ = write!(headers, "X-Fence-Token: {token}\r\n");
        }
        let body = format!("{{\"count\": {}, \"by\": {}, \"token\": {token}}}", count + 1, quoted(&self.task.worker));
        // After the last look: what happens at this gate, no lock can see.
        self.console.gate("before_write", round);
        let hash = sha256_start(body.as_bytes());
        let owned = format!("\"owner\":\"{owner}\"");
        self.console.say("writing", &format!("{},{owned},\"body\":\"{hash:016x}\"", hold.fields));
        match self.ask("PUT", &headers, &body, &[200, 409]) {
            Ok((200, answer)) => {
                let position = number_in(&answer, "position");
                self.console.say("write_accepted", &format!("{},{owned},\"position\":{position}", hold.fields));
            }
            Ok((_, answer)) => {
                let (seen, got) = (number_in(&answer, "seen"), number_in(&answer, "got"));
                let key = quoted(&self.task.key);
                self.console.say("write_rejected", &format!("\"round\":{round},\"key\":{key},{owned},\"seen\":{seen},\"got\":{got}"));
            }
            Err(error) => return self.console.failed(round, "write", &error),
        }
        true
    }

    /// Works, and stops early once the lock is lost.
    fn work(&self, lasting: Duration, stops: bool, dog: &Watchdog) {
        let end = Instant::now() + lasting;
        while Instant::now() < end && !(stops && self.lost(dog).is_some()) {
            let left = end.saturating_duration_since(Instant::now());
            thread::sleep(left.min(self.task.ttl / 4));
        }
    }

    fn lost(&self, dog: &Watchdog) -> Option<String> {
        let known = dog.shared.lost.lock().unwrap().clone();
        if known.is_some() || !self.offers.held {
            return known;
        }
        let reason = match self.lock.lock().unwrap().held() {
            Ok(true) => return None,
            Ok(false) => "the lock is not ours any more".to_owned(),
            Err(error) => format!("the lock cannot be looked at: {error}"),
        };
        *dog.shared.lost.lock().unwrap() = Some(reason.clone());
        Some(reason)
    }

    /// Renews at a third of the TTL if the task says so.
    fn watchdog(&self, hold: &Hold) -> Watchdog {
        let shared = Arc::new(Shared::default());
        if setting("RENEW", "false") != "true" {
            return Watchdog { shared, thread: None };
        }
        let (lock, console, watched) = (Arc::clone(&self.lock), Arc::clone(&self.console), Arc::clone(&shared));
        let (ttl, fields) = (self.task.ttl, hold.fields.clone());
        let thread = thread::spawn(move || {
            while !watched.ended_within(ttl / 3) {
                let mut lock = lock.lock().unwrap();
                let asked_ns = now_ns();
                match lock.renew() {
                    Ok(true) => {
                        let lost = watched.lost.lock().unwrap();
                        if lost.is_some() {
                            // It was found lost in the meantime.
                            return;
                        }
                        let until_ns = asked_ns + nanos(ttl);
                        console.say("renewed", &format!("{fields},\"valid_until_ns\":{until_ns}"));
                    }
                    Ok(false) => {
                        *watched.lost.lock().unwrap() = Some("the renewal was refused".to_owned());
                        return;
                    }
                    // Whether it took effect is unknown: try again.
                    Err(error) => eprintln!("renew: {error}"),
                }
            }
        });
        Watchdog { shared, thread: Some(thread) }
    }

    /// Returns the position of the value and the count in it, both 0 where there is none yet.
    fn read(&self) -> Result<(u64, u64), Error> {
        let (status, answer) = self.ask("GET", "", "", &[200, 404])?;
        // The value is a string with JSON in it, and its quotes are escaped.
        let count = number_in(&answer.replace('\\', ""), "count");
        Ok(if status == 404 { (0, 0) } else { (number_in(&answer, "position"), count) })
    }

    /// Sends one request on a connection of its own: nothing repeats it.
    fn ask(&self, method: &str, headers: &str, body: &str, expected: &[u16]) -> Result<(u16, String), Error> {
        let url = setting("RESOURCE", "");
        let host = url.trim_start_matches("http://").trim_end_matches('/');
        let address = host.to_socket_addrs()?.next().ok_or("the resource has no address")?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        let key: String = self.task.key.bytes().map(in_path).collect();
        let length = body.len();
        write!(stream, "{method} /r/{key} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or("no answer")?;
        let text = answer.split_once("\r\n\r\n").map_or("", |(_, text)| text).to_owned();
        match expected.contains(&status) {
            true => Ok((status, text)),
            false => Err(format!("{status}: {text}").into()),
        }
    }
}

struct Watchdog {
    shared: Arc<Shared>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    lost: Mutex<Option<String>>,
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Shared {
    fn ended_within(&self, time: Duration) -> bool {
        let waiting = self.changed.wait_timeout_while(self.ended.lock().unwrap(), time, |ended| !*ended);
        *waiting.unwrap().0
    }
}

impl Watchdog {
    fn end(&mut self) {
        *self.shared.ended.lock().unwrap() = true;
        self.shared.changed.notify_all();
        // A renewal under way would come after the release.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Events on stdout, gates and questions on stdin.
struct Console {
    stops_at: String,
    opened: Mutex<HashSet<(String, u64)>>,
    changed: Condvar,
    speaking: Mutex<()>,
}

impl Console {
    fn new(stops_at: String) -> Console {
        Console { stops_at, opened: Mutex::default(), changed: Condvar::new(), speaking: Mutex::new(()) }
    }

    fn say(&self, event: &str, fields: &str) {
        let _speaking = self.speaking.lock().unwrap();
        // The time is taken under the lock, so that the lines are in its order.
        let line = format!("{{\"at_ns\":{},\"event\":\"{event}\",{fields}}}\n", now_ns());
        let mut stdout = io::stdout().lock();
        if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
            std::process::exit(1);
        }
    }

    fn failed(&self, round: u64, during: &str, error: &Error) -> bool {
        let error = quoted(&error.to_string());
        self.say("failed", &format!("\"round\":{round},\"during\":\"{during}\",\"error\":{error}"));
        false
    }

    fn refuse(&self, reason: &str) -> ! {
        self.say("refused", &format!("\"reason\":{}", quoted(reason)));
        std::process::exit(0)
    }

    /// Waits for the go, which may have come already.
    fn gate(&self, gate: &str, round: u64) {
        if self.stops_at.split(',').any(|stop| stop == gate) {
            self.say("at_gate", &format!("\"round\":{round},\"gate\":\"{gate}\""));
            let opened = self.opened.lock().unwrap();
            let key = (gate.to_owned(), round);
            drop(self.changed.wait_while(opened, |opened| !opened.contains(&key)).unwrap());
        }
    }

    fn listen(&self) {
        for line in io::stdin().lock().lines().flatten() {
            let word = |name: &str| {
                let rest = line.split_once(&format!("\"{name}\""))?.1;
                rest.split('"').nth(1).map(str::to_owned)
            };
            if let Some(gate) = word("go") {
                self.opened.lock().unwrap().insert((gate, number_in(&line, "round")));
                self.changed.notify_all();
            } else if word("tell").as_deref() == Some("clock") {
                // These two are read as everybody reads them, with every skew.
                let (realtime_ns, monotonic_ns) = (own_clock_ns(0), own_clock_ns(1));
                self.say("clock", &format!("\"realtime_ns\":{realtime_ns},\"monotonic_ns\":{monotonic_ns}"));
            } else {
                eprintln!("ignored {line:?} on stdin");
            }
        }
        // The harness is gone, and so are we, but not in the middle of a line.
        let _speaking = self.speaking.lock().unwrap();
        std::process::exit(0);
    }
}

#[repr(C)]
#[derive(Default)]
struct Timespec {
    sec: i64,
    nsec: i64,
}

extern "C" {
    fn syscall(number: i64, ...) -> i64;
    fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn _exit(code: i32) -> !;
}

const CLOCK_GETTIME: i64 = if cfg!(target_arch = "aarch64") { 113 } else { 228 };

/// CLOCK_MONOTONIC by the system call itself: the vDSO, which `Instant` uses, follows a `skew`, and
/// the times of events must not.
pub fn now_ns() -> u64 {
    let mut now = Timespec::default();
    // SAFETY: the kernel writes one timespec.
    unsafe { syscall(CLOCK_GETTIME, 1i64, &mut now as *mut Timespec) };
    now.sec as u64 * 1_000_000_000 + now.nsec as u64
}

fn own_clock_ns(clock: i32) -> i64 {
    let mut now = Timespec::default();
    // SAFETY: libc writes one timespec.
    unsafe { clock_gettime(clock, &mut now) };
    now.sec * 1_000_000_000 + now.nsec
}

fn setting(name: &str, otherwise: &str) -> String {
    std::env::var(format!("FENCEPOST_{name}")).unwrap_or_else(|_| otherwise.to_owned())
}

fn millis(name: &str, otherwise: u64) -> Duration {
    Duration::from_millis(setting(name, "").parse().unwrap_or(otherwise))
}

fn nanos(time: Duration) -> u64 {
    time.as_nanos() as u64
}

fn new_owner() -> String {
    let mut id = [0; 16];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut id));
    read.expect("random bytes");
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn in_path(byte: u8) -> String {
    match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        true => (byte as char).to_string(),
        false => format!("%{byte:02X}"),
    }
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => drop(write!(quoted, "\\u{:04x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// The number of a field, or 0.
fn number_in(json: &str, field: &str) -> u64 {
    let rest = json.split_once(&format!("\"{field}\"")).map_or("", |(_, rest)| rest);
    let rest = rest.trim_start_matches([' ', ':']);
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The first 8 bytes of the SHA-256.
fn sha256_start(message: &[u8]) -> u64 {
    let primes: Vec<u32> = (2u32..312).filter(|n| (2..*n).all(|d| n % d != 0)).collect();
    // The fractional parts of the square and cube roots of the first primes.
    let root = |n: u32, power: u32| {
        let (mut low, mut high) = (0u128, 1u128 << 36);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = match power {
                2 => middle * middle <= u128::from(n) << 64,
                _ => middle * middle * middle <= u128::from(n) << 96,
            };
            *(if fits { &mut low } else { &mut high }) = middle;
        }
        low as u32
    };
    let mut state: Vec<u32> = primes[..8].iter().map(|prime| root(*prime, 2)).collect();
    let round: Vec<u32> = primes[..64].iter().map(|prime| root(*prime, 3)).collect();
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize((message.len() + 9 + 63) / 64 * 64 - 8, 0);
    padded.extend((message.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut w: Vec<u32> = block.chunks(4).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]])).collect();
        for i in 16..64 {
            let a = w[i - 15].rotate_right(7) ^ w[i - 15].rotate_right(18) ^ (w[i - 15] >> 3);
            let b = w[i - 2].rotate_right(17) ^ w[i - 2].rotate_right(19) ^ (w[i - 2] >> 10);
            w.push(w[i - 16].wrapping_add(a).wrapping_add(w[i - 7]).wrapping_add(b));
        }
        let mut s = state.clone();
        for i in 0..64 {
            let e = s[4].rotate_right(6) ^ s[4].rotate_right(11) ^ s[4].rotate_right(25);
            let choice = (s[4] & s[5]) ^ (!s[4] & s[6]);
            let t = [e, choice, round[i], w[i]].iter().fold(s[7], |sum, n| sum.wrapping_add(*n));
            let a = s[0].rotate_right(2) ^ s[0].rotate_right(13) ^ s[0].rotate_right(22);
            let majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
            s.rotate_right(1);
            s[4] = s[4].wrapping_add(t);
            s[0] = t.wrapping_add(a).wrapping_add(majority);
        }
        state.iter_mut().zip(s).for_each(|(sum, n)| *sum = sum.wrapping_add(n));
    }
    u64::from(state[0]) << 32 | u64::from(state[1])
}
