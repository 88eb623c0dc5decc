use super::backlog::Backlog;
use super::bound::set_bound;
use super::contender::{Contender, Field};
use super::dispatcher::{Dispatcher, Schedule};
use super::generator::{Meter, generator};
use super::keys::Keys;
use super::tally::Tally;
use super::*;
use crate::load::Arrivals;
use crate::model::Queued;
use std::pin::pin;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

/// A finished step with one number of contenders, from the first arrival to the last release.
pub(super) struct Taken {
    pub(super) step: ContendStep,
    /// The reason why it ended early.
    pub(super) cut_short: Option<String>,
}

/// The wait for holders after an interrupt: the user does not want to wait for a silent server.
const TO_LET_GO_IN_A_HURRY: Duration = Duration::from_secs(5);
/// The most looks at the queue in one step, and the shortest time between two.
const LOOKS_MAX: u32 = 300;
const LOOK_EVERY_MIN: Duration = Duration::from_millis(100);
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The chooser number of the open model. In the closed model contenders choose keys themselves,
/// and are numbered from 0.
const DISPATCHER: u64 = u64::MAX;

pub(super) async fn take(run: &Run<'_>, contenders: u32) -> Taken {
    let plan = run.plan;
    let keys = |chooser| Keys::new(contenders, plan.keys, run.seed, chooser);
    let field = Arc::new(field(run, contenders));
    run.locks.went_right();
    run.locks.take_errors();
    let mut all = JoinSet::new();
    let ready = (0..contenders).map(|index| {
        let locks = run.clients[index as usize % run.clients.len()].clone();
        let contender = Contender::new(field.clone(), index, locks, keys(index.into()));
        contender.is_ready();
        contender
    });
    let ready: Vec<Contender> = ready.collect();

    let (attempts, requests) = at_rest(run).await;
    let meter = Meter::start();
    // The order matters: the last arrival must be due before the step is over.
    let start_ns = raw_monotonic_ns();
    let start = Instant::now();
    for contender in ready {
        all.spawn(contender.contend());
    }
    let dispatcher = plan.offered_per_s(contenders).map(|per_second| {
        let schedule = Schedule {
            start_ns,
            end_ns: start_ns + plan.duration.as_nanos() as u64,
            per_second,
        };
        dispatch(&field, schedule, keys(DISPATCHER))
    });
    let mut queue = Vec::new();
    let mut cut_short = match dispatcher {
        Some(Err(_)) => Some("no thread could be had for the arrivals".to_owned()),
        _ => watch(run, &field, &keys(DISPATCHER), start, &mut queue).await,
    };
    // The measurement ends here; holds in progress are only finished.
    let ended_ns = raw_monotonic_ns();
    let (attempts_then, requests_then) = run.sent();
    let cost = meter.cost();
    let made_late = match dispatcher {
        Some(Ok(dispatcher)) => Some(dispatcher.stop().latency()),
        _ => None,
    };
    if cut_short.is_some() {
        field.hurry.cancel();
    }
    let in_time = end(&field, &keys(DISPATCHER), ended_ns, &mut all).await;
    if !in_time {
        let words = "holders did not come to their end in time";
        cut_short.get_or_insert_with(|| words.to_owned());
    }

    let mut step = field.tally.step(ended_ns - start_ns);
    step.contenders = contenders;
    step.model = match plan.arrivals {
        Arrivals::Open { .. } => "open".to_owned(),
        Arrivals::Closed => "closed".to_owned(),
    };
    step.offered_per_s = plan.offered_per_s(contenders);
    step.errors = run.locks.take_errors();
    step.errors.append(&mut field.writes.take_errors());
    step.attempts = attempts_then - attempts;
    step.commands = requests_then - requests;
    step.queue = queue;
    step.generator = generator(cost, made_late, &step.acquire);
    set_bound(&mut step, field.tally.holds_overlapped(), plan.keys);
    Taken { step, cut_short }
}

/// Waits until no more requests are sent, and returns how many were sent: waits that ended with
/// the previous step are still being undone. Clients that keep a session alive never rest
/// completely, so there is a limit.
async fn at_rest(run: &Run<'_>) -> (u64, u64) {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    const LOOKS: u32 = 40;
    let mut sent = run.sent();
    for _ in 0..LOOKS {
        sleep(LOOK_EVERY).await;
        let now = run.sent();
        if now == sent {
            break;
        }
        sent = now;
    }
    sent
}

