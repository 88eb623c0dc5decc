//! Contenders against real lock servers and a real resource. All tests but a
//! few share one Redis: the number of contenders keeps their keys apart.

mod kit;

use crate::support::{
    connection_to, docker_shared, etcd_servers, own_redis, redis_address, redlock_servers,
};
use fencepost::load::ContendPlan;
use fencepost::load::LoadError;
use fencepost::model::{ArrivalEnd, ContendStep, Span, WaitPolicy};
use fencepost::services::Backend;
use kit::*;
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// At least one attempt for each lock, but for those that were under way when the step ended.
fn tries_for_each(step: &ContendStep) -> bool {
    step.attempts + u64::from(step.contenders) >= step.acquisitions
}

/// One request to get a lock and one to give it back, but for the holds that
/// were under way when the step ended.
fn sends_two_for_each(step: &ContendStep) -> bool {
    let under_way = 2 * u64::from(step.contenders);
    step.commands + under_way >= 2 * step.acquisitions
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_fair_and_spinning_is_not_fairer() {
    let _turn = docker_shared();
    let servers = [redis_address()];
    let mut found = Vec::new();
    for (contenders, wait) in [(20, WaitPolicy::Queue), (21, WaitPolicy::Spin)] {
        let place = Place::new().await;
        let plan = ContendPlan {
            // More than the work lets through: somebody always waits.
            arrivals: open_model(100.0, 1_000),
            work: Span::exactly(ms(15)),
            ..plan(contenders, wait)
        };
        let came = place.load(&plan, &servers).await;
        came.is_safe();
        let step = came.step();
        assert!(step.hand_off.count > 0, "{step:?}");
        assert!(step.hand_offs_per_s > 0.0);
        found.push(step.fairness);
    }
    let [queue, spin] = found[..] else {
        panic!("two steps");
    };
    // Clients of their own can overtake each other on the way to the server.
    assert!(queue.out_of_order < 0.5, "{queue:?}");
    assert!(
        queue.out_of_order <= spin.out_of_order,
        "{queue:?} {spin:?}"
    );
    assert!(
        queue.mean_overtakes <= spin.mean_overtakes,
        "{queue:?} {spin:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overload_shows_as_a_queue_that_grows_up_to_its_bound() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        arrivals: open_model(300.0, 40),
        work: Span::exactly(ms(20)),
        ..plan(5, WaitPolicy::Queue)
    };
    let came = place.load(&plan, &[redis_address()]).await;
    came.is_safe();
    let step = came.step();
    assert_eq!(step.model, "open");
    assert_eq!(step.offered_per_s, Some(300.0));
    assert_eq!(step.arrivals, 450, "arrivals keep their rate");
    assert!(step.turned_away > 0, "{step:?}");
    assert_eq!(step.timeouts, 0);
    let ends = step.acquisitions + step.turned_away + step.still_waiting;
    assert_eq!(step.arrivals, ends);
    assert_eq!(came.arrivals.len() as u64, ends, "a row for each");
    let longest = step.queue.iter().map(|queued| queued.backlog).max();
    assert_eq!(longest, Some(40), "{:?}", step.queue);
    // The backlog is part of the wait, and a contender sees only the rest.
    assert!(step.acquire.p50_us > step.ask.p50_us, "{step:?}");
    assert!(step.throughput_per_s < 300.0);
    assert!(step.ceiling_per_s.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn patience_counts_from_the_intended_arrival() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        arrivals: open_model(200.0, 1_000),
        work: Span::exactly(ms(50)),
        timeout: ms(300),
        ..plan(6, WaitPolicy::Queue)
    };
    let came = place.load(&plan, &[redis_address()]).await;
    came.is_safe();
    let step = came.step();
    assert!(step.timeouts > 0, "{step:?}");
    let timed_out = came.arrivals.iter();
    let timed_out = timed_out.filter(|row| row.end == ArrivalEnd::TimedOut);
    let waits_ns: Vec<u64> = timed_out
        .map(|row| row.ended_ns - row.intended_ns)
        .collect();
    assert_eq!(waits_ns.len() as u64, step.timeouts);
    assert!(waits_ns.iter().all(|&ns| ns >= 300_000_000), "{waits_ns:?}");
    // A wait that came to nothing is no failure of the lock.
    assert_eq!(came.judgement.counts.failed_acquires, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_model_says_so_and_counts_what_it_sends() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        contenders: vec![1, 7],
        duration: ms(700),
        ..plan(1, WaitPolicy::Spin)
    };
    let came = place.load(&plan, &[redis_address()]).await;
    came.is_safe();
    came.result.as_ref().expect("to its end");
    let [alone, seven] = &came.steps[..] else {
        panic!("two steps");
    };
    assert_eq!((alone.contenders, seven.contenders), (1, 7));
    assert_eq!(
        (alone.model.as_str(), alone.offered_per_s),
        ("closed", None)
    );
    assert_eq!(alone.hand_off.count, 0, "nobody to hand over to");
    assert_eq!(alone.hand_offs_per_s, 0.0);
    assert_eq!(alone.fairness.out_of_order, 0.0);
    for step in [alone, seven] {
        assert!(step.acquisitions > 1, "{step:?}");
        assert!(tries_for_each(step), "{step:?}");
        assert!(sends_two_for_each(step), "{step:?}");
        assert!(step.acquire.p99_us >= step.acquire.p50_us);
        assert!(step.generator.peak_memory_mib > 0);
        assert!(step.generator.cpu_share > 0.0);
        assert!(!step.bound_by.is_empty());
    }
    assert!(seven.retries_per_acquisition() > alone.retries_per_acquisition());
    assert!(seven.commands_per_acquisition() > alone.commands_per_acquisition());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_keys_are_held_side_by_side() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        keys: 1_000,
        ..plan(8, WaitPolicy::Notify)
    };
    let came = place.load(&plan, &[redis_address()]).await;
    came.is_safe();
    let step = came.step();
    assert_eq!(step.ceiling_per_s, None);
    let mut keys: Vec<_> = came.arrivals.iter().map(|row| &row.key).collect();
    keys.sort();
    keys.dedup();
    assert!(keys.len() > 8, "{keys:?}");
    assert!(keys.iter().all(|key| key.len() == "contend-8-000".len()));
}

