use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::time::Instant;

/// The length of each phase, in milliseconds.
#[derive(Default)]
pub struct PhaseTimes(Mutex<BTreeMap<String, u64>>);

impl PhaseTimes {
    pub async fn time<T>(&self, phase: &str, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        let took = started.elapsed().as_millis() as u64;
        self.0.lock().insert(format!("{phase}_ms"), took);
        done
    }

    /// Returns the times, with the sum of all phases beyond the scenario's own as overhead.
    pub fn finish(self) -> BTreeMap<String, u64> {
        let mut times = self.0.into_inner();
        let others = times.iter().filter(|(name, _)| *name != "scenario_ms");
        let overhead = others.map(|(_, ms)| ms).sum();
        times.insert("overhead_ms".to_owned(), overhead);
        times
    }
}
