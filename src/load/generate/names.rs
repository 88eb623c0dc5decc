use uuid::{Builder, Uuid};

/// The names and owners of a great many locks. Each follows only from its number and the seed,
/// so they are the same every time.
#[derive(Clone, Debug)]
pub struct Names {
    /// The part that every name begins with; the number of the lock follows.
    stem: String,
    seed: u64,
}

impl Names {
    /// Makes the names of one label and seed, which differ from those of every other.
    pub fn new(label: &str, seed: u64) -> Names {
        Names {
            stem: format!("{label}-{seed}-"),
            seed,
        }
    }

    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// Returns the name that a client would pass to `acquire`.
    pub fn name(&self, index: u64) -> String {
        format!("{}{index}", self.stem)
    }

    pub fn owner(&self, index: u64) -> Uuid {
        let high = mixed(self.seed ^ mixed(index));
        let low = mixed(high ^ index);
        let bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
        Builder::from_random_bytes(bytes).into_uuid()
    }
}

/// Mixes a number with the finaliser of SplitMix64: every input bit changes half of the output
/// bits.
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_same_seed_names_the_same_owners_and_another_one_others() {
        let owners = |seed| {
            let names = Names::new("gen", seed);
            (0..1_000)
                .map(|index| names.owner(index))
                .collect::<Vec<_>>()
        };
        assert_eq!(owners(1), owners(1));
        let all: BTreeSet<Uuid> = (0..10).flat_map(owners).collect();
        assert_eq!(all.len(), 10_000, "no owner twice");
        assert!(all.iter().all(|owner| owner.get_version_num() == 4));
    }

    /// Later versions must be able to recognise and resume fills of earlier ones.
    #[test]
    fn names_and_owners_stay_what_they_were() {
        let names = Names::new("gen", 1);
        assert_eq!(names.name(42), "gen-1-42");
        let expected = "f34fe924-8c93-42e5-9f70-a8031e36916e";
        assert_eq!(names.owner(42).to_string(), expected);
    }
}
