use crate::load::{Arrivals, ContendPlan, KeyspacePlan, LoadPlan};
use crate::model::{WaitPolicy, format_duration};
use crate::scenario::Setup;

pub fn steps(setup: &Setup, load: &LoadPlan) -> Vec<String> {
    match load {
        LoadPlan::Contend(plan) => {
            let each = plan.contenders.iter();
            let each = each.map(|contenders| contend_step(plan, *contenders));
            floor_step(plan).into_iter().chain(each).collect()
        }
        LoadPlan::Keyspace(plan) => keyspace_steps(setup, plan),
    }
}

/// Describes a load in a few words: `50, 200, 1000 contenders`.
pub fn short(load: &LoadPlan) -> String {
    match load {
        LoadPlan::Contend(plan) => {
            let steps: Vec<String> = plan.contenders.iter().map(u32::to_string).collect();
            format!("{} contenders", steps.join(", "))
        }
        LoadPlan::Keyspace(plan) => format!("{} keys", plan.keys),
    }
}

/// Describes the lock under load: `redis (queue) 5s`.
pub fn lock(setup: &Setup, load: &LoadPlan) -> String {
    let backend = setup.lock.backend;
    match load {
        LoadPlan::Contend(plan) => {
            let wait = match plan.lock.wait == WaitPolicy::default() {
                true => String::new(),
                false => format!(" ({})", plan.lock.wait),
            };
            format!("{backend}{wait} {}", format_duration(plan.ttl))
        }
        LoadPlan::Keyspace(plan) => format!("{backend} {}", format_duration(plan.ttl)),
    }
}

fn floor_step(plan: &ContendPlan) -> Option<String> {
    let lasting = format_duration(plan.floor?);
    let writes = plan.lock.backend.service().floor.words;
    Some(format!(
        "for {lasting}, one client alone acquires and releases, in turns with the floor: {writes}"
    ))
}

fn contend_step(plan: &ContendPlan, contenders: u32) -> String {
    let asking = match plan.arrivals {
        Arrivals::Closed => "each asks again as soon as it is done".to_owned(),
        Arrivals::Open {
            per_second,
            backlog,
        } => {
            let rate = per_second.unwrap_or(f64::from(contenders));
            format!("{rate} arrivals a second, of which {backlog} may wait for a contender")
        }
    };
    let keys = match plan.keys {
        1 => "one key".to_owned(),
        keys => format!("{keys} keys"),
    };
    format!(
        "for {}, {contenders} contenders in {} clients want {keys}: {asking}; whoever is granted works {}, writes and releases",
        format_duration(plan.duration),
        plan.clients,
        plan.work,
    )
}

fn keyspace_steps(setup: &Setup, plan: &KeyspacePlan) -> Vec<String> {
    let ttl = format_duration(plan.ttl);
    let counters = plan.counters.map_or_else(String::new, |counters| {
        let lives = format_duration(counters);
        format!(", and beside each a fence counter that lives {lives}")
    });
    let effort = plan.effort.map_or_else(String::new, |effort| {
        format!(" with an active-expire-effort of {effort}")
    });
    let mut steps = vec![format!(
        "make {} locks at {}{effort}, each of which lives {ttl}{counters}",
        plan.keys, setup.lock.backend
    )];
    if plan.scan {
        steps.push("once every lock is dead, touch every key with a SCAN".to_owned());
    }
    steps.push(match plan.watch {
        Some(watch) => format!(
            "watch memory and keys for {} after the last was made",
            format_duration(watch)
        ),
        None => "watch memory and keys until nothing dead is left".to_owned(),
    });
    steps
}
