use std::collections::BTreeMap;
use std::time::Instant;

/// How long each phase took, in milliseconds.
#[derive(Default)]
pub struct Phases {
    took_ms: BTreeMap<String, u64>,
}

impl Phases {
    pub async fn time<T>(&mut self, phase: &str, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        let took = started.elapsed().as_millis() as u64;
        self.took_ms.insert(format!("{phase}_ms"), took);
        done
    }

    /// With everything beyond the scenario's own waiting added up.
    pub fn finish(mut self) -> BTreeMap<String, u64> {
        let others = self
            .took_ms
            .iter()
            .filter(|(name, _)| *name != "scenario_ms");
        let overhead = others.map(|(_, ms)| ms).sum();
        self.took_ms.insert("overhead_ms".to_owned(), overhead);
        self.took_ms
    }
}
