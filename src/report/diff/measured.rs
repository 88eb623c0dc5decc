//! Compares the measurements of two runs. The noise of a machine is not a change: a difference
//! is marked only if it exceeds a ratio and its unit's floor, and is based on enough samples.

use super::*;

/// Two runs on one machine seldom differ by more than this.
pub const DEFAULT_RATIO: f64 = 1.5;

/// With fewer values than this beyond it, a percentile is chance.
const BEYOND_PERCENTILE: f64 = 10.0;

/// Phases that start and remove containers: a busy machine needs several times as long, which
/// says nothing about the locks.
const PHASES: [&str; 9] = [
    "clean_ms",
    "collect_ms",
    "create_ms",
    "heal_ms",
    "judge_ms",
    "links_ms",
    "overhead_ms",
    "prepare_ms",
    "start_ms",
];

/// One measurement in both runs; `None` if a run does not have it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Measured {
    pub case: String,
    pub what: String,
    pub old: Option<f64>,
    pub new: Option<f64>,
    /// New divided by old; `None` if that is not a number.
    pub ratio: Option<f64>,
    /// Whether the difference is larger than noise explains.
    pub beyond: bool,
}

impl Measured {
    pub fn written(&self, value: Option<f64>) -> String {
        value.map_or("-".to_owned(), |value| Unit::of(&self.what).write(value))
    }

    pub fn ratio_words(&self) -> String {
        match (self.old, self.new, self.ratio) {
            (_, _, Some(ratio)) => format!("x{ratio:.2}"),
            (None, Some(_), _) => "new".to_owned(),
            (Some(_), None, _) => "gone".to_owned(),
            _ => "from 0".to_owned(),
        }
    }
}

pub fn compare(
    case: &str,
    old: Option<Value>,
    new: Option<Value>,
    most_apart: f64,
) -> Vec<Measured> {
    let (Some(old), Some(new)) = (old, new) else {
        // The case itself was added or removed, which is reported elsewhere.
        return Vec::new();
    };
    let (before, after) = (numbers(&old), numbers(&new));
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let one = |name: &String| {
        let (old, new) = (before.get(name).copied(), after.get(name).copied());
        let ratio = match (old, new) {
            (Some(old), Some(new)) if old == new => Some(1.0),
            (Some(old), Some(new)) if old != 0.0 => Some(new / old),
            _ => None,
        };
        let beyond = match (old, new) {
            (Some(old), Some(new)) => {
                apart(old, new, most_apart)
                    && (new - old).abs() > floor(name)
                    && [&before, &after].iter().all(|all| is_sure(name, all))
            }
            _ => false,
        };
        Measured {
            case: case.to_owned(),
            what: name.clone(),
            old,
            new,
            ratio,
            beyond,
        }
    };
    names.into_iter().map(one).collect()
}

/// Returns whether the values differ by more than the ratio, in either direction. A change from
/// zero always does.
fn apart(old: f64, new: f64, most_apart: f64) -> bool {
    let (small, large) = (old.abs().min(new.abs()), old.abs().max(new.abs()));
    old.signum() != new.signum() || large > small * most_apart
}

/// Returns the smallest difference that matters, however large the ratio.
fn floor(name: &str) -> f64 {
    match Unit::of(name) {
        Unit::Time(micros) if PHASES.contains(&name) => 10_000_000.0 / micros,
        Unit::Time(micros) if micros >= 1e3 => 250_000.0 / micros,
        Unit::Time(micros) => 1_000.0 / micros,
        Unit::PerSecond => 5.0,
        // This is per key, and there are millions.
        Unit::Bytes(bytes) if name.ends_with("_per_key") => 10.0 / bytes,
        Unit::Bytes(bytes) => 1_048_576.0 / bytes,
        Unit::Share => 0.1,
        Unit::Count => 10.0,
    }
}

/// Returns whether enough was measured for a difference to matter. An extreme is a single value
/// and never does.
fn is_sure(name: &str, all: &BTreeMap<String, f64>) -> bool {
    let (parent, last) = name.rsplit_once('.').unwrap_or(("", name));
    let beyond = match last {
        "max_us" | "max_overtakes" | "worst_wait_us" => return false,
        "p50_us" | "mean_us" => 0.5,
        "p90_us" => 0.1,
        "p99_us" => 0.01,
        "p999_us" => 0.001,
        _ => return true,
    };
    let count = all.get(&format!("{parent}.count")).copied();
    // Rounded up a little: 10,000 times 0.001 is slightly less than 10.
    count.is_none_or(|count| count * beyond + 1e-6 >= BEYOND_PERCENTILE)
}

/// Returns every number by its path. Series over time are left out, because moments of two runs
/// do not correspond.
pub fn numbers(value: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    walk(value, "", &mut |path, leaf| {
        if let Some(number) = leaf.as_f64() {
            all.insert(path.to_owned(), number);
        }
    });
    all
}

/// Returns the texts that say what was measured: two models are two experiments.
pub fn texts(value: &Value) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    walk(value, "", &mut |path, leaf| {
        let last = path.rsplit('.').next().unwrap_or(path);
        if leaf.is_string() && ["model", "partial", "bottleneck"].contains(&last) {
            all.insert(path.to_owned(), leaf.clone());
        }
    });
    all
}

fn walk(value: &Value, path: &str, leaf: &mut dyn FnMut(&str, &Value)) {
    let inside = |name: &str| match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            // An empty distribution is all zeros, which are not times.
            let is_zero = |name| fields.get(name).is_some_and(|value| *value == 0);
            let is_empty = is_zero("count") && is_zero("p50_us");
            for (name, value) in fields {
                match value {
                    _ if is_empty && name != "count" => {}
                    Value::Array(steps) if name == "steps" => {
                        walk_steps(steps, path, leaf);
                    }
                    _ => walk(value, &inside(name), leaf),
                }
            }
        }
        Value::Array(_) => {}
        value => leaf(path, value),
    }
}

/// Names steps by their number of contenders and not by their position, because a plan may have
/// got another step.
fn walk_steps(steps: &[Value], path: &str, leaf: &mut dyn FnMut(&str, &Value)) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for step in steps {
        let Some(contenders) = step["contenders"].as_u64() else {
            continue;
        };
        let mut name = format!("{path}[{contenders}]");
        let times = seen.entry(name.clone()).or_default();
        *times += 1;
        if *times > 1 {
            name = format!("{path}[{contenders} #{times}]");
        }
        walk(step, &name, leaf);
    }
}
