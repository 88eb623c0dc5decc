//! Draws variations of a case: small changes of its workers, its lock and its timeline, one after
//! the other. Most changes name something that has to be there, and whether all of a case fits
//! together is left to the checks of scenarios.

use super::*;

const MOST_WORKERS: usize = 5;
const MOST_ENTRIES: usize = 5;
/// Parts of the TTL, in per cent.
const LENGTHS: [u64; 8] = [5, 25, 50, 90, 110, 150, 250, 400];

/// The events of a worker, some of them more often than others, and the field without which one
/// does not come.
const EVENTS: [(&str, &str); 15] = [
    ("acquiring", ""),
    ("acquired", ""),
    ("acquired", ""),
    ("acquired", ""),
    ("at_gate", "gate"),
    ("at_gate", "gate"),
    ("writing", ""),
    ("write_accepted", ""),
    ("write_accepted", ""),
    ("releasing", ""),
    ("releasing", ""),
    ("released", ""),
    ("done", ""),
    ("renewed", "renew"),
    ("lost", ""),
];

/// A change, and how often it is chosen beside the others.
type Change = (u32, fn(&mut Draw, &mut Node) -> Option<()>);

const CHANGES: [Change; 15] = [
    (10, |draw, case| draw.add_entry(case)),
    (2, |draw, case| draw.drop_entry(case)),
    (3, |draw, case| draw.change_entry(case)),
    (5, |draw, case| draw.gate(case)),
    (4, |draw, case| draw.start(case)),
    (2, |draw, case| draw.add_worker(case)),
    (4, |draw, case| draw.of_a_worker(case, "work", Draw::length)),
    (2, |draw, case| {
        draw.of_a_worker(case, "renew", Draw::yes_or_no)
    }),
    (2, |draw, case| {
        draw.of_a_worker(case, "on_lost", |_| Some("ignore".to_owned()))
    }),
    (3, |draw, case| {
        draw.of_a_worker(case, "rounds", |draw| Some(draw.rng.u32(1..=4).to_string()))
    }),
    (1, |draw, case| {
        draw.of_a_worker(case, "nested", |_| Some("2".to_owned()))
    }),
    (1, |draw, case| {
        draw.of_a_worker(case, "pause", Draw::length)
    }),
    (2, |draw, case| draw.of_the_lock(case)),
    (1, |draw, case| draw.own_ttl(case)),
    (2, |draw, case| draw.routes(case)),
];

pub struct Draw<'a> {
    pub facts: &'a Facts,
    pub rng: &'a mut Rng,
}

