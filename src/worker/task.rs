use crate::model::{Fence, FenceFloor, Gate, WaitPolicy, WriteStyle, parse_duration};
use crate::services::{Backend, LockOptions, OnLost, ReleaseStyle};
use clap::Args;
use clap::builder::FalseyValueParser;
#[cfg(debug_assertions)]
use fencing_lock::Mutant;
use std::net::SocketAddr;
use std::time::Duration;

/// What one worker is to do. A harness says it in the environment, a person in flags.
#[derive(Clone, Debug, Args)]
pub struct WorkerTask {
    /// The name in every event
    #[arg(long = "name", env = "FENCEPOST_WORKER", default_value = "worker")]
    pub worker: String,

    /// The key to lock, and to write on the resource
    #[arg(long, env = "FENCEPOST_KEY", default_value = "account-42")]
    pub key: String,

    /// How long a grant lives, such as 2s or 500ms (a bare number: milliseconds)
    #[arg(long, env = "FENCEPOST_TTL_MS", default_value = "2s", value_parser = duration)]
    pub ttl: Duration,

    /// The kind of lock server
    #[arg(long, env = "FENCEPOST_BACKEND", default_value = "redis")]
    pub backend: Backend,

    /// How to wait for a lock that is held, on one Redis
    #[arg(long, env = "FENCEPOST_WAIT", default_value_t)]
    pub wait: WaitPolicy,

    /// How to give a lock back, on one Redis
    #[arg(long, env = "FENCEPOST_RELEASE", default_value_t)]
    pub release: ReleaseStyle,

    /// Lower bound of tokens, on one Redis, so that tokens grow after the counter was lost
    #[arg(long, env = "FENCEPOST_FENCE_FLOOR", default_value_t)]
    pub fence_floor: FenceFloor,

    /// For how long to grant the lock to nobody after the end of a holder's session, on a Consul
    #[arg(long, env = "FENCEPOST_LOCK_DELAY_MS", default_value = "0ms", value_parser = duration)]
    pub lock_delay: Duration,

    /// The lock servers, as host:port with commas between
    #[arg(
        long,
        env = "FENCEPOST_ENDPOINTS",
        default_value = "127.0.0.1:6379",
        value_delimiter = ','
    )]
    pub endpoints: Vec<String>,

    /// The base URL of the resource
    #[arg(
        long,
        env = "FENCEPOST_RESOURCE",
        default_value = "http://127.0.0.1:8080"
    )]
    pub resource: String,

    /// Where to stop and wait for a go on stdin: start, after_acquire, before_write, before_leave,
    /// before_release, between_get_and_del
    // The full path keeps clap from splitting the list itself, so that an empty variable is an
    // empty list and not one gate without a name.
    #[arg(long, env = "FENCEPOST_GATES", default_value = "", value_parser = gates)]
    pub gates: std::vec::Vec<Gate>,

    /// How often to acquire, write and release [default: 1; with --for as often as fits]
    #[arg(long, env = "FENCEPOST_ROUNDS")]
    pub rounds: Option<u32>,

    /// For how long to begin new rounds, from the start on; the last one is finished.
    /// Together with --rounds, whichever comes first ends it (0ms: rounds alone)
    #[arg(long = "for", env = "FENCEPOST_FOR_MS", default_value = "0ms", value_parser = duration)]
    pub lasting: Duration,

    /// How many holds to nest on one grant, 1 to 8: the work is done in the innermost one
    #[arg(long, env = "FENCEPOST_NESTED", default_value = "1", value_parser = nested)]
    pub nested: usize,

    /// How long to work between the read and the write
    #[arg(long, env = "FENCEPOST_WORK_MS", default_value = "50ms", value_parser = duration)]
    pub work: Duration,

    /// How long to stop the world, watchdog and all, before the last look at the lease
    #[arg(long, env = "FENCEPOST_PAUSE_MS", default_value = "0ms", value_parser = duration)]
    pub pause: Duration,

    /// What to do when the lease is seen to be lost
    #[arg(long, env = "FENCEPOST_ON_LOST", default_value = "stop")]
    pub on_lost: OnLost,

    /// Whether to send the fencing token along with the write: on or off
    #[arg(long, env = "FENCEPOST_FENCE", default_value = "on")]
    pub fence: Fence,

    /// How long to wait for the lock in each round
    #[arg(long, env = "FENCEPOST_ACQUIRE_TIMEOUT_MS", default_value = "30s", value_parser = duration)]
    pub acquire_timeout: Duration,

    /// Renew the lease at a third of its TTL while it is held
    #[arg(long, env = "FENCEPOST_RENEW", value_parser = FalseyValueParser::new())]
    pub renew: bool,

    /// Read the value before the work, and say with the write what was read: true or false
    #[arg(long, env = "FENCEPOST_READS", default_value_t = true, action = clap::ArgAction::Set)]
    pub reads: bool,

    /// How to write to a table of a Postgres: compare, lock-row, retry, or a mistake to show:
    /// check-then-write, fence-elsewhere, retry-blindly
    #[arg(long, env = "FENCEPOST_WRITES", default_value_t)]
    pub writes: WriteStyle,

    /// Seed of everything random, such as the waits between two tries
    #[arg(long, env = "FENCEPOST_SEED", default_value_t = 1)]
    pub seed: u64,

    /// Serve GET /metrics on this address
    #[arg(long, env = "FENCEPOST_METRICS")]
    pub metrics: Option<SocketAddr>,

    /// Switch a defect of the lock on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, env = "FENCEPOST_MUTANT")]
    pub mutant: Option<Mutant>,
}

