//! What many trials came to.

use super::defect::Defect;
use super::flaw::{Flaw, Spoiled};
use super::trial::Trial;
use std::collections::BTreeMap;
use std::fmt;

/// So many mistakes are kept in full; there may be millions.
const KEPT: usize = 3;

#[derive(Default)]
pub struct Tally {
    pub histories: u64,
    pub events: u64,
    pub planted: BTreeMap<Defect, u64>,
    pub shown: BTreeMap<Defect, u64>,
    pub spoiled: BTreeMap<Flaw, u64>,
    pub excused: u64,
    /// In short, how often, and one seed; the first few also in full.
    pub mistakes: BTreeMap<String, (u64, u64)>,
    reports: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, trial: Trial) {
        self.histories += 1;
        self.events += trial.played.record.history.len() as u64;
        let settings = &trial.played.settings;
        if let Some(defect) = settings.defect
            && !trial.played.truth.planted.is_empty()
        {
            *self.planted.entry(defect).or_default() += 1;
        }
        if let Some(defect) = trial.shows {
            *self.shown.entry(defect).or_default() += 1;
        }
        if let Some((flaw, spoiled)) = trial.spoiled
            && spoiled != Spoiled::Not
        {
            *self.spoiled.entry(flaw).or_default() += 1;
        }
        self.excused += u64::from(trial.excused);
        if !trial.mistakes.is_empty() && self.reports.len() < KEPT {
            self.reports.push(trial.report());
        }
        for mistake in &trial.mistakes {
            let about = (settings.defect, trial.spoiled, settings.trouble);
            let short = format!("{about:?}: {mistake}");
            let (count, _) = self.mistakes.entry(short).or_insert((0, settings.seed));
            *count += 1;
        }
    }

    pub fn and(mut self, other: Tally) -> Tally {
        self.histories += other.histories;
        self.events += other.events;
        self.excused += other.excused;
        add_up(&mut self.planted, other.planted);
        add_up(&mut self.shown, other.shown);
        add_up(&mut self.spoiled, other.spoiled);
        for (mistake, (count, seed)) in other.mistakes {
            self.mistakes.entry(mistake).or_insert((0, seed)).0 += count;
        }
        self.reports.extend(other.reports);
        self
    }

    /// The kinds of mistakes, and the first few in full.
    pub fn first_mistakes(&self) -> String {
        let kinds = self.mistakes.iter();
        let kinds =
            kinds.map(|(mistake, (count, seed))| format!("{count} x, seed {seed}: {mistake}"));
        let kinds: Vec<String> = kinds.collect();
        let reports = self.reports.iter().take(KEPT);
        let reports: Vec<&str> = reports.map(String::as_str).collect();
        format!("{}\n\n{}", kinds.join("\n"), reports.join("\n\n"))
    }
}

fn add_up<K: Ord>(sums: &mut BTreeMap<K, u64>, more: BTreeMap<K, u64>) {
    for (key, count) in more {
        *sums.entry(key).or_default() += count;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} histories with {} events, {} with excused breaks",
            self.histories, self.events, self.excused
        )?;
        for (defect, planted) in &self.planted {
            let shown = self.shown.get(defect).copied().unwrap_or(0);
            writeln!(f, "{defect:?}: planted in {planted}, shown by {shown}")?;
        }
        for (flaw, spoiled) in &self.spoiled {
            writeln!(f, "{flaw:?}: {spoiled}")?;
        }
        Ok(())
    }
}
