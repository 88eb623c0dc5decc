//! Repeatable chance: it depends only on the seed, the proxy, the number of the
//! connection, the stream and the toxic.

use crate::Stream;
use fastrand::Rng;

/// The chance of one direction of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Luck(u64);

impl Luck {
    pub fn new(seed: u64, proxy: &str, connection: u64, stream: Stream) -> Luck {
        let named = proxy.bytes().fold(mixed(seed), |hash, byte| {
            mixed(hash ^ u64::from(byte).wrapping_add(0x100))
        });
        Luck(mixed(mixed(named ^ connection) ^ stream as u64))
    }

    /// Returns whether a toxic affects this connection. A toxicity that is changed later
    /// is compared with the same roll.
    pub fn is_hit(self, toxic: u64, toxicity: f64) -> bool {
        self.rng_of(toxic).f64() < toxicity
    }

    /// Returns the random numbers for everything that an active toxic does by chance.
    pub fn rng_within(self, toxic: u64) -> Rng {
        self.rng_of(toxic).fork()
    }

    fn rng_of(self, toxic: u64) -> Rng {
        Rng::with_seed(mixed(self.0 ^ mixed(toxic)))
    }
}

/// Mixes the bits with the finisher of SplitMix64: every bit of the input changes half of
/// the output.
fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hits(seed: u64, proxy: &str, stream: Stream, toxicity: f64) -> Vec<bool> {
        let lucks = (1..=1_000).map(|connection| Luck::new(seed, proxy, connection, stream));
        lucks.map(|luck| luck.is_hit(1, toxicity)).collect()
    }

    #[test]
    fn the_same_seed_has_the_same_luck_and_another_another() {
        let once = hits(7, "redis", Stream::Upstream, 0.5);
        assert_eq!(once, hits(7, "redis", Stream::Upstream, 0.5));
        assert_ne!(once, hits(8, "redis", Stream::Upstream, 0.5));
        assert_ne!(once, hits(7, "redis2", Stream::Upstream, 0.5));
        assert_ne!(once, hits(7, "redis", Stream::Downstream, 0.5));
        let luck = Luck::new(7, "redis", 1, Stream::Upstream);
        assert_eq!(luck.rng_within(3).u64(..), luck.rng_within(3).u64(..));
        assert_ne!(luck.rng_within(3).u64(..), luck.rng_within(4).u64(..));
    }

    #[test]
    fn toxicity_is_the_share_of_connections() {
        let count = |toxicity| {
            let hits = hits(1, "p", Stream::Downstream, toxicity);
            hits.iter().filter(|&&hit| hit).count()
        };
        assert_eq!((count(0.0), count(1.0)), (0, 1_000));
        assert!((250..350).contains(&count(0.3)), "{}", count(0.3));
    }
}
