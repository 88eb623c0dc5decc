use crate::clock::{ClockName, ClockShift, ClockState, ClocksAhead, Deed, Offset, Rate};

/// How wrong the clocks of a process are.
#[derive(Default)]
pub struct Clocks {
    realtime: Shift,
    monotonic: Shift,
}

/// The shift of a clock, and since when it has it.
#[derive(Default)]
struct Shift {
    shift: ClockShift,
    since_ns: u64,
}

impl Clocks {
    /// Most clocks are right, and then nobody has to look at the time.
    pub fn ahead(&self, now_ns: impl FnOnce() -> u64) -> ClocksAhead {
        if self.realtime.is_untouched() && self.monotonic.is_untouched() {
            return ClocksAhead::default();
        }
        let now_ns = now_ns();
        ClocksAhead {
            realtime_ns: self.realtime.ahead_ns(now_ns),
            monotonic_ns: self.monotonic.ahead_ns(now_ns),
        }
    }

    /// Changes the clocks as the skew of a real process does; returns their shifts then.
    pub fn change(&mut self, deed: &Deed, now_ns: u64) -> ClockState {
        match deed {
            Deed::Show => {}
            Deed::Undo => *self = Clocks::default(),
            Deed::Set(offsets) => {
                for (clock, Offset(offset_ns)) in offsets {
                    let shift = self.of(*clock);
                    shift.shift.offset_ns = *offset_ns;
                    shift.since_ns = now_ns;
                }
            }
            Deed::Drift(rates) => {
                for (clock, Rate(ppm)) in rates {
                    let shift = self.of(*clock);
                    shift.shift.offset_ns = shift.ahead_ns(now_ns);
                    shift.shift.rate_ppm = *ppm;
                    shift.since_ns = now_ns;
                }
            }
        }
        ClockState {
            realtime: self.realtime.at(now_ns),
            monotonic: self.monotonic.at(now_ns),
        }
    }

    fn of(&mut self, clock: ClockName) -> &mut Shift {
        match clock {
            ClockName::Realtime => &mut self.realtime,
            ClockName::Monotonic => &mut self.monotonic,
        }
    }
}

impl Shift {
    fn is_untouched(&self) -> bool {
        self.shift == ClockShift::default()
    }

    fn ahead_ns(&self, now_ns: u64) -> i64 {
        let ClockShift {
            offset_ns,
            rate_ppm,
        } = self.shift;
        let passed_ns = i128::from(now_ns.saturating_sub(self.since_ns));
        let grown_ns = passed_ns * i128::from(rate_ppm) / 1_000_000;
        offset_ns.saturating_add(i64::try_from(grown_ns).unwrap_or(i64::MAX))
    }

    fn at(&self, now_ns: u64) -> ClockShift {
        ClockShift {
            offset_ns: self.ahead_ns(now_ns),
            ..self.shift
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn a_clock_is_set_and_drifts_and_is_put_right() {
        let mut clocks = Clocks::default();
        let now = |seconds: i64| (seconds * SECOND) as u64;
        clocks.change(
            &Deed::Set(vec![(ClockName::Realtime, Offset(5 * SECOND))]),
            now(1),
        );
        let state = clocks.change(
            &Deed::Drift(vec![(ClockName::Realtime, Rate(100_000))]),
            now(2),
        );
        assert_eq!(state.realtime.offset_ns, 5 * SECOND);
        assert_eq!(clocks.ahead(|| now(12)).realtime_ns, 6 * SECOND);
        assert_eq!(clocks.ahead(|| now(12)).monotonic_ns, 0);
        let state = clocks.change(&Deed::Drift(vec![(ClockName::Realtime, Rate(0))]), now(12));
        assert_eq!(state.realtime.offset_ns, 6 * SECOND);
        let state = clocks.change(&Deed::Set(vec![(ClockName::Realtime, Offset(0))]), now(13));
        assert!(state.is_untouched());
    }
}