impl Draw<'_> {
    /// Makes one change; it may come to nothing.
    pub fn change(&mut self, case: &mut Node) {
        let sum = CHANGES.iter().map(|(weight, _)| weight).sum();
        let mut at = self.rng.u32(0..sum);
        for (weight, change) in CHANGES {
            if at < weight {
                change(self, case);
                return;
            }
            at -= weight;
        }
    }

    fn one<'t>(&mut self, of: &'t [String]) -> Option<&'t str> {
        let index = self.rng.usize(0..of.len().max(1));
        of.get(index).map(String::as_str)
    }

    fn word<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.rng.usize(0..of.len())]
    }

    fn worker(&mut self, case: &Node) -> Option<String> {
        self.one(&workers(case)).map(str::to_owned)
    }

    fn server(&mut self) -> Option<String> {
        self.one(&self.facts.servers).map(str::to_owned)
    }

    fn length(&mut self) -> Option<String> {
        let part = LENGTHS[self.rng.usize(0..LENGTHS.len())];
        let ms = self.facts.ttl.as_millis() as u64 * part / 100;
        Some(format_duration(Duration::from_millis(ms.max(1))))
    }

    fn yes_or_no(&mut self) -> Option<String> {
        Some(self.rng.bool().to_string())
    }

    fn of_a_worker(
        &mut self,
        case: &mut Node,
        field: &str,
        draw: impl FnOnce(&mut Self) -> Option<String>,
    ) -> Option<()> {
        let name = self.worker(case)?;
        let value = draw(self)?;
        case.get_mut("workers")?
            .get_mut(&name)?
            .set(field, Node::scalar(value));
        Some(())
    }

    fn gate(&mut self, case: &mut Node) -> Option<()> {
        let gates = Gate::IN_A_ROUND.iter().map(|gate| gate.name());
        let gates: Vec<&str> = gates
            .filter(|name| self.facts.is_unsafe || *name != Gate::BetweenGetAndDel.name())
            .collect();
        let gate = self.word(&gates).to_owned();
        self.of_a_worker(case, "gate", |_| Some(gate))
    }

    fn start(&mut self, case: &mut Node) -> Option<()> {
        let event = self.event(case)?;
        self.of_a_worker(case, "start", |_| Some(event))
    }

    fn add_worker(&mut self, case: &mut Node) -> Option<()> {
        let names = workers(case);
        let name = ('a'..='z').map(String::from).find(|it| !names.contains(it));
        let like = self.worker(case)?;
        let workers = case.get_mut("workers")?;
        if names.len() < MOST_WORKERS {
            let copy = workers.get(&like)?.clone();
            workers.set(&name?, copy);
        }
        Some(())
    }

    fn of_the_lock(&mut self, case: &mut Node) -> Option<()> {
        let lock = case.get_mut("lock")?;
        let (field, value) = match self.rng.u32(0..4) {
            0 => ("ttl", self.word(&["500ms", "1s", "2s", "3s", "5s"])),
            1 if self.facts.has_choices => ("fence_floor", "server-clock"),
            _ if self.facts.has_choices => ("wait", self.word(&["spin", "notify", "queue"])),
            _ => return None,
        };
        lock.set(field, Node::scalar(value));
        Some(())
    }

    fn own_ttl(&mut self, case: &mut Node) -> Option<()> {
        let (name, ttl) = (self.worker(case)?, self.length()?);
        let own = Node::mapping([("ttl", Node::scalar(ttl))]);
        case.get_mut("workers")?.get_mut(&name)?.set("lock", own);
        Some(())
    }

    fn drop_entry(&mut self, case: &mut Node) -> Option<()> {
        let entries = case.get("timeline")?.items().len();
        let index = self.rng.usize(0..entries.max(1));
        *case = case.without(&[Turn::Key("timeline".into()), Turn::Item(index)])?;
        Some(())
    }

    fn change_entry(&mut self, case: &mut Node) -> Option<()> {
        let entries = case.get("timeline")?.items().len();
        let index = self.rng.usize(0..entries.max(1));
        let (when, then) = (self.event(case)?, self.step(case)?);
        let path = [Turn::Key("timeline".into()), Turn::Item(index)];
        let entry = case.at_mut(&path)?;
        match self.rng.bool() {
            true => entry.set("when", Node::scalar(when)),
            false => {
                let mut steps = entry.get("do")?.one_or_more().to_vec();
                steps.push(then);
                entry.set("do", Node::of_items(steps));
            }
        }
        Some(())
    }

    /// Gives each worker a majority of its own: it does not reach the others.
    fn routes(&mut self, case: &mut Node) -> Option<()> {
        let reached = self.facts.servers.len().div_ceil(2);
        if reached < 2 {
            return None;
        }
        let mut cuts = Vec::new();
        for name in workers(case) {
            let mut servers = self.facts.servers.clone();
            self.rng.shuffle(&mut servers);
            let others = servers.split_off(reached).join(", ");
            cuts.push(step_of(&format!(
                "{{ partition: [[{name}], [{others}]], by: refuse }}"
            ))?);
            let worker = case.get_mut("workers")?.get_mut(&name)?;
            if worker.get("start").is_none() {
                worker.set("start", Node::scalar("routes.began"));
            }
        }
        let mut entry = Node::mapping(
            [("name", "routes"), ("when", "scenario.started")]
                .map(|(field, value)| (field, Node::scalar(value))),
        );
        entry.set("do", Node::of_items(cuts));
        add(case, entry)
    }

    fn add_entry(&mut self, case: &mut Node) -> Option<()> {
        let at_gate = gated(case);
        let when = match self.rng.u32(0..5) {
            0 => "scenario.started".to_owned(),
            1 | 2 if !at_gate.is_empty() => format!("{}.at_gate", self.one(&at_gate)?),
            _ => self.event(case)?,
        };
        let mut entry = Node::mapping([("when", Node::scalar(when))]);
        if self.rng.u32(0..6) == 0 {
            entry.set("after", Node::scalar(self.length()?));
        }
        let count = 1 + usize::from(self.rng.u32(0..3) == 0);
        let steps: Option<Vec<Node>> = (0..count).map(|_| self.step(case)).collect();
        entry.set("do", Node::of_items(steps?));
        add(case, entry)
    }

    /// Draws an event of a worker, or one that a step of the timeline causes at a node.
    fn event(&mut self, case: &Node) -> Option<String> {
        let caused = caused(case);
        if !caused.is_empty() && self.rng.u32(0..4) == 0 {
            return self.one(&caused).map(str::to_owned);
        }
        let name = self.worker(case)?;
        let worker = case.get("workers")?.get(&name)?;
        let can_come = |(_, field): &&(&str, &str)| field.is_empty() || worker.get(field).is_some();
        let events: Vec<&str> = EVENTS.iter().filter(can_come).map(|it| it.0).collect();
        let event = self.word(&events);
        let nth = match self.rng.u32(0..3) {
            0 if worker.get("rounds").is_some() => format!("#{}", self.rng.u32(2..=3)),
            _ => String::new(),
        };
        Some(format!("{name}.{event}{nth}"))
    }

    fn step(&mut self, case: &Node) -> Option<Node> {
        let (worker, server) = (self.worker(case)?, self.server()?);
        let (length, event) = (self.length()?, self.event(case)?);
        let either = if self.rng.bool() { &worker } else { &server };
        let link = match self.rng.u32(0..4) {
            0 => format!("{worker} -> resource"),
            1 => format!("{server} -> {worker}"),
            2 => format!("any -> {server}"),
            _ => format!("{worker} -> {server}"),
        };
        let cut = self.word(&["stall", "stall", "blackhole", "one-way", "refuse", "reset"]);
        let lasting = match self.rng.bool() {
            true => format!(", for: {length}"),
            false => String::new(),
        };
        let by = self.word(&["20ms", "500ms", "2s", "10s", "-500ms", "-5s", "60m", "-60m"]);
        let text = match self.rng.u32(0..26) {
            0..=5 => format!("{{ pause: {worker}, for: {length} }}"),
            6 | 7 => format!("{{ kill: {worker} }}"),
            8..=11 => format!("{{ wait: {event} }}"),
            12 | 13 => format!("{{ wait: {length} }}"),
            14 => format!("{{ pause: {server}, for: {length} }}"),
            15 => format!("{{ kill: {server}, for: {length} }}"),
            16 => format!("{{ restart: {} }}", self.one(&self.facts.durable)?),
            17 => format!("{{ restart-empty: {server} }}"),
            18 => format!("{{ isolate: {either}{lasting} }}"),
            19 => format!("{{ skew: {either}, by: {by} }}"),
            20 => {
                let ppm = self.word(&["2000", "100000", "500000", "-100000", "-500000"]);
                format!("{{ drift: {either}, ppm: {ppm} }}")
            }
            21 => format!("{{ latency: {link}, delay: {length}{lasting} }}"),
            22 | 23 => format!("{{ {cut}: {link}{lasting} }}"),
            24 => format!("{{ promote: {} }}", self.one(&self.facts.replicas)?),
            _ => {
                let some = self.some_servers()?.join(", ");
                let by = self.word(&["refuse", "blackhole", "stall"]);
                format!("{{ partition: [[{worker}], [{some}]]{lasting}, by: {by} }}")
            }
        };
        step_of(&text)
    }

    /// Draws a part of the servers; more than one of them only if there is a majority to keep.
    fn some_servers(&mut self) -> Option<Vec<String>> {
        let mut servers = self.facts.servers.clone();
        self.rng.shuffle(&mut servers);
        servers.truncate(self.rng.usize(1..=servers.len().div_ceil(2)));
        (!servers.is_empty()).then_some(servers)
    }
}

