//! An operation on the clocks of a process. It is done from here, or passed as a command of
//! this program to a helper beside the process.

use super::{ClockName, ClockState, Offset, Rate, SkewError, of_a_process};
use std::fs;
use std::str::FromStr;
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

    /// Does the operation to a process, and to every process that it has started and that has
    /// started others itself. Returns how the clocks of the first differ afterwards.
    ///
    /// The first comes first: what it starts from then on begins with its clocks.
    pub fn do_to_family(&self, pid: i32) -> Result<ClockState, SkewError> {
        let state = self.do_to(pid)?;
        if *self == Deed::Show {
            return Ok(state);
        }
        let mut family = children(pid);
        while let Some(child) = family.pop() {
            match self.do_to(child) {
                // It has ended meanwhile.
                Err(SkewError::NoSuchProcess { .. } | SkewError::NoVdso { .. }) => {}
                done => drop(done?),
            }
            family.extend(children(child));
        }
        Ok(state)
    }

    /// Returns the arguments of this program that do the same to a whole family in a helper beside the process,
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
        let arguments = ["clock", verb, "1", "--children", "--format", "json"].map(str::to_owned);
        [arguments.to_vec(), clocks].concat()
    }

    /// Parses these arguments, as the helper would.
    pub fn of_helper(arguments: &[String]) -> Option<Deed> {
        fn flags<T: FromStr>(all: &[String]) -> Option<Vec<(ClockName, T)>> {
            let flag = |text: &String| {
                let (clock, by) = text.strip_prefix("--")?.split_once('=')?;
                let clock = ClockName::ALL
                    .into_iter()
                    .find(|it| it.to_string() == clock)?;
                Some((clock, by.parse().ok()?))
            };
            all.iter().map(flag).collect()
        }
        let [_, verb, _, _, _, _, clocks @ ..] = arguments else {
            return None;
        };
        match verb.as_str() {
            "show" => Some(Deed::Show),
            "undo" => Some(Deed::Undo),
            "set" => flags(clocks).map(Deed::Set),
            "drift" => flags(clocks).map(Deed::Drift),
            _ => None,
        }
    }

    /// Parses the output of a helper with these arguments.
    pub fn answer(printed: &str) -> Result<ClockState, String> {
        serde_json::from_str(printed)
            .map_err(|error| format!("{printed:?} is no state of clocks: {error}"))
    }
}

/// Returns the processes that the threads of a process have started; none if it has ended.
fn children(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let parse = |list: String| -> Vec<i32> {
        let pids = list.split_whitespace();
        pids.filter_map(|pid| pid.parse().ok()).collect()
    };
    lists.flat_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_told_the_same_in_words() {
        let clocks = vec![(ClockName::Realtime, Offset(-1_500_000_000))];
        assert_eq!(
            Deed::Set(clocks).beside().join(" "),
            "clock set 1 --children --format json --realtime=-1500ms"
        );
        let clocks = vec![(ClockName::Monotonic, Rate(200))];
        let drift = Deed::Drift(clocks);
        assert_eq!(
            drift.beside().join(" "),
            "clock drift 1 --children --format json --monotonic=+200ppm"
        );
        let clocks = vec![
            (ClockName::Realtime, Offset(-1_500_000_000)),
            (ClockName::Monotonic, Offset(60_000_000_000)),
        ];
        for deed in [drift, Deed::Set(clocks), Deed::Show, Deed::Undo] {
            assert_eq!(Deed::of_helper(&deed.beside()), Some(deed));
        }
        assert_eq!(Deed::of_helper(&["clock".to_owned()]), None);
    }

    #[test]
    fn an_answer_may_have_many_lines() {
        let state = ClockState::default();
        let printed = serde_json::to_string_pretty(&state).unwrap();
        assert_eq!(Deed::answer(&printed), Ok(state));
        assert!(Deed::answer("").is_err() && Deed::answer("}").is_err());
    }
}
