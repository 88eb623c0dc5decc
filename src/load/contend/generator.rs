use super::*;
use crate::load::memory::{forget_peak_memory, peak_memory_kib};
use crate::model::Generator;
use nix::time::{ClockId, clock_gettime};
use std::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// A meter of the cost of making the load, from its start on.
pub(super) struct Meter {
    began_at: Instant,
    cpu_at_first: Duration,
    pulse: Arc<Mutex<Timings>>,
    _beats: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy)]
pub(super) struct Cost {
    /// The share of one core.
    cpu_share: f64,
    /// The delay with which a task is woken. Contenders are just as late.
    pulse: Latency,
}

const BEAT: Duration = Duration::from_millis(10);

impl Meter {
    pub(super) fn start() -> Meter {
        let pulse = Arc::new(Mutex::new(Timings::default()));
        forget_peak_memory();
        Meter {
            began_at: Instant::now(),
            cpu_at_first: cpu_time(),
            _beats: AbortOnDropHandle::new(tokio::spawn(beat(pulse.clone()))),
            pulse,
        }
    }

    pub(super) fn cost(&self) -> Cost {
        let used = cpu_time().saturating_sub(self.cpu_at_first);
        let lasted = self.began_at.elapsed().as_secs_f64().max(f64::EPSILON);
        let pulse = self.pulse.lock();
        Cost {
            cpu_share: used.as_secs_f64() / lasted,
            pulse: pulse.latency(),
        }
    }
}

/// Measures the delay of timers until it is dropped.
async fn beat(pulse: Arc<Mutex<Timings>>) {
    loop {
        let due_ns = raw_monotonic_ns() + BEAT.as_nanos() as u64;
        sleep(BEAT).await;
        let mut pulse = pulse.lock();
        pulse.record(due_ns, raw_monotonic_ns());
    }
}

/// Describes the generator. `made_late` is how late arrivals were made, if there is a rate.
/// `acquire` is the measured latency of the lock, which shows whether that delay is large.
pub(super) fn generator(cost: Cost, made_late: Option<Latency>, acquire: &Latency) -> Generator {
    let Cost { cpu_share, pulse } = cost;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lag = made_late.unwrap_or(pulse);
    let late = |lag: &Latency| bottleneck(cpu_share, cores, lag, acquire);
    Generator {
        cpu_share,
        lag,
        peak_memory_mib: peak_memory_kib() / 1_024,
        bottleneck: late(&lag).or_else(|| late(&pulse)),
    }
}

/// A lag below this comes from the machine itself: timers and other processes.
const LATE_US: u64 = 10_000;
/// A lag above this share of the median wait distorts the measurement.
const NOTICEABLE: f64 = 0.1;
/// A share of all cores. Above it, everything waits for the processor.
const BUSY: f64 = 0.9;

fn bottleneck(cpu_share: f64, cores: usize, lag: &Latency, acquire: &Latency) -> Option<String> {
    if cpu_share >= BUSY * cores as f64 {
        return Some(format!(
            "the generator kept {cpu_share:.1} of {cores} cores busy, so its own work is in every figure"
        ));
    }
    let is_noticeable = lag.p99_us as f64 >= NOTICEABLE * acquire.p50_us as f64;
    (lag.p99_us >= LATE_US && is_noticeable).then(|| {
        format!(
            "the generator was late: one time in a hundred by {} ms or more",
            lag.p99_us / 1_000
        )
    })
}

/// Returns the user and system time of all threads of this process.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    time.map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(p50_us: u64, p99_us: u64) -> Latency {
        Latency {
            count: 1_000,
            p50_us,
            p99_us,
            ..Latency::default()
        }
    }

    #[test]
    fn a_generator_that_is_late_or_busy_says_so() {
        let punctual = of(50, 900);
        assert_eq!(bottleneck(0.3, 2, &punctual, &of(1_000, 2_000)), None);
        let busy = bottleneck(1.9, 2, &punctual, &of(1_000, 2_000));
        assert!(busy.unwrap().contains("1.9 of 2 cores"));
        let late = of(50, 40_000);
        let told = bottleneck(0.3, 2, &late, &of(1_000, 2_000)).unwrap();
        assert!(told.contains("40 ms"), "{told}");
        let hidden_by_the_wait = bottleneck(0.3, 2, &late, &of(2_000_000, 3_000_000));
        assert_eq!(hidden_by_the_wait, None);
    }

    #[tokio::test]
    async fn the_process_knows_its_time_its_memory_and_its_pulse() {
        let meter = Meter::start();
        let measured = async {
            while meter.cost().cpu_share == 0.0 || meter.cost().pulse.count == 0 {
                tokio::task::yield_now().await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(60), measured).await;
        assert!(in_time.is_ok(), "no time passed and no pulse came");
        assert!(peak_memory_kib() > 0);
    }

    #[test]
    fn without_a_rate_the_pulse_is_the_lag() {
        let pulse = of(20_000, 40_000);
        let cost = Cost {
            cpu_share: 0.1,
            pulse,
        };
        let acquire = of(1_000, 2_000);
        let closed = generator(cost, None, &acquire);
        assert_eq!(closed.lag, pulse);
        assert!(closed.bottleneck.is_some());
        let punctual = of(50, 900);
        let open = generator(cost, Some(punctual), &acquire);
        assert_eq!(open.lag, punctual);
        assert!(open.bottleneck.is_some(), "its contenders are late");
    }
}
