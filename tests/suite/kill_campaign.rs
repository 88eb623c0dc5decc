//! Runs of every kind, ended at random moments: nothing of them is left after the next
//! `clean`, and a neighbour that lives is not harmed.
//!
//! `FENCEPOST_KILLS` says how many; `FENCEPOST_KILLS_SEED` draws the same moments again.

mod containers;
mod processes;

use crate::support::*;
use fastrand::Rng;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const KILLS: u64 = 20;
/// Containers take their time: one kill of so many is on Docker.
const ON_DOCKER: u64 = 5;
/// So long a neighbour lives beside; then the next one.
const KILLS_OF_A_NEIGHBOUR: u64 = 10;

/// Stands still, for as long as anybody looks.
const NEIGHBOUR: &str = "\
name: neighbour
about: A test.
topology: redis
lock: { backend: redis, ttl: 20m }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { pause: a, for: 20m } }
cases:
  alone: { fence: on, expect: { violations: 0 } }
deadline: 30m
";

fn kills() -> u64 {
    number("FENCEPOST_KILLS").unwrap_or(KILLS)
}

fn number(setting: &str) -> Option<u64> {
    std::env::var(setting).ok()?.parse().ok()
}

/// How a run is ended.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Terminated,
    Interrupted,
    /// Ctrl-C, and once more while it cleans up.
    StoppedAtOnce,
}

const ENDS: [End; 4] = [
    End::Killed,
    End::Terminated,
    End::Interrupted,
    End::StoppedAtOnce,
];

/// One kill of a campaign, with all that chance decided.
#[derive(Debug)]
struct Kill {
    #[expect(dead_code, reason = "shown where it fails")]
    seed: u64,
    #[expect(dead_code, reason = "shown where it fails")]
    number: u64,
    kind: &'static str,
    after: Duration,
    end: End,
    again_after: Duration,
}

/// What comes of a kill.
struct Victim {
    pid: u32,
    /// It said that it has healed and removed everything.
    is_tidy: bool,
}

impl Kill {
    /// Whatever was drawn before it, this one is always the same.
    fn draw(seed: u64, number: u64, kinds: &[&'static str], within: Duration) -> Kill {
        let mut chance = Rng::with_seed(seed.wrapping_add(number));
        let mut up_to = |limit: Duration| limit.mul_f64(chance.f64());
        let (after, again_after) = (up_to(within), up_to(Duration::from_millis(500)));
        Kill {
            seed,
            number,
            // All take turns, and so all come in the shortest campaign.
            kind: kinds[number as usize % kinds.len()],
            after,
            end: chance.choice(ENDS).expect("there are some"),
            again_after,
        }
    }

    /// Ends a run; one that was faster has ended by itself.
    fn strike(&self, command: Command) -> Victim {
        let run = start(command);
        let pid = run.pid;
        let signal = |signal| {
            let _ = kill(Pid::from_raw(pid as i32), signal);
        };
        // The moment is what chance decides, so there is nothing to wait for.
        std::thread::sleep(self.after);
        match self.end {
            End::Killed => signal(Signal::SIGKILL),
            End::Terminated => signal(Signal::SIGTERM),
            End::Interrupted => signal(Signal::SIGINT),
            End::StoppedAtOnce => {
                signal(Signal::SIGINT);
                std::thread::sleep(self.again_after);
                signal(Signal::SIGINT);
            }
        }
        let ended = run.wait();
        // None: before it listened, or by force.
        let may_be = [None, Some(0), Some(1), Some(2), Some(130)];
        assert!(may_be.contains(&ended.code), "{self:?}\n{ended}");
        assert!(!ended.stderr.contains("panicked"), "{self:?}\n{ended}");
        let once = matches!(self.end, End::Terminated | End::Interrupted);
        Victim {
            pid,
            is_tidy: once && ended.code == Some(130),
        }
    }
}

/// Where the campaign runs its scenarios.
struct Ground {
    home: Home,
    next_door: Home,
    results: PathBuf,
}

impl Ground {
    fn new(name: &str) -> Ground {
        let home = Home::with_only(&[SCENARIO, "ttl-below-work"]);
        // Elsewhere, else a night would run it too.
        let next_door = Home::with_only(&[]);
        next_door.write("scenarios/neighbour.yml", NEIGHBOUR);
        let results = fresh_folder(&format!("kill-campaign-{name}"));
        Ground {
            home,
            next_door,
            results,
        }
    }

    /// The arguments of a command; `up` has no results.
    fn arguments<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let results = ["--results", self.results.to_str().expect("a plain path")];
        let results = match command[0] {
            "up" => &[],
            _ => &results[..],
        };
        [&["--home", self.home.path()], command, results].concat()
    }

    fn neighbour<'a>(&'a self, runtime: &'a str) -> Vec<&'a str> {
        let home = ["--home", self.next_door.path(), "run", "neighbour"];
        let results = self.results.to_str().expect("a plain path");
        [&home[..], &["--runtime", runtime, "--results", results]].concat()
    }

    /// Returns when the neighbour stands still.
    fn await_neighbour(&self) {
        let faults = self.neighbours_faults();
        await_row(&faults, |row| row["stage"] == "observed");
    }

    fn neighbours_faults(&self) -> PathBuf {
        self.results.join("neighbour/latest/alone/faults.jsonl")
    }

    /// It was not disturbed, and heals what it did itself.
    fn end_neighbour(&self, neighbour: Running) {
        neighbour.signal(Signal::SIGINT);
        neighbour.wait().expect_code(130);
        let faults = rows(&self.neighbours_faults());
        let stages: Vec<&str> = faults
            .iter()
            .filter_map(|row| row["stage"].as_str())
            .collect();
        assert_eq!(stages, ["requested", "observed", "healed"], "{faults:#?}");
        std::fs::remove_dir_all(self.results.join("neighbour")).expect("its results");
    }
}

/// As good as any other, and said, so that it can be said again.
fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |now| now.as_secs());
    let seed = number("FENCEPOST_KILLS_SEED").unwrap_or(now);
    println!("FENCEPOST_KILLS_SEED={seed}");
    seed
}
