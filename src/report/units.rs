//! Numbers with units, short enough for a table. A measurement's name ends in its unit, so the
//! name alone determines the format.

/// The unit of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// A duration, with the number of microseconds in one unit.
    Time(f64),
    PerSecond,
    Bytes(f64),
    /// A number from 0 to 1.
    Share,
    Count,
}

impl Unit {
    /// Returns the unit from the end of the name, as in `acquire.p99_us`.
    pub fn of(name: &str) -> Unit {
        const ENDINGS: [(&str, Unit); 20] = [
            ("_per_s", Unit::PerSecond),
            ("_per_s_max", Unit::PerSecond),
            ("_per_s_mean", Unit::PerSecond),
            ("_seconds", Unit::Time(1e6)),
            ("bytes_per_key", Unit::Bytes(1.0)),
            ("_us", Unit::Time(1.0)),
            ("_ms", Unit::Time(1e3)),
            ("_ns", Unit::Time(1e-3)),
            ("_s", Unit::Time(1e6)),
            ("_bytes", Unit::Bytes(1.0)),
            ("_mib", Unit::Bytes(1_048_576.0)),
            ("used_memory", Unit::Bytes(1.0)),
            ("_memory", Unit::Bytes(1.0)),
            ("_rss", Unit::Bytes(1.0)),
            ("db_size", Unit::Bytes(1.0)),
            ("_in_use", Unit::Bytes(1.0)),
            ("_share", Unit::Share),
            ("_ratio", Unit::Share),
            ("out_of_order", Unit::Share),
            ("jain", Unit::Share),
        ];
        let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        found.map_or(Unit::Count, |(_, unit)| *unit)
    }

    pub fn write(self, value: f64) -> String {
        match self {
            Unit::Time(micros) => time(value * micros),
            Unit::PerSecond => format!("{}/s", figure(value)),
            Unit::Bytes(bytes) => size(value * bytes),
            Unit::Share => format!("{value:.3}"),
            Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
            Unit::Count => figure(value),
        }
    }
}

/// Formats microseconds in the unit that needs the fewest digits.
pub fn time(micros: f64) -> String {
    match micros.abs() {
        0.0 => "0".to_owned(),
        us if us < 999.5 => format!("{}us", figure(micros)),
        us if us < 999_500.0 => format!("{}ms", figure(micros / 1e3)),
        _ => format!("{}s", figure(micros / 1e6)),
    }
}

pub fn size(bytes: f64) -> String {
    let kib = bytes / 1024.0;
    match kib.abs() {
        size if size < 1.0 => format!("{bytes:.0}B"),
        size if size < 1_000.0 => format!("{}KiB", figure(kib)),
        size if size < 1_024_000.0 => format!("{}MiB", figure(kib / 1024.0)),
        _ => format!("{}GiB", figure(kib / 1_048_576.0)),
    }
}

pub fn percent(share: f64) -> String {
    format!("{}%", figure(share * 100.0))
}

/// Formats a number with about three significant digits.
pub fn figure(value: f64) -> String {
    let text = match value.abs() {
        0.0 => return "0".to_owned(),
        size if size >= 99.95 => return format!("{value:.0}"),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.01 => format!("{value:.2}"),
        _ => return format!("{value:.1e}"),
    };
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_the_unit_that_suits_them() {
        let written = [0.0, 7.0, 850.0, 999.7, 12_340.0, 999_700.0, 61_000_000.0].map(time);
        assert_eq!(written, ["0", "7us", "850us", "1ms", "12.3ms", "1s", "61s"]);
    }

    #[test]
    fn a_name_says_in_what_its_value_is_written() {
        let cases = [
            ("blocked_ms", 27.0, "27ms"),
            ("acquire.p99_us", 1_500.0, "1.5ms"),
            ("throughput_per_s", 199.96, "200/s"),
            ("figures.peak_used_memory_bytes", 3e9, "2.79GiB"),
            ("used_memory_rss", 1024.0, "1KiB"),
            ("generator.peak_memory_mib", 64.0, "64MiB"),
            ("generator.cpu_share", 0.25, "0.250"),
            ("took_s", 2.0, "2s"),
            ("figures.dead_seconds", 0.5, "500ms"),
            ("expired_per_s_max", 1_500.0, "1500/s"),
            ("counters_bytes_per_key", 98.2, "98B"),
            ("acquisitions", 1_234_567.0, "1234567"),
            ("mean_overtakes", 0.333, "0.33"),
        ];
        for (name, value, written) in cases {
            assert_eq!(Unit::of(name).write(value), written, "{name}");
        }
    }

    #[test]
    fn what_is_not_nothing_is_not_written_as_nothing() {
        assert_eq!(figure(0.004), "4.0e-3");
        assert_eq!(size(12.0), "12B");
    }
}
