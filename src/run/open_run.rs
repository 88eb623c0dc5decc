//! A run some of whose cases are still to come, and its result so far.

use super::judge::judge_case;
use super::load::write_plots;
use super::page::{not_judged, write_page};
use super::{FolderError, JUNIT, RESULT, RunFolder, to_json};
use crate::model::{CaseResult, Name, RunRecord};
use crate::progress::Progress;
use crate::report::{json, junit};
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use std::path::Path;

pub struct OpenRun {
    pub folder: RunFolder,
    pub record: RunRecord,
    /// The cases as the file has them, in whatever order they end.
    order: Vec<Name>,
    scenario: Scenario,
}

/// What a run begins with.
pub struct Begun<'a> {
    pub scenario: &'a Scenario,
    /// The cases that are to run, as the file has them.
    pub order: Vec<Name>,
    pub seed: u64,
    pub mutant: Option<String>,
    pub results: &'a Path,
    pub environment: BTreeMap<String, String>,
}

impl OpenRun {
    /// From the start there is a result, and it says what has not been done.
    pub fn begin(begun: Begun<'_>) -> Result<OpenRun, FolderError> {
        let Begun {
            scenario,
            order,
            seed,
            mutant,
            results,
            environment,
        } = begun;
        let folder = RunFolder::create(results, &scenario.name, seed, &scenario.text)?;
        let run = OpenRun {
            record: RunRecord {
                scenario: scenario.name.clone(),
                scenario_hash: scenario.hash(),
                seed: Some(seed),
                settings: scenario.settings.words(),
                mutant,
                cases: Vec::new(),
                unfinished: order.clone(),
                environment,
                folder: folder.path.clone(),
            },
            folder,
            order,
            scenario: scenario.clone(),
        };
        run.write()?;
        Ok(run)
    }

    /// The result is on disk before anything is drawn, and stands without its plots
    /// and without its page.
    pub fn add(&mut self, ran: CaseResult, progress: &dyn Progress) -> Result<(), FolderError> {
        let RunRecord {
            cases, unfinished, ..
        } = &mut self.record;
        unfinished.retain(|name| *name != ran.name);
        cases.push(ran);
        cases.sort_by_key(|case| self.order.iter().position(|name| *name == case.name));
        self.write()?;
        if self.is_over() {
            if let Err(error) = write_plots(&self.record) {
                progress.say(&format!("no plots: {error}"));
            }
            if let Err(error) = write_page(&self.record, &self.scenario, None) {
                progress.say(&format!("no page: {error}"));
            }
        }
        Ok(())
    }

    /// The run ends here, with cases that nobody judged. Its page shows what these recorded
    /// until then; its result stays as it is.
    pub fn give_up(mut self, progress: &dyn Progress) {
        let not_over = self.record.unfinished.clone();
        for case in &self.scenario.cases {
            // Of a load there may be millions of rows, and whoever interrupts is in a hurry.
            if case.setup.load.is_some() || !not_over.contains(&case.name) {
                continue;
            }
            // What had not begun, or left nothing that can be read, did not finish.
            if let Ok(partial) = judge_case(case, &self.folder.case(&case.name)) {
                self.record.unfinished.retain(|name| *name != case.name);
                self.record.cases.push(partial);
            }
        }
        let ended_early = not_judged(&not_over);
        if let Err(error) = write_page(&self.record, &self.scenario, ended_early) {
            progress.say(&format!("no page: {error}"));
        }
    }

    pub fn is_over(&self) -> bool {
        self.record.unfinished.is_empty()
    }

