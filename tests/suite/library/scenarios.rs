//! Every scenario of faults, a test for each: on processes of this machine, the core of them
//! on Docker as well, on Docker alone what needs containers, and in the simulation what exists only there. `just soak` and every night
//! play all of them on Docker. Those that take longest are ignored here, too.

use super::*;

const PROCESSES: &[Runtime] = &[Runtime::Local];
const CONTAINERS: &[Runtime] = &[Runtime::Docker];
const SIMULATED: &[Runtime] = &[Runtime::Sim];
const BOTH: &[Runtime] = &[Runtime::Docker, Runtime::Local];

macro_rules! scenarios {
    ($($(#[$slow:meta])? $name:ident on $runtimes:ident,)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            $(#[$slow])?
            fn $name() {
                comes_out_as_expected(stringify!($name), $runtimes);
            }
        )*
    };
}

scenarios! {
    #[ignore = "ten cases of up to 25 s: `just soak` runs it"]
    clock_drift on CONTAINERS,
    #[ignore = "four cases of a service beside its mandatory experiment: `just test-slow` runs it"]
    consul_cut_off_holder on CONTAINERS,
    delayed_write on PROCESSES,
    #[ignore = "cases of a service beside its mandatory experiment: `just test-slow` runs it"]
    dynamodb_lost_answer on CONTAINERS,
    #[ignore = "cases of a service beside its mandatory experiment: `just test-slow` runs it"]
    dynamodb_slow_holder on CONTAINERS,
    etcd_leader_kill on CONTAINERS,
    etcd_lease_clock on PROCESSES,
    etcd_minority_holder on CONTAINERS,
    fenced_row on PROCESSES,
    gc_pause on PROCESSES,
    healthy on PROCESSES,
    lock_service_down on PROCESSES,
    #[ignore = "holds a lock for 70 s: `just soak` runs it"]
    long_work on CONTAINERS,
    lost_answer on PROCESSES,
    lost_lease on PROCESSES,
    lost_update_behind_a_fence on PROCESSES,
    #[ignore = "four cases of a service beside its mandatory experiment: `just test-slow` runs it"]
    mariadb_wait_timeout on PROCESSES,
    memory_majority_counters on SIMULATED,
    memory_majority_forgets on SIMULATED,
    memory_restart on SIMULATED,
    mixed_locks on PROCESSES,
    pause_gt_ttl on BOTH,
    pause_gt_ttl_consul on CONTAINERS,
    pause_gt_ttl_dynamodb on CONTAINERS,
    pause_gt_ttl_etcd on BOTH,
    pause_gt_ttl_mariadb on BOTH,
    pause_gt_ttl_memory on SIMULATED,
    pause_gt_ttl_memory_majority on SIMULATED,
    pause_gt_ttl_postgres on BOTH,
    pause_gt_ttl_redlock on CONTAINERS,
    pause_gt_ttl_zookeeper on CONTAINERS,
    postgres_advisory_pgbouncer on CONTAINERS,
    postgres_advisory_stopped_holder on PROCESSES,
    postgres_clock on PROCESSES,
    postgres_failover on CONTAINERS,
    postgres_restart on PROCESSES,
    postgres_row on PROCESSES,
    queue_late_hand_off on BOTH,
    redis_failover on BOTH,
    redis_restart_empty on PROCESSES,
    redlock_amnesia on PROCESSES,
    redlock_clock_jump on BOTH,
    redlock_naive_tokens on PROCESSES,
    redlock_partition on PROCESSES,
    redlock_pause_in_acquire on PROCESSES,
    reentrant_renew on PROCESSES,
    release_toctou on PROCESSES,
    renew_vs_reacquire on PROCESSES,
    resource_crash on PROCESSES,
    s3_mistakes on PROCESSES,
    slow_body on PROCESSES,
    sql_mistakes on PROCESSES,
    #[ignore = "a smaller storm is weathered in its place: `just soak` runs it"]
    storm on CONTAINERS,
    ttl_sweep on PROCESSES,
    work_gt_ttl on PROCESSES,
    worker_crash on CONTAINERS,
    #[ignore = "an election of three JVMs on a busy machine outlasts the holder's TTL: `just test-slow` runs it"]
    zookeeper_leader_kill on CONTAINERS,
    #[ignore = "an election of three JVMs on a busy machine outlasts the holder's TTL: `just test-slow` runs it"]
    zookeeper_minority_holder on CONTAINERS,
    #[ignore = "four cases of a service beside its mandatory experiment: `just test-slow` runs it"]
    zookeeper_session_expires on CONTAINERS,
}

/// As a test is called, and as a scenario is.
fn scenario(test: &str) -> String {
    test.replace('_', "-")
}

/// Where a scenario is played on both, the order of events is given, not a matter of how fast
/// containers are: the stable parts of the results are the same.
fn comes_out_as_expected(test: &str, runtimes: &[Runtime]) {
    let name = scenario(test);
    let mut stable: Option<Value> = None;
    for runtime in runtimes {
        let results = fresh_folder(&format!("library-{name}-{}", runtime.name()));
        run_scenario(*runtime, &results, &name, &[]);
        let result = came_out_as_expected(&results, &name);
        assert_eq!(result["environment"]["runtime"], runtime.name());
        let ours = &result["stable"];
        assert_eq!(ours, stable.get_or_insert_with(|| ours.clone()), "{name}");
        if ["pause-gt-ttl-redlock", "pause-gt-ttl-etcd"].contains(&&*name) {
            a_majority_saw_it(&results.join(&name).join("latest"));
        }
    }
}

#[test]
fn every_scenario_of_faults_has_a_test() {
    let tested: Vec<String> = NAMES.iter().copied().map(scenario).collect();
    assert_eq!(tested, faults_and_loads().0);
}

/// The lock servers' own view of a hold that ran out. A node of the five to
/// which the holder was still connecting when the majority had answered is not
/// asked.
fn a_majority_saw_it(run: &Path) {
    for case in ["unfenced", "fenced"] {
        let locks = rows(&run.join(case).join("locks.jsonl"));
        for event in ["granted", "expired"] {
            let seen = locks.iter().filter(|row| row["event"] == event);
            let nodes: BTreeSet<&str> = seen.filter_map(|row| row["node"].as_str()).collect();
            assert!(nodes.len() >= 3, "{event} at {nodes:?}: {locks:#?}");
        }
    }
}
