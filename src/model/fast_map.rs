use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// A map for short keys: numbers, pairs of numbers, names. Its hash is fast and
/// the same in every process; it does not resist somebody who chooses keys
/// that collide, so it is not for what arrives over a network.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A set as [`FastMap`] is a map.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

#[derive(Clone, Copy, Debug, Default)]
pub struct FastHasher(u64);

/// Odd, with about as many ones as zeros: digits of the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const START: u64 = 0x2d35_8dcc_aa6c_78a5;

/// Both halves of the product, so that every bit of a word reaches both ends
/// of the hash: a map takes its bucket from one end and its tag from the other.
fn mix(hash: u64, word: u64) -> u64 {
    let product = u128::from(hash ^ word ^ START) * u128::from(FACTOR);
    product as u64 ^ (product >> 64) as u64
}

pub(super) fn hash_of(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = 0;
    for word in words {
        hash = mix(hash, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        // The last eight bytes, some of them a second time, are one read.
        let last = match bytes.last_chunk::<8>() {
            Some(last) => u64::from_le_bytes(*last),
            None => rest
                .iter()
                .fold(0, |word, byte| (word << 8) | u64::from(*byte)),
        };
        hash = mix(hash, last);
    }
    mix(hash, bytes.len() as u64)
}

impl Hasher for FastHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, hash_of(bytes));
    }

    fn write_u8(&mut self, n: u8) {
        self.0 = mix(self.0, u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = mix(self.0, u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = mix(self.0, n);
    }

    fn write_usize(&mut self, n: usize) {
        self.0 = mix(self.0, n as u64);
    }

    fn finish(&self) -> u64 {
        // One round spreads numbers that differ in one bit too little.
        mix(self.0, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_that_are_alike_spread_over_buckets_and_tags() {
        let names = (0..4096).map(|n| hash_of(format!("account-{n}").as_bytes()));
        let owners = (0..4096).map(|n| hash_of(format!("{n:08x}-64ef-48cc-8bf9").as_bytes()));
        let numbers = (0..4096_u64).map(|n| {
            let mut hasher = FastHasher::default();
            hasher.write_u64(n << 20);
            hasher.finish()
        });
        for hashes in [
            names.collect::<Vec<_>>(),
            owners.collect(),
            numbers.collect(),
        ] {
            for shift in [0, 52] {
                let buckets: HashSet<u64> = hashes.iter().map(|h| (h >> shift) & 0xfff).collect();
                // Of 4096 buckets, random numbers hit 63 % = 2589.
                assert!((2450..2750).contains(&buckets.len()), "{}", buckets.len());
            }
        }
    }

    #[test]
    fn zeros_at_the_end_of_a_name_count() {
        let mut hashes: Vec<u64> = (0..40).map(|zeros| hash_of(&vec![0; zeros])).collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 40);
    }
}
