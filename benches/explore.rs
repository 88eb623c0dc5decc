//! How many plays a second one core makes in a simulation, judged and in memory, as a search makes
//! them: `cargo bench --bench explore`, with the names of scenarios after `--`.

use fencepost::builtin::Location;
use fencepost::cluster::topology::{Topology, load_service};
use fencepost::progress::Quiet;
use fencepost::run::{Groundwork, Lab, RunOptions, simulate_once};
use fencepost::scenario::{Library, Settings, Surroundings};
use fencepost::simulation::SimulatedRuntime;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const SCENARIOS: [&str; 3] = ["pause-gt-ttl", "healthy", "work-gt-ttl"];
const MEASURED_FOR: Duration = Duration::from_secs(5);

fn main() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let place = |name: &str| Location::from(project.join(name));
    let topologies = Topology::load_all([place("compose")]).expect("topologies");
    let toxiproxy = load_service(place("toxiproxy/server.yml"), "toxiproxy").expect("a service");
    let lab = Lab {
        options: &RunOptions {
            seed: 1,
            ..RunOptions::default()
        },
        runtime: &SimulatedRuntime,
        topologies: &topologies,
        resources: &BTreeMap::new(),
        toxiproxy: &toxiproxy,
        home: &[place("")],
        journals: project,
        groundwork: &Groundwork::default(),
        results: project,
        progress: &Quiet,
        interrupt: &CancellationToken::new(),
    };
    let asked: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let names = match asked.is_empty() {
        true => SCENARIOS.map(str::to_owned).to_vec(),
        false => asked,
    };
    let library = Library::new([place("scenarios")]);
    for name in names {
        let (settings, around) = (Settings::default(), Surroundings::Recorded);
        let scenario = library.load(&name, &settings, &around).expect("a scenario");
        for case in &scenario.cases {
            if lab.lacking(case).is_some() {
                continue;
            }
            let (began, mut plays) = (Instant::now(), 0_u32);
            while began.elapsed() < MEASURED_FOR {
                simulate_once(&lab, case).expect("a play");
                plays += 1;
            }
            let rate = f64::from(plays) / began.elapsed().as_secs_f64();
            println!("{name} {}: {rate:.0} plays a second", case.name);
        }
    }
}
