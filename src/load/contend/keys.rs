#[derive(Clone)]
pub(super) struct Keys {
    contenders: u32,
    count: u64,
    random: fastrand::Rng,
}

impl Keys {
    /// Makes a chooser of keys. The same seed, step and `chooser` choose the same keys in the
    /// same order.
    pub(super) fn new(contenders: u32, count: u64, seed: u64, chooser: u64) -> Keys {
        let mut mixed = fastrand::Rng::with_seed(seed);
        let mixed = mixed.u64(..) ^ (u64::from(contenders) << 32) ^ chooser;
        Keys {
            contenders,
            count,
            random: fastrand::Rng::with_seed(mixed),
        }
    }

    pub(super) fn choose(&mut self) -> u64 {
        self.random.u64(..self.count)
    }

    /// Returns a seed for another random choice that the same seed shall decide.
    pub(super) fn seed_of_another(&self) -> u64 {
        self.random.clone().u64(..).rotate_left(32)
    }

    /// Returns the name of a key. Each step has its own names, so that no step finds what the
    /// previous one left.
    pub(super) fn name(&self, key: u64) -> String {
        let contenders = self.contenders;
        if self.count == 1 {
            return format!("contend-{contenders}");
        }
        let width = (self.count - 1).to_string().len();
        format!("contend-{contenders}-{key:0width$}")
    }
}

/// Returns the name of a contender in every event: `50-c7` is the seventh of fifty.
pub(super) fn contender_name(contenders: u32, index: u32) -> String {
    format!("{contenders}-c{}", index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_is_hot_and_many_are_numbered() {
        assert_eq!(Keys::new(50, 1, 7, 0).name(0), "contend-50");
        let keys = Keys::new(50, 1_000, 7, 0);
        assert_eq!(keys.name(7), "contend-50-007");
        assert_eq!(keys.name(999), "contend-50-999");
    }

    #[test]
    fn a_seed_chooses_the_same_keys_again_and_each_chooser_its_own() {
        let chosen = |seed, chooser| {
            let mut keys = Keys::new(50, 1_000_000, seed, chooser);
            [(); 5].map(|()| keys.choose())
        };
        assert_eq!(chosen(7, 0), chosen(7, 0));
        assert_ne!(chosen(7, 0), chosen(7, 1));
        assert_ne!(chosen(7, 0), chosen(8, 0));
    }

    #[test]
    fn contenders_of_different_steps_have_different_names() {
        let names = [(1, 0), (2, 0), (2, 1)].map(|(of, index)| contender_name(of, index));
        assert_eq!(names, ["1-c1", "2-c1", "2-c2"]);
    }
}
