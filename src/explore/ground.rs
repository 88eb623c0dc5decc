//! The ground that a search has covered: the orders of events that its plays have shown.

use super::*;
use crate::model::{CaseRecord, FaultStage};
use sha2::{Digest, Sha256};

/// Orders are counted in a table of this many bits, so that the memory of a search stays flat. Two
/// orders may share a bit, which makes one of them look old.
const BITS: usize = 1 << 16;
/// So many events one after the other are an order.
const LENGTH: usize = 3;
/// The most cases that are kept for having shown something new; the oldest go first.
const MOST_CASES: usize = 128;

#[derive(Clone)]
pub struct Ground {
    seen: Vec<u64>,
    /// Cases that have shown an order that nobody had before.
    pub cases: Vec<Node>,
}

impl Default for Ground {
    fn default() -> Ground {
        Ground {
            seen: vec![0; BITS / 64],
            cases: Vec::new(),
        }
    }
}

impl Ground {
    /// Adds the orders of a play; keeps its case if one of them is new.
    pub fn add(&mut self, orders: &[u16], case: &Node) {
        let mut is_new = false;
        for &order in orders {
            let (word, bit) = (usize::from(order) / 64, order % 64);
            is_new |= self.seen[word] & (1 << bit) == 0;
            self.seen[word] |= 1 << bit;
        }
        if is_new {
            if self.cases.len() >= MOST_CASES {
                self.cases.remove(0);
            }
            self.cases.push(case.clone());
        }
    }

    pub fn orders(&self) -> u32 {
        self.seen.iter().map(|word| word.count_ones()).sum()
    }

    pub fn to_hex(&self) -> String {
        self.seen
            .iter()
            .map(|word| format!("{word:016x}"))
            .collect()
    }

    pub fn of_hex(text: &str, cases: Vec<Node>) -> Option<Ground> {
        let words = text.as_bytes().chunks(16);
        let words = words.map(|word| u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
        let seen: Vec<u64> = words.collect::<Option<_>>()?;
        (seen.len() == BITS / 64).then_some(Ground { seen, cases })
    }
}

/// Returns the orders of events of a play, as numbers.
pub fn orders(record: &CaseRecord) -> Vec<u16> {
    let told = record.history.iter();
    let told = told.map(|event| (event.at_ns, event.worker.as_str(), event.kind.name()));
    let bitten = record.faults.iter().filter(|row| bit(row));
    let bitten = bitten.map(|row| (row.at_ns, row.target.as_str(), row.fault.name()));
    let mut events: Vec<_> = told.chain(bitten).collect();
    events.sort_by_key(|(at_ns, ..)| *at_ns);
    let orders = events.windows(LENGTH).map(|order| {
        let words = order
            .iter()
            .flat_map(|(_, who, what)| [*who, ".", *what, " "]);
        let hash = Sha256::digest(words.collect::<String>());
        u16::from_le_bytes([hash[0], hash[1]])
    });
    orders.collect()
}

pub fn bit(row: &FaultRow) -> bool {
    row.stage == FaultStage::Observed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ground_is_new_once_and_is_the_same_after_it_was_written() {
        let (mut ground, case) = (Ground::default(), Node::scalar("x"));
        ground.add(&[1, 2, 65535], &case);
        ground.add(&[2, 1], &case);
        assert_eq!((ground.orders(), ground.cases.len()), (3, 1));
        let again = Ground::of_hex(&ground.to_hex(), Vec::new()).unwrap();
        assert_eq!(again.orders(), 3);
        assert!(Ground::of_hex("12", Vec::new()).is_none());
        for order in 10..(10 + 2 * MOST_CASES as u16) {
            ground.add(&[order], &case);
        }
        assert_eq!(ground.cases.len(), MOST_CASES);
    }
}