#[tokio::test(flavor = "multi_thread")]
async fn etcd_serves_in_the_order_of_arrival_and_its_requests_are_counted() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let mut plan = ContendPlan {
        arrivals: open_model(60.0, 1_000),
        work: Span::exactly(ms(25)),
        ..plan(9, WaitPolicy::default())
    };
    plan.lock.backend = Backend::Etcd;
    let servers = etcd_servers().iter();
    let servers: Vec<String> = servers.map(|server| server.address.clone()).collect();
    let came = place.load(&plan, &servers).await;
    came.is_safe();
    let step = came.step();
    assert!(step.acquisitions > 1, "{step:?}");
    assert!(sends_two_for_each(step), "{step:?}");
    assert!(step.fairness.out_of_order < 0.5, "{:?}", step.fairness);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_redlock_every_node_is_asked() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let mut plan = ContendPlan {
        duration: ms(700),
        ..plan(2, WaitPolicy::default())
    };
    plan.lock.backend = Backend::Redlock;
    let servers = redlock_servers().iter();
    let servers: Vec<String> = servers.map(|server| server.address.clone()).collect();
    let came = place.load(&plan, &servers).await;
    came.is_safe();
    let step = came.step();
    assert!(step.acquisitions > 1, "{step:?}");
    // A try asks all five, and three of them grant it.
    assert!(step.commands >= 5 * step.acquisitions, "{step:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_knows_that_the_lease_is_lost_writes_and_leaves_it_to_the_fence() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        // So long that a grant does not come too late on a busy machine.
        ttl: ms(1_000),
        work: Span::exactly(ms(1_500)),
        duration: ms(5_000),
        ..plan(4, WaitPolicy::Spin)
    };
    let came = place.load(&plan, &[redis_address()]).await;
    let (judgement, granted) = (&came.judgement, came.step().acquisitions);
    assert_eq!(judgement.violations, []);
    assert_eq!(judgement.doubts, []);
    let counts = &judgement.counts;
    assert_eq!(counts.lost_leases, granted);
    assert!(counts.definite_overlaps > 0, "{counts:?}");
    assert_eq!(counts.accepted_writes + counts.rejections, granted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_runs_out_of_memory_cuts_the_load_short_and_keeps_what_was_measured() {
    let _turn = docker_shared();
    let redis = own_redis();
    let place = Place::new().await;
    let plan = ContendPlan {
        duration: Duration::from_secs(50),
        // A queue goes on: its scripts begin with something that frees memory.
        ..plan(5, WaitPolicy::Spin)
    };
    let full = async {
        place.granted(10).await;
        let mut redis = connection_to(&redis.address).await;
        let mut shrink = redis::cmd("CONFIG");
        shrink.arg("SET").arg("maxmemory").arg(1);
        let () = shrink.query_async(&mut redis).await.unwrap();
    };
    let servers = [redis.address.clone()];
    let (came, ()) = tokio::join!(place.load(&plan, &servers), full);
    let Err(LoadError::CutShort(reason)) = &came.result else {
        panic!("{:?}", came.result);
    };
    assert!(reason.contains("OOM"), "{reason}");
    let [step] = &came.steps[..] else {
        panic!("{} steps", came.steps.len());
    };
    assert!(step.acquisitions >= 10);
    assert!(step.lasted_ms < 50_000);
    assert!(
        step.errors.keys().any(|words| words.contains("OOM")),
        "{:?}",
        step.errors
    );
    assert_eq!(came.judgement.violations, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_goes_away_cuts_the_load_short() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        duration: Duration::from_secs(50),
        ..plan(11, WaitPolicy::Queue)
    };
    let gone = async {
        place.granted(10).await;
        place.stop.cancel();
    };
    let servers = [redis_address()];
    let ((steps, result), ()) = tokio::join!(place.steps(&plan, &servers), gone);
    let Err(LoadError::CutShort(reason)) = &result else {
        panic!("{result:?}");
    };
    assert!(reason.contains("the resource"), "{reason}");
    assert!(steps[0].acquisitions >= 10);
    let words: Vec<_> = steps[0].errors.keys().collect();
    assert!(
        words.iter().all(|words| words.contains("the resource")),
        "{words:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_step_and_keeps_what_was_measured() {
    let _turn = docker_shared();
    let place = Place::new().await;
    let plan = ContendPlan {
        contenders: vec![3, 10],
        duration: Duration::from_secs(50),
        ..plan(3, WaitPolicy::Queue)
    };
    let interrupted = async {
        place.granted(5).await;
        place.interrupt.cancel();
    };
    let servers = [redis_address()];
    let (came, ()) = tokio::join!(place.load(&plan, &servers), interrupted);
    assert!(
        matches!(&came.result, Err(LoadError::CutShort(reason)) if reason == "interrupted"),
        "{:?}",
        came.result
    );
    assert_eq!(came.steps.len(), 1);
    assert!(came.steps[0].acquisitions >= 5);
    assert_eq!(came.judgement.violations, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_answer_are_named_before_anything_begins() {
    let _turn = docker_shared();
    let mut place = Place::new().await;
    let plan = plan(2, WaitPolicy::Spin);
    let refusal = place.refusal(&plan, &[NOBODY.to_owned()]).await;
    let words = refusal.to_string();
    assert!(
        words.starts_with("redis at 127.0.0.1:1 does not answer: "),
        "{words}"
    );

    place.resource = format!("http://{NOBODY}");
    let refusal = place.refusal(&plan, &[redis_address()]).await;
    let words = refusal.to_string();
    let expected = "the resource at http://127.0.0.1:1 does not answer: ";
    assert!(words.starts_with(expected), "{words}");
}

#[tokio::test]
async fn a_plan_that_cannot_be_is_refused_with_all_that_is_wrong() {
    let place = Place::new().await;
    let plan = ContendPlan {
        contenders: vec![0],
        keys: 0,
        ..plan(1, WaitPolicy::Spin)
    };
    let LoadError::Usage(words) = place.refusal(&plan, &[NOBODY.to_owned()]).await else {
        panic!("another refusal");
    };
    assert_eq!(words.lines().count(), 2, "{words}");
    assert!(
        words.contains("contenders: ") && words.contains("keys: "),
        "{words}"
    );
}
