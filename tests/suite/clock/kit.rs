use crate::support::{Server, docker_ok, skip};
use std::os::unix::fs::FileExt;
use std::time::{Duration, SystemTime};
use vdso_clock::raw_monotonic_ns;

pub const SECOND_NS: i64 = 1_000_000_000;
/// What a loaded machine may add between two looks at a clock; the offsets that tests
/// set are several times as large.
pub const SLACK_MS: i64 = 3_000;

/// The time of day in milliseconds, as this process sees it.
pub fn host_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("after 1970").as_millis() as i64
}

#[track_caller]
pub fn assert_near(what: &str, found_ms: i64, wanted_ms: i64) {
    let off = (found_ms - wanted_ms).abs();
    assert!(off <= SLACK_MS, "{what}: {found_ms} ms, not {wanted_ms} ms");
}

/// The host's clocks, to see that they did not move against each other.
pub struct HostClock {
    between_ms: i64,
}

impl HostClock {
    pub fn look() -> HostClock {
        let monotonic_ms = raw_monotonic_ns() / 1_000_000;
        HostClock {
            between_ms: host_ms() - monotonic_ms as i64,
        }
    }

    #[track_caller]
    pub fn assert_unchanged(&self) {
        let now = HostClock::look().between_ms;
        assert_near("the host's clock", now, self.between_ms);
    }
}

/// False, and a line that says so, where other users' processes are out of reach.
pub fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "this test needs root");
        skip("only root reaches processes in containers from the host");
    }
    is_root
}

/// The server's process as the host counts it. The first process of its
/// container is the keeper; the server is the keeper's child.
pub fn pid_of(server: &Server) -> i32 {
    let inspect = ["inspect", "-f", "{{.State.Pid}}", &server.container];
    let keeper = docker_ok(&inspect);
    let children = format!("/proc/{keeper}/task/{keeper}/children");
    let children = std::fs::read_to_string(children).expect("the keeper runs");
    let server = children.split_whitespace().next().expect("a child");
    server.parse().expect("a process id")
}

/// The code of a process's vDSO, up to where a blob may have been put.
pub fn vdso_code(pid: u32) -> Vec<u8> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("it runs");
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let range = line.and_then(|line| line.split_whitespace().next());
    let (start, end) = range
        .and_then(|range| range.split_once('-'))
        .expect("a vDSO");
    let number = |text| u64::from_str_radix(text, 16).expect("hexadecimal");
    let mut bytes = vec![0; (number(end) - number(start)) as usize - 512];
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).expect("allowed");
    memory
        .read_exact_at(&mut bytes, number(start))
        .expect("mapped");
    bytes
}

/// Its functions are again those that the kernel gave to everybody.
#[track_caller]
pub fn assert_restored(pid: i32) {
    assert!(vdso_code(pid as u32) == vdso_code(std::process::id()));
}

/// The state letters of all threads of a process.
pub fn states(pid: i32) -> Vec<char> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let paths = threads.map(|thread| thread.expect("listed").path().join("stat"));
    let stats = paths.filter_map(|path| std::fs::read_to_string(path).ok());
    stats
        .filter_map(|stat| stat[stat.rfind(')')? + 2..].chars().next())
        .collect()
}

/// Looks until the threads are as they should be: that cannot be awaited.
#[track_caller]
pub fn await_states(pid: i32, fine: impl Fn(&[char]) -> bool) {
    for _ in 0..1_000 {
        if fine(&states(pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("its threads are {:?}", states(pid));
}