impl WorkerTask {
    pub fn lock_options(&self) -> LockOptions {
        LockOptions {
            backend: self.backend,
            wait: self.wait,
            release: self.release,
            fence_floor: self.fence_floor,
            lock_delay: self.lock_delay,
        }
    }

    pub(super) fn wants_another_round(&self, played: u32, since_start: Duration) -> bool {
        match (self.rounds, self.lasting) {
            (rounds, Duration::ZERO) => played < rounds.unwrap_or(1),
            (rounds, lasting) => since_start < lasting && rounds.is_none_or(|most| played < most),
        }
    }
}

/// The longest accepted duration: longer than any run, and short enough that adding it to a
/// clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration. A number without a unit is milliseconds, as the names of the variables say.
fn duration(text: &str) -> Result<Duration, String> {
    let bare = text.parse().ok().map(Duration::from_millis);
    match bare.or_else(|| parse_duration(text)) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err("longer than a day".to_owned()),
        None => Err("not a duration such as 2s, 500ms, 1m, or 500 for milliseconds".to_owned()),
    }
}

fn nested(text: &str) -> Result<usize, String> {
    let depth = text.parse().ok().filter(|depth| (1..=8).contains(depth));
    depth.ok_or_else(|| "not a whole number from 1 to 8".to_owned())
}

fn gates(text: &str) -> Result<Vec<Gate>, String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            name.parse().map_err(|_| {
                let known: Vec<&str> = Gate::ALL.iter().map(|gate| gate.name()).collect();
                format!("there is no gate {name:?}; there are {}", known.join(", "))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        task: WorkerTask,
    }

    fn parse(line: &str) -> Result<WorkerTask, String> {
        let words = std::iter::once("worker").chain(line.split_whitespace());
        let parsed = Line::try_parse_from(words);
        parsed.map(|line| line.task).map_err(|e| e.to_string())
    }

    #[test]
    fn the_flags_of_the_seed_are_understood() {
        let task = parse(
            "--backend redis --ttl 2s --work 50ms --pause 5s --rounds 3 --key k \
             --gates before_write,before_release --fence off --renew --on-lost ignore",
        )
        .unwrap();
        assert_eq!(task.backend, Backend::Redis);
        assert_eq!(task.ttl, Duration::from_secs(2));
        assert_eq!(task.work, Duration::from_millis(50));
        assert_eq!(task.pause, Duration::from_secs(5));
        assert_eq!((task.rounds, task.key.as_str()), (Some(3), "k"));
        assert_eq!(task.gates, [Gate::BeforeWrite, Gate::BeforeRelease]);
        assert_eq!(task.fence, Fence::Off);
        assert!(task.renew);
        assert_eq!(task.on_lost, OnLost::Ignore);
    }

    #[test]
    fn the_defaults_are_a_safe_holder_without_gates() {
        let task = parse("").unwrap();
        assert_eq!(task.gates, []);
        assert_eq!(task.fence, Fence::On);
        assert_eq!(task.on_lost, OnLost::Stop);
        assert!(!task.renew);
        assert_eq!(task.metrics, None);
        assert_eq!(task.nested, 1);
    }

    #[test]
    fn rounds_and_time_end_a_worker_whichever_comes_first() {
        let (early, late) = (Duration::from_secs(1), Duration::from_secs(2));
        for (line, played, since_start, another) in [
            ("", 0, late, true),
            ("", 1, early, false),
            ("--rounds 3", 2, late, true),
            ("--rounds 3", 3, early, false),
            ("--rounds 0", 0, early, false),
            ("--for 2s", 1000, early, true),
            ("--for 2s", 1, late, false),
            ("--for 2s --rounds 3", 2, early, true),
            ("--for 2s --rounds 3", 3, early, false),
            ("--for 2s --rounds 3", 1, late, false),
        ] {
            let task = parse(line).unwrap();
            let wants = task.wants_another_round(played, since_start);
            assert_eq!(wants, another, "{line}: {played} after {since_start:?}");
        }
    }

    #[test]
    fn holds_are_nested_up_to_eight_deep() {
        assert_eq!(parse("--nested 8").unwrap().nested, 8);
        for depth in ["0", "9", "-1", "two"] {
            assert!(parse(&format!("--nested={depth}")).is_err(), "{depth}");
        }
    }

    #[test]
    fn a_bare_number_is_milliseconds() {
        assert_eq!(duration("2000"), Ok(Duration::from_secs(2)));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for text in ["", "-1", "2h", "25000m", "99999999999999999999"] {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_wrong_gate_is_told_the_right_ones() {
        let error = parse("--gates before_writ").unwrap_err();
        assert!(error.contains("before_writ\"; there are start, after_acquire, before_write"));
        assert!(parse("--fence maybe").is_err());
    }
}
