//! Databases refuse to run as root, need a folder that was made for them, and have more than one
//! process.

use super::*;
use nix::sys::signal::Signal;
use std::fs;

const BODY: &str = "\
topology: postgres
lock: { backend: postgres-lease, ttl: 4s }
workers:
  a: { key: k, gate: before_write }
timeline:
  - { when: a.at_gate, do: { pause: postgres, for: 40s } }
cases:
  fenced: { fence: on, expect: { violations: 0 } }
";

/// Returns the processes whose working folder is that of the server's data, and their states.
fn servers(local: &Local) -> Vec<(u32, char)> {
    let is_server = |pid: &u32| {
        let home = fs::read_link(format!("/proc/{pid}/cwd"));
        home.is_ok_and(|home| home.ends_with("nodes/postgres/root/data"))
    };
    let pids = local.processes().into_iter().filter(is_server);
    let state = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        Some((pid, fields.chars().next()?))
    };
    pids.filter_map(state).collect()
}

/// A process of Postgres for each connection is in a group of its own, and what is stopped does
/// not notice that everybody else is gone.
#[test]
fn a_pause_of_a_postgres_is_that_of_all_its_processes_and_clean_ends_them() {
    let local = local_with_databases();
    let tried = Tried::with("paused-postgres", BODY, local);
    let run = start(tried.command());
    let faults = tried.case("fenced").join("faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    let paused = servers(&tried.local);
    let states: Vec<char> = paused.iter().map(|(_, state)| *state).collect();
    assert!(states.len() > 3, "one that accepts, and others: {states:?}");
    assert_eq!(states, vec!['T'; states.len()]);

    run.signal(Signal::SIGKILL);
    run.wait();
    until("the end of all that are our children", || {
        let left = servers(&tried.local);
        (left.len() < paused.len() && left.len() == tried.local.processes().len()).then_some(())
    });
    let clean = tried.local.start(&["clean"]).wait().expect_code(0);
    clean.expect_said(&["removed process "]);
    assert_eq!(tried.local.left(), [""; 0]);
}

#[test]
fn a_database_that_is_not_there_is_named_with_its_package() {
    let local = local();
    for (scenario, setting, says) in [
        (
            "pause-gt-ttl-postgres",
            "FENCEPOST_POSTGRES",
            ["postgres 15.0 or newer", "apt-get install postgresql,"],
        ),
        (
            "pause-gt-ttl-mariadb",
            "FENCEPOST_MARIADBD",
            ["mariadbd 10.11 or newer", "apt-get install mariadb-server,"],
        ),
    ] {
        let results = fresh_folder(&format!("local-without-{scenario}"));
        let mut run = local.command(["run", scenario, "--runtime", "local", "--results"]);
        run.arg(&results).env(setting, "/nonexistent");
        let ended = start(run).wait().expect_code(69);
        ended
            .expect_said(&["/nonexistent: No such file"])
            .expect_said(&says);
        assert_eq!(local.left(), [""; 0]);
    }
}
