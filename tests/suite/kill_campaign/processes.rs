use super::*;

/// The longest of them takes about as long.
const WITHIN: Duration = Duration::from_millis(2500);

const KINDS: [&str; 5] = ["run", "side by side", "keep", "load", "nightly"];

fn arguments(kind: &str) -> Vec<&'static str> {
    let mut arguments = match kind {
        "run" => vec!["run", SCENARIO, "--case", "fenced"],
        "side by side" => vec!["run", SCENARIO, "--jobs", "2"],
        "keep" => vec!["run", SCENARIO, "--case", "unfenced", "--keep"],
        "load" => vec!["run", "ttl-below-work", "--case", "fenced"],
        _ => vec!["nightly"],
    };
    arguments.extend(["--runtime", "local"]);
    arguments
}

#[test]
fn nothing_is_left_of_local_runs() {
    let local = local();
    let ground = Ground::new("local");
    let (seed, kills) = (seed(), kills() * (ON_DOCKER - 1) / ON_DOCKER);
    for first in (0..kills).step_by(KILLS_OF_A_NEIGHBOUR as usize) {
        let neighbour = local.start(&ground.neighbour("local"));
        ground.await_neighbour();
        let neighbours = local.left();
        assert!(neighbours.len() > 3, "{neighbours:?}");
        for number in first..kills.min(first + KILLS_OF_A_NEIGHBOUR) {
            let kill = Kill::draw(seed, number, &KINDS, WITHIN);
            let command = local.command(ground.arguments(&arguments(kill.kind)));
            let victim = kill.strike(command);
            if victim.is_tidy && kill.kind != "keep" {
                assert_eq!(local.left(), neighbours, "before clean: {kill:?}");
            }
            let clean = local.start(&["clean"]).wait();
            assert_eq!(clean.code, Some(0), "{kill:?}\n{clean}");
            // What the kernel ends is gone a moment later.
            until(&format!("the end of all of {kill:?}"), || {
                (local.left().len() <= neighbours.len()).then_some(())
            });
            assert_eq!(local.left(), neighbours, "{kill:?}\n{clean}");
        }
        ground.end_neighbour(neighbour);
        assert_eq!(local.left(), [""; 0], "of the neighbour");
    }
}
