//! The outcomes of many runs: how often each case had which outcome, and what that predicts for
//! later runs.

use super::*;
use serde::{Serialize, Serializer};

/// 95 % of a normal distribution lie within this many standard deviations.
const Z_95: f64 = 1.959_964;

/// How often each outcome occurred, case by case.
#[derive(Default)]
pub struct Tally {
    /// By scenario and case.
    cases: BTreeMap<(String, String), Outcomes>,
}

type Outcomes = BTreeMap<Outcome, u32>;

/// Serializes as a list of cases.
impl Serialize for Tally {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cases = self.cases.iter().map(|((scenario, case), outcomes)| {
            json!({ "scenario": scenario, "case": case, "outcomes": outcomes })
        });
        serializer.collect_seq(cases)
    }
}

impl Tally {
    pub fn add(&mut self, run: &RunRecord) {
        for case in &run.cases {
            self.count(&run.scenario, &case.name, case.verdict.outcome);
        }
    }

    fn count(&mut self, scenario: &str, case: &str, outcome: Outcome) {
        let name = (scenario.to_owned(), case.to_owned());
        let outcomes = self.cases.entry(name).or_default();
        *outcomes.entry(outcome).or_default() += 1;
    }

    pub fn worst(&self) -> Outcome {
        let all = self.cases.values().flat_map(|outcomes| outcomes.keys());
        all.min().copied().unwrap_or(Outcome::Inconclusive)
    }

    /// Returns a line for each case, and at the end again those with varying outcomes.
    pub fn table(&self) -> String {
        let title = |(scenario, case): &(String, String)| {
            let name = format!("{scenario} {case}:");
            shown::line(&name).into_owned()
        };
        let widths = self.cases.keys().map(|name| title(name).chars().count());
        let width = widths.max().unwrap_or(0);
        let mut text = String::new();
        for (name, outcomes) in &self.cases {
            let shares = shares(outcomes);
            let _ = writeln!(text, "{:<width$} {shares}", title(name));
        }
        for (name, outcomes) in self.cases.iter().filter(|(_, all)| all.len() > 1) {
            let counts = best_first(outcomes).map(|(outcome, n)| format!("{outcome} {n}"));
            let _ = writeln!(text, "flaps: {} {}", title(name), joined(counts, ", "));
        }
        text
    }
}

fn shares(outcomes: &Outcomes) -> String {
    let total = outcomes.values().sum();
    let shares = best_first(outcomes).map(|(outcome, n)| {
        let (low, high) = wilson_95(n, total);
        let (low, high) = (percent(low), percent(high));
        format!("{outcome} {n} of {total} (95 %: {low}..{high} %)")
    });
    joined(shares, ", ")
}

fn best_first(outcomes: &Outcomes) -> impl Iterator<Item = (Outcome, u32)> {
    outcomes.iter().rev().map(|(outcome, n)| (*outcome, *n))
}

/// Returns the Wilson score interval of a share. It does not collapse if the share is 0 or 1,
/// which is usual for a case that behaves.
fn wilson_95(hits: u32, total: u32) -> (f64, f64) {
    let (hits, total) = (f64::from(hits), f64::from(total));
    let z2 = Z_95 * Z_95;
    let center = hits + z2 / 2.0;
    let reach = Z_95 * (hits * (total - hits) / total + z2 / 4.0).sqrt();
    let bound = |sum: f64| (sum / (total + z2)).clamp(0.0, 1.0);
    (bound(center - reach), bound(center + reach))
}

/// Returns a percentage with one decimal, unless that is 0.
fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(hits: u32, total: u32) -> String {
        let (low, high) = wilson_95(hits, total);
        format!("{}..{}", percent(low), percent(high))
    }

    #[test]
    fn intervals_are_those_of_the_books() {
        assert_eq!(interval(20, 20), "83.9..100");
        assert_eq!(interval(100, 100), "96.3..100");
        assert_eq!(interval(0, 20), "0..16.1");
        assert_eq!(interval(19, 20), "76.4..99.1");
        assert_eq!(interval(5, 10), "23.7..76.3");
        assert_eq!(interval(1, 1), "20.7..100");
    }

    #[test]
    fn each_case_has_a_line_and_those_that_flap_have_one_more() {
        let mut tally = Tally::default();
        for _ in 0..19 {
            tally.count("storm", "redis", Outcome::AsExpected);
            tally.count("healthy", "on-redlock", Outcome::AsExpected);
        }
        tally.count("storm", "redis", Outcome::Inconclusive);
        tally.count("healthy", "on-redlock", Outcome::AsExpected);
        assert_eq!(
            tally.table(),
            "healthy on-redlock: as expected 20 of 20 (95 %: 83.9..100 %)\n\
             storm redis:        as expected 19 of 20 (95 %: 76.4..99.1 %), \
             inconclusive 1 of 20 (95 %: 0.9..23.6 %)\n\
             flaps: storm redis: as expected 19, inconclusive 1\n"
        );
    }

    #[test]
    fn one_bad_run_among_many_good_ones_is_the_worst() {
        let mut tally = Tally::default();
        assert_eq!(tally.worst(), Outcome::Inconclusive, "nothing is shown yet");
        tally.count("a", "x", Outcome::AsExpected);
        assert_eq!(tally.worst(), Outcome::AsExpected);
        tally.count("b", "x", Outcome::NotAsExpected);
        tally.count("c", "x", Outcome::Inconclusive);
        assert_eq!(tally.worst(), Outcome::NotAsExpected);
    }
}
