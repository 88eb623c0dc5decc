use super::*;

/// A process may be paused for this long between its look at the clock and its next
/// report.
const PUT_ASIDE_NS: u64 = 1_000_000_000;

/// The number of holds of one worker that are followed at a time. The ends of the oldest
/// ones beyond that are not known.
const MOST_OPEN: usize = 256;

/// The progress of one worker. Holds are named by their index.
#[derive(Default)]
pub(super) struct Worker<'a> {
    service: &'a str,
    service_plan: ServicePlan,
    ttl_ns: Option<u64>,
    /// The time for which a grant is certainly valid.
    covers_ns: Option<u64>,
    /// Whether its reported validity is that of its lock, and its clock was right.
    is_exact: bool,
    /// Whether its clock was off, which makes its reported validity wrong.
    clock_was_off: bool,
    is_sound: bool,
    /// The times when it was stopped, or its clock was off.
    stops: Vec<Span>,
    last_ns: Option<u64>,
    acquiring: Option<(u32, &'a str, u64)>,
    pub asking: Option<usize>,
    /// Since when it has asked for each key that it was not granted yet.
    wanting: HashMap<&'a str, u64>,
    pub open: Vec<usize>,
    /// Holds of an earlier process of the same name that never ended them, and the oldest
    /// beyond [`MOST_OPEN`].
    pub abandoned: Vec<usize>,
    /// Its latest hold of each key, even one that it has given up already.
    latest: HashMap<&'a str, usize>,
    /// The release that was sent and not answered yet.
    pub releasing: Option<usize>,
    /// Whether it is at the gate directly before its write.
    is_at_the_write: bool,
}

