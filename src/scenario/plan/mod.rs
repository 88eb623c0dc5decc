pub mod expectation_words;
pub mod load_words;

use super::{Case, End, Entry, PlannedStep, Repeat, Scenario, Setup, Span, Step, Trigger, Worker};
use crate::faults;
use crate::model::{Fault, FaultParameters, Fence, format_duration};
use serde::Serialize;
use std::fmt::{self, Write};

#[derive(Debug, Serialize)]
pub struct Plan {
    pub scenario: String,
    pub about: String,
    /// The cases, in groups of those that do the same.
    pub groups: Vec<Group>,
}

#[derive(Debug, Serialize)]
pub struct Group {
    #[serde(flatten)]
    course: Course,
    cases: Vec<Expected>,
}

/// The steps of cases, whatever comes of them.
#[derive(Debug, PartialEq, Serialize)]
struct Course {
    steps: Vec<String>,
    /// The seed draws something.
    drawn: bool,
    /// The needs without which a case is inconclusive.
    needs: Vec<&'static str>,
    given_up_after: String,
}

#[derive(Debug, Serialize)]
struct Expected {
    name: String,
    /// Absent if nobody writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<Fence>,
    expects: String,
}

/// Returns the plan of a scenario. `services` returns the services that a case starts.
pub fn plan(scenario: &Scenario, services: impl Fn(&Setup) -> Vec<String>) -> Plan {
    let mut groups: Vec<Group> = Vec::new();
    for case in &scenario.cases {
        let course = course(&case.setup, &services(&case.setup));
        let expected = expected(case);
        match groups.iter_mut().find(|group| group.course == course) {
            Some(group) => group.cases.push(expected),
            None => groups.push(Group {
                course,
                cases: vec![expected],
            }),
        }
    }
    Plan {
        scenario: scenario.name.to_string(),
        about: scenario.about.clone(),
        groups,
    }
}

fn expected(case: &Case) -> Expected {
    Expected {
        name: case.name.to_string(),
        fence: case.setup.writes().then_some(case.fence),
        expects: expectation_words::of(&case.expect),
    }
}

fn course(setup: &Setup, services: &[String]) -> Course {
    let attached = setup.attach.iter().flat_map(|attach| &attach.servers);
    let attached = attached.map(|(name, server)| {
        format!(
            "use {name}, which is there already at {}, with keys under a prefix of the case's own",
            server.place
        )
    });
    let mut steps: Vec<String> = attached.collect();
    steps.push(format!(
        "start {} on a private network",
        services.join(", ")
    ));
    match &setup.load {
        Some(load) => steps.extend(load_words::steps(setup, load)),
        None => {
            let from = match (&setup.worker.image, setup.worker.command.as_slice()) {
                (Some(image), _) => format!(" from {image}"),
                (None, []) => String::new(),
                (None, command) => format!(" as `{}`", command.join(" ")),
            };
            steps.push(format!(
                "start the workers{from}; each reports `ready` and waits at its start gate"
            ));
            steps.extend(setup.workers.iter().map(worker_step));
            steps.extend(setup.timeline.iter().map(entry_step));
            steps.push("wait until every worker is done".to_owned());
        }
    }
    let removed = match setup.attach {
        None => "everything",
        Some(_) => "everything that was started, and the keys at the attached servers",
    };
    steps.push(format!(
        "heal, collect the resource's log, judge, report, remove {removed}"
    ));
    Course {
        steps,
        drawn: setup.timeline.iter().any(is_drawn),
        needs: setup.needs(),
        given_up_after: format_duration(setup.deadline),
    }
}

/// Formats the plan for a person.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}", self.scenario, self.about)?;
        for Group { course, cases } in &self.groups {
            if self.groups.len() > 1 {
                let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
                write!(f, "\n{}:", names.join(", "))?;
            }
            write!(f, "\n{course}")?;
            for Expected {
                name,
                fence,
                expects,
            } in cases
            {
                let fence = fence.map(|fence| format!("fence {fence}; "));
                let fence = fence.unwrap_or_default();
                writeln!(f, "  {name}: {fence}expects {expects}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>3}. {step}", number + 1)?;
        }
        if self.drawn {
            let words = "The seed draws what has bounds or choices: one seed, one timeline.";
            writeln!(f, "\n{words}")?;
        }
        for need in &self.needs {
            writeln!(f, "\nNeeds {need}; without it a case is inconclusive.")?;
        }
        let limit = &self.given_up_after;
        writeln!(
            f,
            "\nCases, each on a fresh cluster, each given up after {limit}:"
        )
    }
}

