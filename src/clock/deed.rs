//! An operation on the clocks of a process. It is done from here, or passed as a command of
//! this program to a helper beside the process.

use super::{ClockName, ClockState, Offset, Rate, SkewError, of_a_process};
use vdso_clock::{drift, set, show, undo};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deed {
    Show,
    Set(Vec<(ClockName, Offset)>),
    Drift(Vec<(ClockName, Rate)>),
    /// Restores every clock.
    Undo,
}

impl Deed {
    /// Does the operation and returns how the clocks differ afterwards.
    pub fn do_to(&self, pid: i32) -> Result<ClockState, SkewError> {
        match self {
            Deed::Show => show(pid),
            Deed::Undo => undo(pid),
            Deed::Set(offsets) => {
                for (clock, Offset(offset_ns)) in offsets {
                    set(pid, of_a_process(*clock), *offset_ns)?;
                }
                show(pid)
            }
            Deed::Drift(rates) => {
                for (clock, Rate(ppm)) in rates {
                    drift(pid, of_a_process(*clock), *ppm)?;
                }
                show(pid)
            }
        }
    }

    /// Returns the arguments of this program that do the same in a helper beside the process,
    /// which is process 1 there.
    pub fn beside(&self) -> Vec<String> {
        fn flags<T: std::fmt::Display>(all: &[(ClockName, T)]) -> Vec<String> {
            let flags = all.iter().map(|(clock, by)| format!("--{clock}={by}"));
            flags.collect()
        }
        let (verb, clocks) = match self {
            Deed::Show => ("show", Vec::new()),
            Deed::Undo => ("undo", Vec::new()),
            Deed::Set(all) => ("set", flags(all)),
            Deed::Drift(all) => ("drift", flags(all)),
        };
        let arguments = ["clock", verb, "1", "--format", "json"].map(str::to_owned);
        [arguments.to_vec(), clocks].concat()
    }

    /// Parses the output of a helper with these arguments.
    pub fn answer(printed: &str) -> Result<ClockState, String> {
        serde_json::from_str(printed)
            .map_err(|error| format!("{printed:?} is no state of clocks: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_told_the_same_in_words() {
        let clocks = vec![(ClockName::Realtime, Offset(-1_500_000_000))];
        assert_eq!(
            Deed::Set(clocks).beside().join(" "),
            "clock set 1 --format json --realtime=-1500ms"
        );
        let clocks = vec![(ClockName::Monotonic, Rate(200))];
        assert_eq!(
            Deed::Drift(clocks).beside().join(" "),
            "clock drift 1 --format json --monotonic=+200ppm"
        );
    }

    #[test]
    fn an_answer_may_have_many_lines() {
        let state = ClockState::default();
        let printed = serde_json::to_string_pretty(&state).unwrap();
        assert_eq!(Deed::answer(&printed), Ok(state));
        assert!(Deed::answer("").is_err() && Deed::answer("}").is_err());
    }
}
