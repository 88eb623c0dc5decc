use super::world::{Rules, Step, Violation, World};
use std::collections::{HashSet, VecDeque};

/// The result of an exploration.
pub(super) enum Explored<const NODES: usize, const TRIES: usize> {
    /// All reachable worlds were visited.
    Safe {
        worlds: usize,
    },
    Violated(Story<NODES, TRIES>),
}

/// The shortest path to a violation.
pub(super) struct Story<const NODES: usize, const TRIES: usize> {
    pub(super) violation: Violation,
    pub(super) steps: Vec<Step>,
    pub(super) end: World<NODES, TRIES>,
}

impl<const NODES: usize, const TRIES: usize> Story<NODES, TRIES> {
    pub(super) fn tell(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(Step::to_string).collect();
        let tokens = self.end.tokens();
        format!("{:?}: {tokens:?}\n{}", self.violation, steps.join("\n"))
    }
}

/// Visits every world that can be reached. A violation that is not looked for ends its
/// own path and not the exploration.
pub(super) fn explore<const NODES: usize, const TRIES: usize>(
    rules: &Rules<TRIES>,
    looked_for: impl Fn(Violation) -> bool,
) -> Explored<NODES, TRIES> {
    let first = World::<NODES, TRIES>::new();
    let mut seen = HashSet::from([first.clone()]);
    // The step that led to each world, and the number of the world before.
    let mut history: Vec<Option<(usize, Step)>> = vec![None];
    let mut next = VecDeque::from([(first, 0)]);
    let mut steps = Vec::new();
    // A path needs the nodes' names; the proof that there is none does not.
    let named = rules.mutant.is_some() || rules.one_after_another;
    while let Some((world, number)) = next.pop_front() {
        world.steps(rules, &mut steps);
        for &step in &steps {
            let mut after = world.clone();
            if let Err(violation) = after.take(step, rules) {
                if !looked_for(violation) {
                    continue;
                }
                let mut steps = vec![step];
                let mut at = number;
                while let Some((before, step)) = history[at] {
                    steps.push(step);
                    at = before;
                }
                steps.reverse();
                return Explored::Violated(Story {
                    violation,
                    steps,
                    end: after,
                });
            }
            if !named {
                after = after.simplified();
            }
            if seen.insert(after.clone()) {
                history.push(Some((number, step)));
                next.push_back((after, history.len() - 1));
            }
        }
    }
    Explored::Safe { worlds: seen.len() }
}

/// Walks at random until no step is left.
pub(super) fn walk<const NODES: usize, const TRIES: usize>(
    rules: &Rules<TRIES>,
    seed: u64,
) -> Result<World<NODES, TRIES>, Story<NODES, TRIES>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut world = World::new();
    let mut walked = Vec::new();
    let mut steps = Vec::new();
    loop {
        world.steps(rules, &mut steps);
        let Some(mut step) = random.choice(&steps).copied() else {
            return Ok(world);
        };
        // Otherwise half of all answers would be lost, and few locks would be held.
        if matches!(step, Step::Arrive { heard: false, .. }) {
            step = steps[random.usize(..steps.len())];
        }
        walked.push(step);
        if let Err(violation) = world.take(step, rules) {
            return Err(Story {
                violation,
                steps: walked,
                end: world,
            });
        }
    }
}