fn worker_step(worker: &Worker) -> String {
    let start = match &worker.start {
        Some(trigger) => format!("when {trigger}"),
        None => "at once".to_owned(),
    };
    let lock = worker.lock_key.as_ref().map_or(String::new(), |keys| {
        format!(" (its lock is `{}`)", keys.render(&worker.key))
    });
    let mut text = format!(
        "{start}: {} acquires `{}`{lock}, writes, releases",
        worker.name, worker.key
    );
    match worker.rounds {
        Some(1) => {}
        Some(rounds) => {
            let _ = write!(text, ", {rounds} times");
        }
        None => text.push_str(", again and again"),
    }
    if !worker.gates.is_empty() {
        let gates: Vec<&str> = worker.gates.iter().map(|gate| gate.name()).collect();
        let _ = write!(text, "; stops at its gate {}", gates.join(", "));
    }
    text
}

/// Returns one line for an entry with one step; else its own line and one for each step below.
fn entry_step(entry: &Entry) -> String {
    let mut text = match entry.when == Trigger::at_the_start() {
        true => "from the start".to_owned(),
        false => format!("when {}", entry.when),
    };
    if entry.after != Span::default() {
        let _ = write!(text, ", {} later", entry.after);
    }
    match entry.repeat {
        Repeat::Times(1) => {}
        Repeat::Times(times) => {
            let _ = write!(text, ", {times} times over");
        }
        Repeat::Throughout => text.push_str(", again and again"),
    }
    if let Some(name) = &entry.name {
        let _ = write!(text, " (`{name}`)");
    }
    match entry.steps.as_slice() {
        [step] if !matches!(step, Step::Together { .. }) => {
            let _ = write!(text, ": {}", step_words(step));
        }
        steps => {
            text.push(':');
            below(&mut text, steps, 1);
        }
    }
    text
}

fn below(text: &mut String, steps: &[PlannedStep], depth: usize) {
    for step in steps {
        let indent = "  ".repeat(depth);
        let _ = write!(text, "\n   {indent}- {}", step_words(step));
        if let Step::Together { steps } = step {
            below(text, steps, depth + 1);
        }
    }
}

fn step_words(step: &PlannedStep) -> String {
    match step {
        Step::Inject { fault, lasting } => inject_words(fault, *lasting),
        Step::End(End { by, node }) => (faults::form(*by).done)(&FaultParameters::default(), node),
        Step::Heal { entry } => format!("undo everything of `{}` that still stands", entry.value),
        Step::Wait { length } => format!("wait {length}"),
        Step::Await { event } => format!("wait for {}", event.value),
        Step::Together { .. } => "at the same time:".to_owned(),
    }
}

/// Returns the words for a fault. The choices, of which the seed draws one, differ only in their
/// node.
fn inject_words(choices: &[Fault], lasting: Option<Span>) -> String {
    let Some(fault) = choices.first() else {
        return String::new();
    };
    let targets: Vec<String> = choices.iter().map(Fault::target).collect();
    let target = match targets.as_slice() {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    };
    let mut text = faults::plan_words(fault, &target);
    if let Some(bound) = fault.longer_than() {
        let _ = write!(
            text,
            "; it counts only if it lasts longer than {}",
            format_duration(bound)
        );
    }
    match lasting {
        Some(span) => {
            let _ = write!(text, "; {} after {span}", fault.kind().facts().undone);
        }
        None if fault.kind().lasts() => text.push_str("; it stands until something undoes it"),
        None => {}
    }
    text
}

fn is_drawn(entry: &Entry) -> bool {
    let has_bounds = |span: Span| span.from != span.to;
    let steps = entry.steps.iter().flat_map(Step::with_inner);
    let is_drawn = |step: &PlannedStep| {
        step.fault().is_some_and(|choices| choices.len() > 1)
            || step.length().copied().is_some_and(has_bounds)
    };
    has_bounds(entry.after) || steps.into_iter().any(is_drawn)
}
