use super::*;
use crate::report::made_up::{PLAIN, case, contended, growth, keyspace, latency, run, step};

const WIDTH: usize = 100;
const LOOK: Look = Look {
    width: WIDTH,
    ..PLAIN
};

fn table(run: &RunRecord) -> String {
    super::table(run, WIDTH)
}

fn line<'a>(text: &'a str, wanted: &str) -> &'a str {
    let found = text.lines().find(|line| line.contains(wanted));
    found.unwrap_or_else(|| panic!("nothing says {wanted:?}:\n{text}"))
}

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH && line.is_ascii(), "{line}");
    }
}

#[test]
fn a_run_without_load_has_no_table() {
    assert_eq!(table(&run(vec![case("fenced", None)])), "");
}

#[test]
fn a_fence_is_told_where_somebody_writes() {
    let text = terminal::screen(
        &run(vec![
            contended("queue", &[50], 1.0),
            case("plain", Some(keyspace())),
        ]),
        &LOOK,
    );
    line(&text, "queue (fence on): as expected");
    line(&text, "plain: as expected");
}

#[test]
fn each_step_has_its_counts_and_its_times() {
    let text = table(&run(vec![contended("queue", &[50, 1000], 1.0)]));
    fits(&text);
    let counts = line(&text, "open 200/s");
    let words: Vec<&str> = counts.split_whitespace().collect();
    let expected = [
        "50", "open", "200/s", "12000", "11000", "1000", "0", "200", "250", "181",
    ];
    assert_eq!(words, expected);
    let times = line(&text, "450ms");
    let words: Vec<&str> = times.split_whitespace().collect();
    let expected = [
        "50", "50ms", "100ms", "200ms", "350ms", "450ms", "2ms", "900us", "1.09", "3.27",
    ];
    assert_eq!(words, expected);
    line(
        &text,
        "what bounds it at 50, 1000: the write to the resource",
    );
}

#[test]
fn fairness_is_compared_over_all_cases_and_steps() {
    let name = "a-name-that-goes-on-for-longer-than-any-column";
    let text = table(&run(vec![
        contended(name, &[200], 2.0),
        contended("etcd", &[200], 1.0),
    ]));
    fits(&text);
    let words: Vec<&str> = line(&text, "  etcd ").split_whitespace().collect();
    let expected = ["etcd", "200", "25%", "3.5", "40", "0.988", "9s", "7"];
    assert_eq!(words, expected);
    line(&text, "a-name-that-goes-on-fo..");
    let single = table(&run(vec![contended("etcd", &[200], 1.0)]));
    let words: Vec<&str> = line(&single, "  etcd ").split_whitespace().collect();
    assert_eq!(words, expected, "one step has its fairness too");
    let nobody = table(&run(vec![case("redis", Some(keyspace()))]));
    assert!(!nobody.contains("Jain"), "{nobody}");
}

#[test]
fn what_makes_numbers_doubtful_is_said() {
    let mut doubtful = step(50, 1.0);
    doubtful.still_waiting = 12;
    doubtful.errors.insert("connection refused".to_owned(), 3);
    doubtful.generator.bottleneck = Some("arrivals were late".to_owned());
    doubtful.generator.cpu_share = 0.97;
    let load = LoadRecord {
        steps: vec![doubtful],
        partial: Some("OOM command not allowed when used memory > 'maxmemory'".to_owned()),
        ..LoadRecord::default()
    };
    let text = table(&run(vec![case("spin", Some(load))]));
    fits(&text);
    let said = "! 50 contenders: the generator was the bottleneck (97% of a core, lag p99 -)";
    line(&text, said);
    line(&text, "! 50 contenders: 3 x connection refused");
    line(
        &text,
        "! 50 contenders: 1000 timed out and count in no percentile",
    );
    line(&text, "! 50 contenders: 12 were still waiting");
    let said = text.contains("making the load took");
    assert!(!said, "its share is told with the bottleneck:\n{text}");
    line(&text, "! partial: OOM command not allowed");
}

#[test]
fn what_making_the_load_took_is_told_for_each_step() {
    let making = |cpu_share: f64| ContendStep {
        generator: Generator {
            cpu_share,
            lag: latency(12_000, 30.0),
            ..Generator::default()
        },
        ..step(50, 1.0)
    };
    let told = |step: ContendStep| {
        let load = LoadRecord {
            steps: vec![step],
            ..LoadRecord::default()
        };
        let text = table(&run(vec![case("spin", Some(load))]));
        fits(&text);
        text
    };
    let text = told(making(0.42));
    let words: Vec<&str> = line(&text, "42% ").split_whitespace().collect();
    assert_eq!(words, ["50", "24000", "400", "42%", "120us"]);
    line(
        &text,
        "! 50 contenders: making the load took 42% of one core",
    );
    let text = told(making(0.12));
    line(&text, "12% ");
    assert!(!text.contains("making the load took"), "{text}");
}

#[test]
fn nothing_acquired_is_not_acquired_at_once() {
    let nothing = ContendStep {
        contenders: 50,
        model: "closed".to_owned(),
        arrivals: 50,
        timeouts: 50,
        ..ContendStep::default()
    };
    let load = LoadRecord {
        steps: vec![nothing],
        ..LoadRecord::default()
    };
    let text = table(&run(vec![case("spin", Some(load))]));
    fits(&text);
    let times = text.lines().nth(4).expect("two tables of one row");
    let words: Vec<&str> = times.split_whitespace().collect();
    assert_eq!(words, ["50", "-", "-", "-", "-", "-", "-", "-", "-", "-"]);
}

#[test]
fn a_great_many_keys_are_told_in_figures_and_moments() {
    let text = table(&run(vec![
        case("redis", Some(keyspace())),
        case("etcd", Some(growth())),
    ]));
    fits(&text);
    line(&text, "10000000 keys with a TTL of 120s, made in 60s");
    let peak = line(&text, "peak_used_memory_bytes");
    assert!(peak.ends_with("1.02GiB"), "{peak}");
    let dead = line(&text, "dead_still_there_for_ms");
    assert!(dead.ends_with("65s"), "{dead}");
    line(&text, "expiring");
    line(&text, "defragmented");
    line(&text, "extrapolated: 700 bytes a lease");
}

#[test]
fn a_narrow_terminal_has_narrow_tables() {
    let contended = contended("queue", &[50, 1000], 1.0);
    let run = run(vec![
        contended,
        case("redis", Some(keyspace())),
        case("etcd", Some(growth())),
    ]);
    for width in [60, 100, 200] {
        let look = Look { width, ..LOOK };
        let text = terminal::screen(&run, &look);
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(
            widest.is_some_and(|widest| widest <= width),
            "{width}:\n{text}"
        );
    }
}
