use crate::model::{
    Backend, Fence, FenceFloor, Gate, LockOptions, OnLost, ReleaseStyle, WaitPolicy, parse_duration,
};
use clap::Args;
use clap::builder::FalseyValueParser;
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

    /// What a token is at least, on one Redis, so that tokens grow after the counter was lost
    #[arg(long, env = "FENCEPOST_FENCE_FLOOR", default_value_t)]
    pub fence_floor: FenceFloor,

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

    /// Where to stop and wait for a go on stdin: start, after_acquire, before_write, before_release
    // The full path keeps clap from splitting the list itself: that way an
    // empty variable is an empty list and not one gate without a name.
    #[arg(long, env = "FENCEPOST_GATES", default_value = "", value_parser = gates)]
    pub gates: std::vec::Vec<Gate>,

    /// How often to acquire, write and release
    #[arg(long, env = "FENCEPOST_ROUNDS", default_value_t = 1)]
    pub rounds: u32,

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

    /// Of everything random, such as the waits between two tries
    #[arg(long, env = "FENCEPOST_SEED", default_value_t = 1)]
    pub seed: u64,

    /// Serve GET /metrics on this address
    #[arg(long, env = "FENCEPOST_METRICS")]
    pub metrics: Option<SocketAddr>,
}

impl WorkerTask {
    pub fn lock_options(&self) -> LockOptions {
        LockOptions {
            backend: self.backend,
            wait: self.wait,
            release: self.release,
            fence_floor: self.fence_floor,
        }
    }
}

/// Longer than any run, and short enough that adding it to a clock cannot overflow.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A number without a unit is milliseconds, as the names of the variables say.
fn duration(text: &str) -> Result<Duration, String> {
    let bare = text.parse().ok().map(Duration::from_millis);
    match bare.or_else(|| parse_duration(text)) {
        Some(duration) if duration <= LONGEST => Ok(duration),
        Some(_) => Err("longer than a day".to_owned()),
        None => Err("not a duration such as 2s, 500ms, 1m, or 500 for milliseconds".to_owned()),
    }
}

fn gates(text: &str) -> Result<Vec<Gate>, String> {
    let names = text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            Gate::parse(name).ok_or_else(|| {
                let known = Gate::ALL.map(Gate::name).join(", ");
                format!("there is no gate {name:?}; there are {known}")
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
        assert_eq!((task.rounds, task.key.as_str()), (3, "k"));
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
