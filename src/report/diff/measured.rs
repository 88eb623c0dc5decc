//! Measurements of two runs side by side. A machine's noise is no change: what is
//! marked is apart by more than a ratio, by more than its unit's floor, and rests on
//! enough samples.

use crate::report::units::Unit;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Two runs on one machine are seldom further apart than this.
pub const DEFAULT_RATIO: f64 = 1.5;

/// Below so many values beyond it, a percentile is luck.
const BEYOND_PERCENTILE: f64 = 10.0;

/// What starting and removing containers takes: a busy machine needs several times as
/// long, and the locks are no worse for it.
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

/// One measurement in both runs; `None` where one does not have it.
#[derive(Debug, PartialEq, Serialize)]
pub struct Measured {
    pub case: String,
    pub what: String,
    pub old: Option<f64>,
    pub new: Option<f64>,
    /// New to old; `None` where that is no number.
    pub ratio: Option<f64>,
    /// More than noise explains.
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

/// All measurements of a case, in the order of their names.
pub fn compare(
    case: &str,
    old: Option<Value>,
    new: Option<Value>,
    most_apart: f64,
) -> Vec<Measured> {
    let (Some(old), Some(new)) = (old, new) else {
        // The case itself came or went, and that is said elsewhere.
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

/// Either way; from nothing to something is as far as it gets.
fn apart(old: f64, new: f64, most_apart: f64) -> bool {
    let (small, large) = (old.abs().min(new.abs()), old.abs().max(new.abs()));
    old.signum() != new.signum() || large > small * most_apart
}

/// What nobody would act on, however large the ratio.
fn floor(name: &str) -> f64 {
    match Unit::of(name) {
        Unit::Time(micros) if PHASES.contains(&name) => 10_000_000.0 / micros,
        Unit::Time(micros) if micros >= 1e3 => 250_000.0 / micros,
        Unit::Time(micros) => 1_000.0 / micros,
        Unit::PerSecond => 5.0,
        // Of one key, and there are millions.
        Unit::Bytes(bytes) if name.ends_with("_per_key") => 10.0 / bytes,
        Unit::Bytes(bytes) => 1_048_576.0 / bytes,
        Unit::Share => 0.1,
        Unit::Count => 10.0,
    }
}

/// Whether enough was measured for a difference to mean something. An extreme is
/// one value and never does.
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
    // Rounded up a little: 10,000 times 0.001 is a bit less than 10.
    count.is_none_or(|count| count * beyond + 1e-6 >= BEYOND_PERCENTILE)
}

/// Every number by its path. Series over time are left out: no moment of one run
/// belongs to a moment of another.
pub fn numbers(value: &Value) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    walk(value, "", &mut |path, leaf| {
        if let Some(number) = leaf.as_f64() {
            all.insert(path.to_owned(), number);
        }
    });
    all
}

/// The words that say what was measured: two models are two experiments.
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
            // A distribution of nothing is all zeros, and says nothing about time.
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

/// By the number of contenders, and not by place: a plan may have got a step more.
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