    fn write(&self) -> Result<(), FolderError> {
        self.folder
            .write(RESULT, &to_json(&json::result(&self.record)))?;
        let junit = junit::document(&[junit::suite(&self.record)]);
        self.folder.write(JUNIT, junit.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        CaseNotes, CaseVerdict, ContendStep, Fence, Judgement, LoadRecord, Outcome, Queued,
    };
    use crate::run::REPORT;
    use crate::run::heard::Heard;
    use crate::scenario::{Settings, Surroundings};

    fn ran(name: &str) -> CaseResult {
        CaseResult {
            name: name.into(),
            determined: true,
            fence: Fence::On,
            judgement: Judgement::default(),
            verdict: CaseVerdict {
                outcome: Outcome::AsExpected,
                findings: Vec::new(),
                doubts: Vec::new(),
            },
            faults: Vec::new(),
            notes: CaseNotes::default(),
            started_ns: 0,
        }
    }

    fn begun(results: &Path, order: &[&str]) -> OpenRun {
        let folder = RunFolder::create(results, &"s".into(), 1, "text").unwrap();
        let order: Vec<Name> = order.iter().map(|&name| name.into()).collect();
        OpenRun {
            record: RunRecord {
                scenario: "s".into(),
                scenario_hash: String::new(),
                settings: Vec::new(),
                seed: Some(1),
                mutant: None,
                cases: Vec::new(),
                unfinished: order.clone(),
                environment: BTreeMap::new(),
                folder: folder.path.clone(),
            },
            folder,
            order,
            scenario: scenario(),
        }
    }

    fn scenario() -> Scenario {
        let text = include_str!("../../scenarios/pause-gt-ttl.yml");
        let around = Surroundings::Recorded;
        Scenario::parse(Path::new("s.yml"), text, &Settings::default(), &around).unwrap()
    }

    fn written(run: &OpenRun) -> serde_json::Value {
        let text = std::fs::read(run.folder.path.join(RESULT)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn cases_are_told_in_the_order_of_the_file_however_they_end() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["c", "a", "b"]);
        let heard = Heard::default();
        let names = |run: &OpenRun| -> Vec<Name> {
            let cases = run.record.cases.iter();
            cases.map(|case| case.name.clone()).collect()
        };
        run.add(ran("b"), &heard).unwrap();
        assert_eq!(run.record.unfinished, ["c", "a"]);
        run.add(ran("c"), &heard).unwrap();
        assert_eq!(names(&run), ["c", "b"]);
        assert!(!run.is_over());
        assert_eq!(
            written(&run)["stable"]["unfinished"],
            serde_json::json!(["a"])
        );
        assert!(!run.folder.path.join(REPORT).exists());
        run.add(ran("a"), &heard).unwrap();
        assert_eq!(names(&run), ["c", "a", "b"]);
        assert!(run.is_over());
        assert!(run.folder.path.join(REPORT).is_file());
        assert!(heard.lines().is_empty());
    }

    #[test]
    fn a_verdict_stands_without_its_page() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["a"]);
        let heard = Heard::default();
        std::fs::create_dir(run.folder.path.join(REPORT)).unwrap();
        run.add(ran("a"), &heard).unwrap();
        assert_eq!(written(&run)["stable"]["unfinished"], serde_json::json!([]));
        let said = heard.lines();
        assert!(said[0].starts_with("no page: "), "{said:?}");
    }

    #[test]
    fn a_run_that_is_given_up_leaves_a_page_with_what_there_is() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["unfenced", "fenced", "later"]);
        let heard = Heard::default();
        run.add(ran("unfenced"), &heard).unwrap();
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/pause-gt-ttl-fenced");
        let case = run.folder.case(&"fenced".into());
        std::fs::create_dir(&case).unwrap();
        for file in [
            "history.jsonl",
            "accepted.jsonl",
            "faults.jsonl",
            "locks.jsonl",
        ] {
            std::fs::copy(corpus.join(file), case.join(file)).unwrap();
        }
        let (page, result) = (run.folder.path.join(REPORT), written(&run));
        let folder = run.folder.clone();
        run.give_up(&heard);
        let text = std::fs::read_to_string(page).unwrap();
        for words in [
            "data-verdict=\"inconclusive\"",
            "the run ended before it had judged fenced, later",
            "the run ended before this case was collected",
            "later did not finish",
            "class=\"lanes-drawn\"",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        let after = std::fs::read(folder.path.join(RESULT)).unwrap();
        let after: serde_json::Value = serde_json::from_slice(&after).unwrap();
        assert_eq!(after, result, "the result stays as it was");
        assert!(heard.lines().is_empty());
    }

    #[test]
    fn a_verdict_stands_without_its_plots() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["a"]);
        let heard = Heard::default();
        let mut load = ran("a");
        let mut step = ContendStep {
            contenders: 5,
            ..ContendStep::default()
        };
        step.queue.push(Queued::default());
        step.acquire.count = 1;
        load.notes.load = Some(LoadRecord {
            steps: vec![step],
            ..LoadRecord::default()
        });
        std::fs::write(run.folder.path.join("plots"), "no folder").unwrap();
        run.add(load, &heard).unwrap();
        assert_eq!(written(&run)["stable"]["unfinished"], serde_json::json!([]));
        let said = heard.lines();
        assert!(said[0].starts_with("no plots: "), "{said:?}");
    }
}
