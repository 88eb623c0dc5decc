//! Many who want one key: how often the lock goes to another owner, whether it
//! goes to whoever waited longest, and how long that was.

use crate::contest::contest;
use crate::numbers::{Spread, percentile};
use crate::order::Order;
use crate::peers::{Ours, Peer, Ring, Rslock};
use crate::targets::{Bound, Targets};
use crate::{Arguments, Trouble, servers};
use fencepost::model::WaitPolicy;
use fencepost::services::Backend;
use fencing_lock::CohortSettings;
use std::time::Duration;

const ROUNDS: usize = 3;
const TURN: Duration = Duration::from_secs(2);
const COHORT: CohortSettings = CohortSettings {
    hand_offs_max: 16,
    within: Duration::from_secs(1),
};
/// The retry that suits rslock best with that many contenders, so that it is
/// not only seen with a default made for other uses.
const TUNED_RETRIES: [(usize, Duration); 2] = [
    (100, Duration::from_millis(10)),
    (usize::MAX, Duration::from_millis(40)),
];

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let redis = tokio::task::block_in_place(servers::redis);
    let node = redis.address.clone();
    let nodes = vec![node.clone()];
    let mut targets = Targets::default();
    for &contenders in &arguments.contenders {
        let tuned = TUNED_RETRIES.iter().find(|(most, _)| contenders <= *most);
        let ours = |wait| Ours::waiting(Backend::Redis, wait, &nodes);
        let rslock = |retry| {
            let nodes = nodes.clone();
            Contestant::new(Rslock { nodes, retry })
        };
        let mut all = [
            Contestant::new(Ring { node: node.clone() }),
            Contestant::new(ours(WaitPolicy::Queue).in_one_process()),
            Contestant::new(ours(WaitPolicy::Queue)),
            Contestant::new(ours(WaitPolicy::Queue).with_cohort(COHORT)),
            Contestant::new(ours(WaitPolicy::Notify).in_one_process()),
            Contestant::new(ours(WaitPolicy::Spin).in_one_process()),
            rslock(None),
            rslock(tuned.map(|(_, retry)| *retry)),
        ];
        let rounds = arguments.rounds(ROUNDS);
        for round in 0..rounds {
            for turn in 0..all.len() {
                let number = (round + turn) % all.len();
                all[number].compete(contenders, arguments.hot(TURN)).await?;
            }
        }
        print(
            &format!("Hot key, one Redis, {contenders} contenders, no work"),
            &all,
        );
        let [ring, queue, own_connections, cohort, _, _, rslock, _] = &all;
        targets.expect(
            format!("hot key, {contenders}: hand-offs/s, cohort, beside the BLPOP ring"),
            cohort.ratio_to(ring),
            Bound::AtLeast(2.0),
        );
        for (queue, how) in [(queue, "queue"), (own_connections, "queue, as processes")] {
            targets.expect(
                format!("hot key, {contenders}: hand-offs/s, {how}, beside the BLPOP ring"),
                queue.ratio_to(ring),
                Bound::AtLeast(0.9),
            );
            targets.expect(
                format!("hot key, {contenders}: hand-offs/s, {how}, beside rslock"),
                queue.ratio_to(rslock),
                Bound::AtLeast(3.0),
            );
            targets.expect(
                format!("hot key, {contenders}: % of grants out of order, {how}"),
                queue.out_of_order(),
                Bound::Below(0.5),
            );
        }
    }
    Ok(targets)
}

/// A peer, and how it fared in each round.
pub struct Contestant {
    peer: Box<dyn Peer>,
    seen: Vec<Order>,
}

impl Contestant {
    pub fn new(peer: impl Peer + 'static) -> Contestant {
        Contestant {
            peer: Box::new(peer),
            seen: Vec::new(),
        }
    }

    /// On a key that nobody used before.
    pub async fn compete(&mut self, contenders: usize, length: Duration) -> Result<(), Trouble> {
        let key = format!("hot-{}", fastrand::u64(..));
        let seen = contest(&*self.peer, &key, contenders, length).await;
        let name = self.peer.name();
        let seen = seen.map_err(|trouble| format!("{name}, {contenders} contenders: {trouble}"))?;
        self.seen.push(seen);
        Ok(())
    }

    /// Of the hand-offs per second.
    pub fn ratio_to(&self, other: &Contestant) -> Spread {
        let [ours, others] = [self, other].map(|one| one.each(|order| order.handoffs_per_s));
        Spread::of_ratios(&ours, &others)
    }

    pub fn out_of_order(&self) -> Spread {
        Spread::of(&self.each(|order| order.out_of_order))
    }

    fn each(&self, number: fn(&Order) -> f64) -> Vec<f64> {
        self.seen.iter().map(number).collect()
    }
}

/// The first one is what the others are compared with.
pub fn print(title: &str, all: &[Contestant]) {
    println!("\n{title}");
    println!(
        "hand-offs/s  own again  out of order  p50 ms  p99 ms   grants  x first (quartiles)   candidate"
    );
    for one in all {
        let median = |number| percentile(&one.each(number), 0.5);
        println!(
            "{:>11.0} {:>8.1} % {:>11.2} % {:>7.1} {:>7.0} {:>8}  {:<21} {}",
            median(|order| order.handoffs_per_s),
            median(|order| order.own_again),
            median(|order| order.out_of_order),
            median(|order| order.p50_ms),
            median(|order| order.p99_ms),
            one.seen.iter().map(|order| order.grants).sum::<usize>(),
            one.ratio_to(&all[0]),
            one.peer.name(),
        );
    }
}
