//! What issue 14 asks for, beside what was seen.

use std::time::Duration;

/// Twice the rows may take a little more than twice the time: they no longer
/// fit the caches that half of them did.
const TIME_PER_DOUBLE: f64 = 2.6;

#[derive(Default)]
pub struct Targets {
    lines: Vec<String>,
}

impl Targets {
    /// In millions of rows a second.
    pub fn rate(&mut self, what: &str, least: f64, seen: f64) {
        let target = format!("at least {least:.0} M rows/s");
        self.line(what, &target, &format!("{seen:.2} M"), seen >= least);
    }

    pub fn at_most(&mut self, what: &str, most: f64, seen: f64, unit: &str) {
        let target = format!("at most {most:.1} {unit}");
        self.line(what, &target, &format!("{seen:.2} {unit}"), seen <= most);
    }

    /// Each time is that of twice as many rows as the one before.
    pub fn linear(&mut self, what: &str, times: &[Duration]) {
        let pairs = times.iter().zip(&times[1..]);
        let growth = pairs.map(|(half, whole)| whole.as_secs_f64() / half.as_secs_f64());
        let worst = growth.fold(0.0, f64::max);
        let what = format!("{what}: time of twice the rows");
        self.at_most(&what, TIME_PER_DOUBLE, worst, "x");
    }

    fn line(&mut self, what: &str, target: &str, seen: &str, is_met: bool) {
        let verdict = if is_met { "" } else { "MISSED" };
        let line = format!("  {what:<50} {target:<22} {seen:>10}  {verdict}");
        self.lines.push(line.trim_end().to_owned());
    }

    pub fn print(&self) {
        println!();
        println!("Targets, at the worst of all sizes:");
        println!();
        for line in &self.lines {
            println!("{line}");
        }
    }
}