impl<'a> Worker<'a> {
    /// Makes the state of a new worker. `only_workers_fail` means that no fault affects
    /// anything else.
    pub fn new(
        name: &'a str,
        sound: &Sound<'a>,
        episodes: &Episodes<'a>,
        only_workers_fail: bool,
    ) -> Worker<'a> {
        let plan = sound.record.plan.worker(name);
        let of = |class: FaultClass| {
            let own = episodes.of_target(name);
            own.filter(move |it| it.kind.class() == class)
        };
        let clock_is_off = || of(FaultClass::Clock);
        let stops = of(FaultClass::Stop).chain(clock_is_off());
        Worker {
            service: plan.map_or("", |plan| plan.service.as_str()),
            service_plan: plan.map_or(ServicePlan::ONE_SERVER, |plan| plan.service_plan),
            ttl_ns: plan.map(|plan| plan.ttl_ns),
            covers_ns: plan.and_then(|plan| covers_ns(plan, only_workers_fail)),
            is_exact: plan.is_none_or(|plan| plan.is_ours) && clock_is_off().next().is_none(),
            clock_was_off: clock_is_off().next().is_some(),
            is_sound: !sound.odd_workers.contains(name),
            stops: merged(
                stops
                    .map(|it| (it.requested_ns(), it.over_ns().unwrap_or(u64::MAX)))
                    .filter(|(from_ns, to_ns)| from_ns <= to_ns)
                    .collect(),
            ),
            ..Worker::default()
        }
    }

    pub fn follow(&mut self, event: &'a Event, holds: &mut Vec<Hold<'a>>, asks: &mut Vec<Ask<'a>>) {
        let at_ns = event.at_ns;
        if matches!(event.kind, EventKind::Clock { .. }) {
            return;
        }
        if let Some(round) = round(&event.kind) {
            self.leave_rounds_before(round, at_ns, holds);
        }
        if matches!(event.kind, EventKind::Ready { .. }) {
            self.begin_anew();
        }
        self.end_asking(event, asks);
        // An answer comes after the fact: by the time of `released`, somebody else may
        // have held the key for long, so that event does not prolong a hold.
        if !matches!(event.kind, EventKind::Released { .. }) {
            for &open in &self.open {
                holds[open].to_ns = at_ns.max(holds[open].from_ns);
            }
        }
        match &event.kind {
            EventKind::Acquiring { round, key } => {
                self.acquiring = Some((*round, key, at_ns));
                self.wanting.entry(key).or_insert(at_ns);
                self.asking = Some(asks.len());
                asks.push(Ask {
                    worker: &event.worker,
                    key,
                    service: self.service,
                    ttl_ns: self.ttl_ns,
                    from_ns: at_ns,
                    to_ns: at_ns,
                    end: AskEnd::StillAsking,
                });
            }
            EventKind::Acquired { .. } => self.acquired(event, holds),
            EventKind::Failed { during, .. } => self.failed(event, *during, holds),
            EventKind::Renewed {
                key,
                valid_until_ns,
                ..
            } => self.renewed(at_ns, key, *valid_until_ns, holds),
            EventKind::AtGate { gate, .. } => {
                self.is_at_the_write = *gate == Gate::BeforeWrite;
            }
            EventKind::Writing { owner, .. } => self.writing(at_ns, owner, holds),
            EventKind::Lost { key, .. } => {
                if let Some(hold) = self.end(key, holds) {
                    holds[hold].over_ns = Some(at_ns);
                    holds[hold].lost_ns = Some(at_ns);
                }
            }
            EventKind::Releasing { key, .. } => {
                self.releasing = self.end(key, holds);
                if let Some(&hold) = self.latest.get(key.as_str()) {
                    holds[hold].releasing_ns.get_or_insert(at_ns);
                }
            }
            EventKind::Released { key, outcome, .. } => {
                let sent = self.releasing.take().filter(|&hold| holds[hold].key == key);
                if let Some(hold) = sent.or_else(|| self.end(key, holds)) {
                    holds[hold].over_ns = Some(at_ns);
                    if *outcome == ReleaseOutcome::Unknown {
                        holds[hold].possibly_to_ns = at_ns;
                    }
                }
                if let Some(&hold) = self.latest.get(key.as_str()) {
                    holds[hold].released.get_or_insert((at_ns, *outcome));
                }
            }
            EventKind::Done { .. } => {
                for open in self.open.drain(..) {
                    holds[open].leave(at_ns);
                }
            }
            _ => {}
        }
        self.last_ns = Some(at_ns);
    }

    fn acquired(&mut self, event: &'a Event, holds: &mut Vec<Hold<'a>>) {
        let EventKind::Acquired {
            round,
            key,
            token,
            owner,
            valid_until_ns,
        } = &event.kind
        else {
            return;
        };
        let at_ns = event.at_ns;
        let asked = self.acquiring.take();
        let asked = asked.filter(|&(_, asked, _)| asked == key);
        // A worker that does not report when it asked did so after its last report.
        let asked_ns = asked.map(|(_, _, at_ns)| at_ns);
        let asked_ns = asked_ns.or(self.last_ns).unwrap_or(at_ns);
        if self.open.len() == MOST_OPEN {
            self.abandoned.push(self.open.remove(0));
        }
        self.open.push(holds.len());
        self.latest.insert(key, holds.len());
        holds.push(Hold {
            covered_to_ns: valid_until_ns.filter(|_| self.is_exact),
            grant: Some(Grant {
                token: *token,
                owner,
            }),
            wanted_ns: self.wanting.remove(key.as_str()).unwrap_or(at_ns),
            asked_ns: asked_ns.min(at_ns),
            granted_until_ns: valid_until_ns.filter(|_| !self.clock_was_off),
            valid_until_ns: *valid_until_ns,
            ..self.hold(event, key, *round, at_ns)
        });
    }

    /// Ends the step that failed. Whether it took effect is unknown.
    fn failed(&mut self, event: &'a Event, during: Step, holds: &mut Vec<Hold<'a>>) {
        let at_ns = event.at_ns;
        match during {
            Step::Acquire => {
                if let Some((round, key, sent_ns)) = self.acquiring.take() {
                    holds.push(Hold {
                        possibly_to_ns: at_ns,
                        ended: true,
                        over_ns: Some(at_ns),
                        ..self.hold(event, key, round, sent_ns)
                    });
                }
            }
            Step::Release => {
                if let Some(hold) = self.releasing.take() {
                    holds[hold].possibly_to_ns = at_ns;
                    holds[hold].over_ns = Some(at_ns);
                }
            }
            Step::Read | Step::Write => {}
        }
    }

    fn renewed(&self, at_ns: u64, key: &str, valid_until_ns: Option<u64>, holds: &mut [Hold<'a>]) {
        for &open in &self.open {
            let hold = &mut holds[open];
            if hold.key != key {
                continue;
            }
            let before_ns = hold.confirmed_ns;
            hold.renewals += 1;
            hold.confirmed_ns = at_ns;
            hold.prolong(before_ns, valid_until_ns.filter(|_| self.is_exact));
            hold.valid_until_ns = valid_until_ns.or(hold.valid_until_ns);
        }
    }

    fn writing(&mut self, at_ns: u64, owner: &str, holds: &mut [Hold<'a>]) {
        let at_the_write = std::mem::take(&mut self.is_at_the_write);
        let open = self.open.iter().copied();
        let mut own =
            open.filter(|&open| holds[open].grant.is_some_and(|grant| grant.owner == owner));
        if let Some(own) = own.next()
            && let Some(until_ns) = holds[own].valid_until_ns
            && at_ns > until_ns.saturating_add(PUT_ASIDE_NS)
            && !at_the_write
            && !self.was_stopped(holds[own].from_ns, at_ns)
        {
            holds[own].wrote_late_ns.get_or_insert(at_ns);
        }
    }

    fn hold(&self, event: &'a Event, key: &'a str, round: u32, at_ns: u64) -> Hold<'a> {
        Hold {
            worker: &event.worker,
            key,
            round,
            service: self.service,
            service_plan: self.service_plan,
            ttl_ns: self.ttl_ns,
            covers_ns: self.covers_ns,
            wanted_ns: at_ns,
            asked_ns: at_ns,
            from_ns: at_ns,
            to_ns: at_ns,
            possibly_to_ns: at_ns,
            confirmed_ns: at_ns,
            is_sound: self.is_sound,
            ..Hold::default()
        }
    }

    fn begin_anew(&mut self) {
        self.abandoned.append(&mut self.open);
        self.acquiring = None;
        self.wanting.clear();
        self.releasing = None;
        self.is_at_the_write = false;
    }

    /// Ends the asking with the next thing that the worker reports.
    fn end_asking(&mut self, event: &Event, asks: &mut [Ask<'a>]) {
        let Some(asking) = self.asking.take() else {
            return;
        };
        let ask = &mut asks[asking];
        ask.to_ns = event.at_ns.max(ask.from_ns);
        ask.end = match &event.kind {
            EventKind::Acquired { key, .. } if key == ask.key => AskEnd::Granted,
            EventKind::Failed {
                during: Step::Acquire,
                ..
            } => AskEnd::Failed,
            _ => AskEnd::GivenUp,
        };
    }

    fn was_stopped(&self, from_ns: u64, to_ns: u64) -> bool {
        touch(&self.stops, from_ns, to_ns)
    }

    /// Ends the holds of earlier rounds. A worker that has gone on to its next round no
    /// longer claims the hold of the last one, even if it never said so (a failed write
    /// may skip the release).
    fn leave_rounds_before(&mut self, round: u32, at_ns: u64, holds: &mut [Hold<'a>]) {
        self.open.retain(|&open| {
            let stays = holds[open].round >= round;
            if !stays {
                holds[open].leave(at_ns);
            }
            stays
        });
    }

    fn end(&mut self, key: &str, holds: &mut [Hold<'a>]) -> Option<usize> {
        let place = self.open.iter().position(|&open| holds[open].key == key)?;
        let hold = self.open.remove(place);
        holds[hold].ended = true;
        Some(hold)
    }
}

/// Returns for how long a grant is certainly valid. A grant in a session is valid for the
/// rest of the session: at least two thirds of its TTL, as long as nothing keeps it from
/// being kept alive. This counts on half.
fn covers_ns(plan: &WorkerPlan, is_calm: bool) -> Option<u64> {
    match plan.service_plan.in_session {
        true => is_calm.then_some(plan.ttl_ns / 2),
        false => Some(plan.ttl_ns),
    }
}

fn round(kind: &EventKind) -> Option<u32> {
    match kind {
        EventKind::Acquiring { round, .. }
        | EventKind::Acquired { round, .. }
        | EventKind::Reentered { round, .. }
        | EventKind::AtGate { round, .. }
        | EventKind::Writing { round, .. }
        | EventKind::WriteAccepted { round, .. }
        | EventKind::WriteRejected { round, .. }
        | EventKind::Renewed { round, .. }
        | EventKind::Lost { round, .. }
        | EventKind::Left { round, .. }
        | EventKind::Releasing { round, .. }
        | EventKind::Released { round, .. }
        | EventKind::Failed { round, .. } => Some(*round),
        EventKind::Ready { .. }
        | EventKind::Done { .. }
        | EventKind::Refused { .. }
        | EventKind::Clock { .. } => None,
    }
}
