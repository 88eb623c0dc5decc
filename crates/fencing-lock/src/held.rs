use super::Belief;
use crate::FencingToken;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// The leases that this process holds now: not released, and not lost. A lease is lost
/// while nobody looks, so they are counted when they are read.
#[derive(Clone, Debug, Default)]
pub struct HeldLeases {
    all: Arc<Mutex<Leases>>,
}

#[derive(Debug, Default)]
struct Leases {
    /// The number of leases so far.
    count: u64,
    /// By number, and so in the order of their grants.
    unreleased: BTreeMap<u64, HeldLease>,
}

#[derive(Clone, Debug)]
pub(super) struct HeldLease {
    pub(super) token: FencingToken,
    pub(super) since: Instant,
    pub(super) holding: Arc<Holding>,
}

/// The belief of a holder in its lease, with that of its session if there is one.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) own: Mutex<Belief>,
    /// If there is one, its deadline counts, and not that of `own`.
    pub(super) session: Option<watch::Receiver<Belief>>,
}

impl Holding {
    pub(super) fn belief(&self) -> Belief {
        let own = *self.own.lock();
        let Some(session) = &self.session else {
            return own;
        };
        let shared = *session.borrow();
        Belief {
            deadline: shared.deadline,
            lost: own.lost.or(shared.lost),
        }
    }
}

impl HeldLeases {
    pub fn get(&self) -> usize {
        let all = self.all.lock();
        all.unreleased.values().filter(|one| one.is_held()).count()
    }

    /// Adds a lease, and returns the number to remove it by.
    pub(super) fn add(&self, lease: HeldLease) -> u64 {
        let mut all = self.all.lock();
        all.count += 1;
        let number = all.count;
        all.unreleased.insert(number, lease);
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.all.lock().unreleased.remove(&number);
    }

    fn latest(&self) -> Option<HeldLease> {
        let all = self.all.lock();
        let held = all.unreleased.values().rev().find(|one| one.is_held());
        held.cloned()
    }
}

impl HeldLease {
    fn is_held(&self) -> bool {
        self.holding.belief().lost().is_none()
    }
}

impl Collector for HeldLeases {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let latest = self.latest();
        let encoder = &mut encoder;
        gauge(
            encoder,
            "lock_leases_held",
            "Leases that are neither released nor lost",
            self.get(),
        )?;
        gauge(
            encoder,
            "lock_current_token",
            "The fencing token of the latest lease that is held; 0 if none is",
            latest.as_ref().map_or(0, |lease| lease.token.0),
        )?;
        let Some(latest) = latest else {
            return Ok(());
        };
        gauge(
            encoder,
            "lock_token_age_seconds",
            "Since the grant of the latest lease that is held",
            latest.since.elapsed().as_secs_f64(),
        )
    }
}

fn gauge<T: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    value: T,
) -> Result<(), fmt::Error> {
    let gauge = ConstGauge::new(value);
    let metric = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
    gauge.encode(metric)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LostReason;
    use prometheus_client::registry::Registry;
    use std::time::Duration;

    #[test]
    fn what_is_released_or_lost_is_not_held() {
        let held = HeldLeases::default();
        let lease = |token| HeldLease {
            token: FencingToken(token),
            since: Instant::now(),
            holding: Arc::new(Holding {
                own: Mutex::new(Belief::until(Instant::now() + Duration::from_secs(600))),
                session: None,
            }),
        };
        let (first, second) = (lease(7), lease(9));
        held.add(first.clone());
        let number = held.add(second);
        assert!(page(&held).contains("lock_leases_held 2\n"));
        assert!(page(&held).contains("lock_current_token 9\n"));
        held.remove(number);
        assert!(page(&held).contains("lock_current_token 7\n"));
        assert!(page(&held).contains("lock_token_age_seconds"));
        first.holding.own.lock().lost = Some(LostReason::Expired);
        let nothing = page(&held);
        assert!(nothing.contains("lock_leases_held 0\n"), "{nothing}");
        assert!(nothing.contains("lock_current_token 0\n"), "{nothing}");
        assert!(!nothing.contains("lock_token_age_seconds"), "{nothing}");
    }

    fn page(held: &HeldLeases) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(held.clone()));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }
}