fn field(run: &Run<'_>, contenders: u32) -> Field {
    Field {
        plan: run.plan.clone(),
        contenders,
        resource: run.resource.clone(),
        recorder: run.recorder.clone(),
        tally: Tally::default(),
        backlog: match run.plan.arrivals {
            Arrivals::Open { backlog, .. } => Some(Backlog::new(contenders, backlog)),
            Arrivals::Closed => None,
        },
        writes: Health::default(),
        over: CancellationToken::new(),
        hurry: run.interrupt.child_token(),
    }
}

fn dispatch(
    field: &Arc<Field>,
    schedule: Schedule,
    mut choice: Keys,
) -> std::io::Result<Dispatcher> {
    let (field, names) = (field.clone(), choice.clone());
    let choose = move || choice.choose();
    Dispatcher::start(schedule, choose, move |due| {
        field.tally.arrives();
        let taken = field.backlog.as_ref().is_some_and(|all| all.offer(due));
        if !taken {
            let end = ArrivalEnd::TurnedAway;
            field.never_asked(&names, due, raw_monotonic_ns(), end);
        }
    })
}

/// Watches until the time is over; returns the reason if the step ends early.
async fn watch(
    run: &Run<'_>,
    field: &Field,
    keys: &Keys,
    start: Instant,
    queue: &mut Vec<Queued>,
) -> Option<String> {
    let every = (run.plan.duration / LOOKS_MAX).max(LOOK_EVERY_MIN);
    let mut looks = interval_at(start, every);
    looks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut hopeless = pin!(nothing_but_errors(run, field));
    let mut over = pin!(sleep_until(start + run.plan.duration));
    let mut tell_at = start;
    loop {
        tokio::select! {
            biased;
            () = run.interrupt.cancelled() => return Some("interrupted".to_owned()),
            words = &mut hopeless => return Some(words),
            () = &mut over => return None,
            _ = looks.tick() => {}
        }
        give_up_late(field, keys);
        let now = Queued {
            at_ms: start.elapsed().as_millis() as u64,
            waiting: field.tally.waiting(),
            backlog: field.backlog.as_ref().map_or(0, Backlog::length),
        };
        queue.push(now);
        if Instant::now() >= tell_at {
            tell_at += TELL_EVERY;
            run.task.detail(&format!(
                "{} contenders, {} of {} s, {} acquired, {} waiting",
                field.contenders,
                now.at_ms / 1_000,
                run.plan.duration.as_secs_f64().ceil(),
                field.tally.acquisitions(),
                now.waiting + now.backlog,
            ));
        }
    }
}

/// Times out arrivals that still wait in the backlog.
fn give_up_late(field: &Field, keys: &Keys) {
    let Some(backlog) = &field.backlog else {
        return;
    };
    let late_ns = raw_monotonic_ns().saturating_sub(field.timeout_ns());
    for due in backlog.give_up_before(late_ns) {
        let ended_ns = due.intended_ns + field.timeout_ns();
        field.never_asked(keys, due, ended_ns, ArrivalEnd::TimedOut);
    }
}

/// Ends the step: nobody asks any more, waits are cancelled, and holders finish. Returns false
/// if that takes too long.
async fn end(field: &Field, keys: &Keys, ended_ns: u64, all: &mut JoinSet<()>) -> bool {
    give_up_late(field, keys);
    let left = field.backlog.as_ref().map(Backlog::close);
    for due in left.unwrap_or_default() {
        field.never_asked(keys, due, ended_ns, ArrivalEnd::StillWaiting);
    }
    field.over.cancel();
    let at_their_end = async { while all.join_next().await.is_some() {} };
    let in_a_hurry = async {
        field.hurry.cancelled().await;
        sleep(TO_LET_GO_IN_A_HURRY).await;
    };
    tokio::select! {
        biased;
        () = at_their_end => true,
        () = in_a_hurry => false,
        () = sleep(field.plan.work.to + ContendPlan::TO_LET_GO) => false,
    }
}

/// Completes when it is useless to go on: one kind of server returned only errors for a second,
/// and our own probe gets no answer either.
async fn nothing_but_errors(run: &Run<'_>, field: &Field) -> String {
    const LONG_ENOUGH: Duration = Duration::from_secs(1);
    loop {
        sleep(LONG_ENOUGH / 4).await;
        if run.locks.fails_for(LONG_ENOUGH) {
            match run.probe.locks_answer().await {
                Ok(()) => run.locks.went_right(),
                Err(problem) => return format!("nothing but errors from the lock: {problem}"),
            }
        }
        if field.writes.fails_for(LONG_ENOUGH) {
            match run.probe.resource_answers().await {
                Ok(()) => field.writes.went_right(),
                Err(reason) => return format!("nothing but errors from the resource: {reason}"),
            }
        }
    }
}
