use super::*;
use crate::report::made_up::{arrivals, case, contended, growth, keyspace, run, says};

fn everything() -> (RunRecord, BTreeMap<Name, Vec<ArrivalRow>>) {
    let steps = [50, 200, 1000];
    let run = run(vec![
        contended("spin", &steps, 9.0),
        contended("notify", &steps, 3.0),
        contended("queue-fair", &steps, 1.0),
        contended("etcd", &steps, 2.0),
        case("keys", Some(keyspace())),
        case("leases", Some(growth())),
        case("no-load", None),
    ]);
    let orders = [
        ("spin", 900),
        ("notify", 200),
        ("queue-fair", 0),
        ("etcd", 3),
    ];
    let rows = orders.map(|(case, disorder)| (case.into(), arrivals(1_000, 11_000, disorder)));
    (run, rows.into())
}

fn drawn() -> BTreeMap<String, String> {
    let (run, arrivals) = everything();
    plots(&run, &arrivals).into_iter().collect()
}

/// Checks that every tag is closed by its own end tag, and that only known entities occur.
fn well_formed(text: &str) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        for (at, _) in rest[..start].match_indices('&') {
            let entity = rest[at..].split(';').next().unwrap_or_default();
            if !["&amp", "&lt", "&gt", "&quot"].contains(&entity) {
                return Err(format!("{entity} is no entity"));
            }
        }
        let end = start + rest[start..].find('>').ok_or("a tag does not end")?;
        let tag = &rest[start + 1..end];
        if tag.matches('"').count() % 2 == 1 {
            return Err(format!("<{tag}> has a torn attribute"));
        }
        let name = tag.trim_start_matches('/').split([' ', '/']).next();
        let name = name.unwrap_or_default();
        if tag.starts_with('/') {
            let opened = open.pop();
            if opened != Some(name) {
                return Err(format!("</{name}> ends {opened:?}"));
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        rest = &rest[end + 1..];
    }
    match open.is_empty() {
        true => Ok(()),
        false => Err(format!("{open:?} stay open")),
    }
}

#[test]
fn a_run_without_load_has_no_plots() {
    assert!(plots(&run(vec![case("fenced", None)]), &BTreeMap::new()).is_empty());
}

#[test]
fn every_picture_is_well_formed_and_needs_nothing_else() {
    let all = drawn();
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    let expected = [
        "arrival-vs-acquisition.svg",
        "latency-vs-contenders.svg",
        "memory-over-time.svg",
        "queue-over-time.svg",
        "throughput-vs-contenders.svg",
    ];
    assert_eq!(names, expected);
    for (name, text) in &all {
        assert_eq!(well_formed(text), Ok(()), "{name}");
        let outside = ["href", "url(", "@import", "<script", "NaN", "inf"];
        let found: Vec<&&str> = outside
            .iter()
            .filter(|part| text.contains(**part))
            .collect();
        assert!(found.is_empty(), "{name} has {found:?}");
        assert!(text.contains("prefers-color-scheme:dark"), "{name}");
    }
    // This lets a developer look at them.
    if let Some(folder) = std::env::var_os("FENCEPOST_PLOTS") {
        for (name, text) in all {
            std::fs::write(std::path::Path::new(&folder).join(name), text).expect("a folder");
        }
    }
}

#[test]
fn torn_pictures_would_be_noticed() {
    for torn in [
        "<svg><g></svg>",
        "<svg>",
        "<svg a=\"></svg>",
        "<a>&x;</a>",
        "<a",
    ] {
        assert!(well_formed(torn).is_err(), "{torn}");
    }
}

#[test]
fn closed_steps_are_called_closed_wherever_they_are_drawn() {
    let (mut run, arrivals) = everything();
    let load = run.cases[0].notes.load.as_mut().expect("contenders");
    for step in &mut load.steps {
        step.model = "closed".to_owned();
    }
    for (name, text) in plots(&run, &arrivals) {
        let is_said = text.contains("spin (closed)");
        assert_eq!(is_said, name != "memory-over-time.svg", "{name}");
        assert!(!text.contains("etcd (closed)"), "{name}");
    }
}

#[test]
fn the_same_run_is_drawn_the_same() {
    assert!(drawn() == drawn());
}

#[test]
fn names_axes_and_ticks_are_readable() {
    let all = drawn();
    let latency = &all["latency-vs-contenders.svg"];
    says(
        latency,
        &[
            "queue-fair",
            ">contenders<",
            ">acquire latency (ms)<",
            ">p999<",
        ],
    );
    says(latency, &[">50<", ">200<", ">1k<"]);
    assert!(all["throughput-vs-contenders.svg"].contains("stroke-dasharray"));
    for words in [
        ">expiring<",
        ">memory (MiB)<",
        ">keys alive<",
        ">database in use<",
    ] {
        assert!(all["memory-over-time.svg"].contains(words), "{words}");
    }
}

#[test]
fn dots_are_thinned_and_only_grants_of_the_largest_step_are_dots() {
    let run = run(vec![contended("queue", &[200, 50], 1.0)]);
    let circles = |count: u64, step: u32| {
        let mut rows = arrivals(step, count, 0);
        rows[0].end = ArrivalEnd::TimedOut;
        rows[0].granted_ns = None;
        let all = plots(&run, &BTreeMap::from([("queue".into(), rows)]));
        let order = all.iter().find(|(name, _)| name.starts_with("arrival"));
        order.map(|(_, text)| text.matches("h0").count())
    };
    assert_eq!(circles(100, 200), Some(99));
    assert_eq!(circles(100, 50), None, "that step has fewer contenders");
    let thinned = circles(1_000_000, 200).expect("a picture");
    assert!((1_000..=2_000).contains(&thinned), "{thinned}");
}