fn step_of(text: &str) -> Option<Node> {
    parse(Path::new("a drawn step"), text).ok()
}

/// Adds an entry to the timeline, if it is not long already.
fn add(case: &mut Node, entry: Node) -> Option<()> {
    let mut entries = case.get("timeline").map_or(&[][..], Node::items).to_vec();
    entries.push(entry);
    if entries.len() <= MOST_ENTRIES {
        case.set("timeline", Node::of_items(entries));
    }
    Some(())
}

fn workers(case: &Node) -> Vec<String> {
    let workers = case.get("workers").map_or(&[][..], Node::entries);
    workers.iter().map(|(name, _)| name.value.clone()).collect()
}

/// Returns the workers that stop at a gate.
fn gated(case: &Node) -> Vec<String> {
    let workers = case.get("workers").map_or(&[][..], Node::entries).iter();
    let gated = workers.filter(|(_, worker)| worker.get("gate").is_some());
    gated.map(|(name, _)| name.value.clone()).collect()
}

/// Returns the events at nodes that the steps of the timeline cause: `a.paused`.
fn caused(case: &Node) -> Vec<String> {
    let entries = case.get("timeline").map_or(&[][..], Node::items).iter();
    let steps = entries.flat_map(|entry| entry.get("do").map_or(&[][..], Node::one_or_more));
    let fields = steps.flat_map(Node::entries);
    let events = fields.filter_map(|(key, node)| {
        let mut kinds = FaultKind::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == key.value)?;
        Some(format!("{}.{}", node.as_scalar()?, kind.node_event()?))
    });
    events.collect()
}
