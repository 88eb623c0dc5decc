use super::*;
use tempfile::TempDir;

const WITHIN: Duration = Duration::from_secs(6);

const KINDS: [&str; 5] = ["up", "side by side", "keep", "run", "nightly"];

/// Like the topology redis, under a name that nobody else plays with.
const TOPOLOGY: &str = "redis-of-a-campaign";

fn arguments(kind: &str) -> Vec<&'static str> {
    match kind {
        "run" => vec!["run", SCENARIO, "--case", "fenced"],
        "side by side" => vec!["run", SCENARIO, "--jobs", "2"],
        "keep" => vec!["run", SCENARIO, "--case", "unfenced", "--keep"],
        "up" => vec!["up", TOPOLOGY],
        _ => vec!["nightly"],
    }
}

/// The state of the campaign alone.
struct State(TempDir);

impl State {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("XDG_STATE_HOME", self.0.path());
        command
    }

    /// The journals that are there.
    fn journals(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path().join("fencepost/faults"));
        let entries = entries.into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("readable").path());
        let mut paths: Vec<PathBuf> = paths.collect();
        paths.sort();
        paths
    }

    /// A network that the engine has miscounted is beyond anybody.
    fn clean(&self, kill: &Kill) {
        let clean = start(self.command(&["clean"])).wait();
        let engines_fault = "whatever the engine counts: restarting the engine frees it";
        let is_fine = clean.code == Some(0) || clean.stderr.contains(engines_fault);
        assert!(is_fine, "{kill:?}\n{clean}");
    }
}

#[test]
fn nothing_is_left_of_runs_in_containers() {
    let _turn = docker_shared();
    let ground = Ground::new("docker");
    let compose = ground.home.file("compose");
    let copied = std::fs::copy(
        compose.join("redis.yml"),
        compose.join(format!("{TOPOLOGY}.yml")),
    );
    copied.expect("a copy");
    let state = State(tempfile::tempdir().expect("a temporary folder"));
    let (seed, kills) = (seed(), kills() / ON_DOCKER);
    for first in (0..kills).step_by(KILLS_OF_A_NEIGHBOUR as usize) {
        let neighbour = start(state.command(&ground.neighbour("docker")));
        ground.await_neighbour();
        let look = || {
            let mut owned = owned_by(neighbour.pid);
            owned.sort();
            (owned, state.journals())
        };
        let neighbours = look();
        assert!(neighbours.0.len() > 3, "{neighbours:?}");
        for number in first..kills.min(first + KILLS_OF_A_NEIGHBOUR) {
            let kill = Kill::draw(seed, number, &KINDS, WITHIN);
            let victim = kill.strike(state.command(&ground.arguments(&arguments(kill.kind))));
            if victim.is_tidy && kill.kind != "keep" {
                assert_eq!(owned_by(victim.pid), [""; 0], "before clean: {kill:?}");
            }
            state.clean(&kill);
            assert_eq!(owned_by(victim.pid), [""; 0], "{kill:?}");
            assert_eq!(look(), neighbours, "{kill:?}");
        }
        let pid = neighbour.pid;
        ground.end_neighbour(neighbour);
        assert_eq!((owned_by(pid), state.journals()), (vec![], vec![]));
    }
}
