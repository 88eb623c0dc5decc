//! A break that was found: confirmed, made small, and written as a scenario.

use super::smaller::PLAYS;
use super::subject::{entries_of, file_of};
use super::*;
use crate::model::{Party, Story};
use crate::run::write_whole;
use crate::yaml::write;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Finding {
    pub kind: ViolationKind,
    /// What the smallest case breaks besides.
    pub also: Vec<ViolationKind>,
    /// The try that found it first, and how many have.
    pub first_try: u64,
    pub tries: u64,
    /// The seed with which the smallest case shows it.
    pub seed: u64,
    pub entries: usize,
    /// The smallest case showed it in so many of so many plays.
    pub came: u32,
    pub plays: u32,
    pub about: String,
    /// Why a run of the scenario would be inconclusive all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// The scenario's file; none if it could not be written.
    pub file: Option<PathBuf>,
    pub scenario: String,
}

impl Search<'_> {
    /// Counts a break that is known, or confirms and keeps one that is not.
    pub(super) fn found(
        &self,
        state: &mut State,
        number: u64,
        case: &Node,
        shown: &Shown,
        until: Option<Instant>,
    ) {
        let (kinds, is_certain) = (&shown.kinds, shown.doubt.is_none());
        let findings = &mut state.explored.findings;
        for finding in findings.iter_mut() {
            finding.tries += u64::from(kinds.contains(&finding.kind));
        }
        let is_known = |kind: &ViolationKind| {
            let mut all = findings.iter();
            // One that a run would doubt gives way to one that it would not.
            let counts = |it: &Finding| it.doubt.is_none() || !is_certain;
            all.any(|it| counts(it) && (it.kind == *kind || it.also.contains(kind)))
        };
        let new = kinds.iter().filter(|kind| !is_known(kind));
        // Whoever breaks the lock's word says more than what becomes of the writes.
        let Some(kind) = new.min_by_key(|kind| (kind.party() != Party::Lock, **kind)) else {
            return;
        };
        let Some(mut finding) = self.confirm(number, case, *kind, until) else {
            return;
        };
        if finding.doubt.is_none() {
            let mut doubted = findings.extract_if(.., |it| it.doubt.is_some() && it.kind == *kind);
            if let Some(before) = doubted.next() {
                finding.tries = before.tries;
                // It is worth nothing any more, and does no harm where it stays.
                let _or_it_stays = before.file.map(std::fs::remove_file);
            }
        }
        let path = state.folder.join(format!("{}.yml", name_of(*kind, number)));
        match write_whole(&path, finding.scenario.as_bytes()) {
            Ok(()) => finding.file = Some(path),
            Err(error) => self.lab.progress.say(&error.to_string()),
        }
        self.lab.progress.say(&finding.line());
        state.explored.findings.push(finding);
    }

    /// Makes the case of a try small, as far as there is time. Returns None at an interrupt.
    fn confirm(
        &self,
        number: u64,
        case: &Node,
        kind: ViolationKind,
        until: Option<Instant>,
    ) -> Option<Finding> {
        let own = 1 + number % 8;
        let (small, came) = self.smallest(number, case, kind, until)?;
        if self.lab.interrupt.is_cancelled() && !self.lab.runtime.simulates() {
            return None;
        }
        let mut finding = Finding {
            kind,
            also: Vec::new(),
            first_try: number,
            tries: 1,
            seed: own,
            entries: entries_of(&small),
            came,
            plays: PLAYS,
            about: kind.means().to_owned(),
            doubt: None,
            file: None,
            scenario: String::new(),
        };
        let (shown, stories) = self.told(&small, own).unzip();
        let mut all_kinds = vec![kind];
        if let Some(shown) = shown {
            finding.doubt = shown.doubt;
            finding.also = shown.kinds;
            finding.also.retain(|other| *other != kind);
            all_kinds.extend(shown.all_kinds);
        }
        let stories = stories.unwrap_or_default();
        if let Some(story) = stories.iter().find(|story| story.kinds.contains(&kind)) {
            finding.about = hypothesis(kind, story);
        }
        all_kinds.sort();
        all_kinds.dedup();
        finding.scenario = self.text(&finding, &small, &all_kinds);
        Some(finding)
    }

    fn told(&self, case: &Node, seed: u64) -> Option<(Shown, Vec<Story>)> {
        let scenario = self.valid(case).ok()?;
        let once = self.play(&scenario, seed).ok()?;
        Some((Shown::of(&once), once.judgement.stories))
    }

    /// Returns the file of a finding, which expects all that its case breaks.
    fn text(&self, finding: &Finding, case: &Node, kinds: &[ViolationKind]) -> String {
        let options = self.lab.options;
        let (seed, number) = (options.seed, finding.first_try);
        let about = self.lab.runtime.about();
        let runtime = about.get("runtime").map_or("sim", String::as_str);
        let mutant = options.mutant.as_ref();
        let mutant = mutant.map_or(String::new(), |name| format!(" --mutant {name}"));
        let own_seed = match finding.seed {
            1 => String::new(),
            seed => format!(" --seed {seed}"),
        };
        let doubt = finding.doubt.as_ref();
        let doubt = doubt.map_or(String::new(), |it| {
            format!("# A run is inconclusive: {it}\n")
        });
        let name = name_of(finding.kind, number);
        let file = file_of(&name, &finding.about, case, kinds);
        format!(
            "# Found by fencepost explore --seed {seed}, try {number}; it came in {}.\n# fencepost run {name}.yml --runtime {runtime}{own_seed}{mutant}\n{doubt}{}",
            finding.rate(),
            write(&file)
        )
    }
}

impl Finding {
    pub fn rate(&self) -> String {
        let rate = format!("{} of {} plays", self.came, self.plays);
        match self.came {
            0 => format!("{rate}: it did not come again"),
            _ => rate,
        }
    }

    pub fn line(&self) -> String {
        let (kind, number, entries) = (self.kind, self.first_try, self.entries);
        format!(
            "{kind} in try {number}: {entries} timeline entries, came in {}",
            self.rate()
        )
    }
}

fn name_of(kind: ViolationKind, number: u64) -> String {
    format!("{}-{number}", kind.name().replace('_', "-"))
}

/// Says what happens, in the order of the story.
fn hypothesis(kind: ViolationKind, story: &Story) -> String {
    let steps = story.steps.iter().map(|step| step.symbolic.as_str());
    let steps: Vec<&str> = steps.collect();
    format!(
        "{} It happens like this: {}.",
        kind.means(),
        steps.join("; ")
    )
}
