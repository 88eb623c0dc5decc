use super::commands::command;
use super::*;
use std::ops::Range;

/// A part of all keys, made from its first to its last on one connection. The number of lanes
/// does not depend on the number of connections, so a fill can be resumed with a different number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::load) struct Lane {
    pub(super) number: u64,
    /// The keys that are still to be made.
    pub(super) indexes: Range<u64>,
}

const LANES: u64 = 64;

pub(in crate::load) fn lanes(keys: u64) -> Vec<Lane> {
    let border = |number: u64| (u128::from(keys) * u128::from(number) / u128::from(LANES)) as u64;
    let lane = |number| Lane {
        number,
        indexes: border(number)..border(number + 1),
    };
    (0..LANES).map(lane).collect()
}

/// The progress of a fill, kept in the server that it fills: a hash with the next index of each
/// lane. It is written after the keys were answered, so it is never ahead of them, and it lives
/// as long as the youngest of them.
#[derive(Clone, Debug)]
pub(in crate::load) struct Marker {
    pub(in crate::load) key: String,
    ttl_ms: String,
}

impl Marker {
    /// Makes the marker of a fill. A fill with different parameters has a different marker, and
    /// so starts from the beginning.
    pub(super) fn new(seed: u64, keys: u64, ttl: Duration) -> Marker {
        let ttl_ms = ttl.as_millis().to_string();
        Marker {
            key: format!("fencepost:gen:{seed}:{keys}:{ttl_ms}"),
            ttl_ms,
        }
    }

    /// Writes two commands that set the marker.
    pub(super) fn write(&self, lane: u64, next: u64, out: &mut Vec<u8>) {
        let (lane, next) = (lane.to_string(), next.to_string());
        let key = self.key.as_bytes();
        command(out, &[b"HSET", key, lane.as_bytes(), next.as_bytes()]);
        command(out, &[b"PEXPIRE", key, self.ttl_ms.as_bytes()]);
    }
}

pub(super) const MARKER_ANSWERS: u64 = 2;

/// Returns the unfinished parts of the lanes according to a marker. Fails on a marker that none
/// of our fills can have written.
pub(super) fn resumed(keys: u64, marked: &BTreeMap<String, String>) -> Result<Vec<Lane>, String> {
    let mut all = lanes(keys);
    for (lane, next) in marked {
        let bad = || format!("it says {next:?} of lane {lane:?}");
        let number: usize = lane.parse().map_err(|_| bad())?;
        let next: u64 = next.parse().map_err(|_| bad())?;
        let lane = all.get_mut(number).ok_or_else(bad)?;
        if next < lane.indexes.start || next > lane.indexes.end {
            return Err(bad());
        }
        lane.indexes.start = next;
    }
    Ok(all)
}

pub(super) fn left(lanes: &[Lane]) -> u64 {
    let sizes = lanes
        .iter()
        .map(|lane| lane.indexes.end - lane.indexes.start);
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(lane, next): &(&str, &str)| ((*lane).to_owned(), (*next).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn lanes_hold_every_key_once() {
        for keys in [1, 63, 64, 65, 1_000, 10_000_000, u64::MAX] {
            let lanes = lanes(keys);
            assert_eq!(left(&lanes), keys);
            assert_eq!(lanes[0].indexes.start, 0);
            assert_eq!(lanes[lanes.len() - 1].indexes.end, keys);
            for pair in lanes.windows(2) {
                assert_eq!(pair[0].indexes.end, pair[1].indexes.start);
            }
        }
    }

    #[test]
    fn a_marker_says_what_is_left() {
        assert_eq!(resumed(6_400, &marked(&[])), Ok(lanes(6_400)));
        let lanes = resumed(6_400, &marked(&[("0", "40"), ("2", "300")])).unwrap();
        assert_eq!(lanes[0].indexes, 40..100);
        assert_eq!(lanes[1].indexes, 100..200);
        assert_eq!(lanes[2].indexes, 300..300);
        assert_eq!(left(&lanes), 6_400 - 40 - 100);
    }

    #[test]
    fn a_marker_of_nobody_is_refused() {
        for bad in [
            ("x", "1"),
            ("64", "1"),
            ("0", "x"),
            ("0", "101"),
            ("1", "99"),
        ] {
            assert!(resumed(6_400, &marked(&[bad])).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn other_fills_have_other_markers() {
        let second = Duration::from_secs(1);
        let marker = |seed, keys, ttl| Marker::new(seed, keys, ttl).key;
        let one = marker(1, 10, second);
        assert_ne!(one, marker(2, 10, second));
        assert_ne!(one, marker(1, 11, second));
        assert_ne!(one, marker(1, 10, 2 * second));
    }
}
