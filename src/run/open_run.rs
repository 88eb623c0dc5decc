//! A run that still has cases to come, and its result so far.

use super::judge::judge_case;
use super::load::write_plots;
use super::*;
use crate::report::document::ResultDocument;
use crate::report::junit;

pub struct OpenRun {
    pub folder: RunFolder,
    pub record: RunRecord,
    /// The cases in the order of the file; they may end in another order.
    order: Vec<Name>,
    scenario: Scenario,
}

impl OpenRun {
    /// Begins a run. It has a result from the start, which names every case that has not been
    /// played: all that the record calls unfinished.
    pub fn begin(
        mut record: RunRecord,
        scenario: &Scenario,
        results: &Path,
    ) -> Result<OpenRun, FolderError> {
        let seed = record.seed.unwrap_or_default();
        let folder = RunFolder::create(results, &scenario.name, seed, &scenario.text)?;
        record.folder.clone_from(&folder.path);
        let run = OpenRun {
            folder,
            order: record.unfinished.clone(),
            record,
            scenario: scenario.clone(),
        };
        run.write()?;
        Ok(run)
    }

    /// Adds the result of a case. It is on disk before anything is drawn, and is complete without
    /// its plots and its page.
    pub fn add(&mut self, ran: CaseResult, progress: &dyn Progress) -> Result<(), FolderError> {
        let record = &mut self.record;
        record.unfinished.retain(|name| *name != ran.name);
        record.cases.push(ran);
        let place = |name: &Name| self.order.iter().position(|one| one == name);
        record.cases.sort_by_key(|case| place(&case.name));
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

    /// Ends the run with cases that nobody judged. Its page shows what they recorded until then;
    /// its result stays as it is.
    pub fn give_up(mut self, progress: &dyn Progress) {
        let not_over = self.record.unfinished.clone();
        for case in &self.scenario.cases {
            // A load may have millions of rows, and somebody who interrupts is in a hurry.
            if case.setup.load.is_some() || !not_over.contains(&case.name) {
                continue;
            }
            // A case that had not begun, or left nothing that can be read, stays unfinished.
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
            .write(RESULT, &to_json(&ResultDocument::of(&self.record)))?;
        let junit = junit::document(&[junit::suite(&self.record)]);
        self.folder.write(JUNIT, junit.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ContendStep, LoadRecord, Queued};
    use crate::report::made_up::case;
    use crate::run::REPORT;
    use crate::run::options::new_record;
    use crate::run::said_lines::{SaidLines, pause_scenario};

    fn ran(name: &str) -> CaseResult {
        let mut case = case(name, None);
        case.determined = true;
        case
    }

    fn begun(results: &Path, order: &[&str]) -> OpenRun {
        let scenario = pause_scenario();
        let record = RunRecord {
            unfinished: order.iter().map(|&name| name.into()).collect(),
            ..new_record(&scenario, 1)
        };
        OpenRun::begin(record, &scenario, results).unwrap()
    }

    fn written(run: &OpenRun) -> serde_json::Value {
        let text = std::fs::read(run.folder.path.join(RESULT)).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    #[test]
    fn cases_are_told_in_the_order_of_the_file_however_they_end() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["c", "a", "b"]);
        let said = SaidLines::default();
        let names = |run: &OpenRun| -> Vec<Name> {
            let cases = run.record.cases.iter();
            cases.map(|case| case.name.clone()).collect()
        };
        run.add(ran("b"), &said).unwrap();
        assert_eq!(run.record.unfinished, ["c", "a"]);
        run.add(ran("c"), &said).unwrap();
        assert_eq!(names(&run), ["c", "b"]);
        assert!(!run.is_over());
        assert_eq!(
            written(&run)["stable"]["unfinished"],
            serde_json::json!(["a"])
        );
        assert!(!run.folder.path.join(REPORT).exists());
        run.add(ran("a"), &said).unwrap();
        assert_eq!(names(&run), ["c", "a", "b"]);
        assert!(run.is_over());
        assert!(run.folder.path.join(REPORT).is_file());
        assert!(said.lines().is_empty());
    }

    #[test]
    fn a_verdict_stands_without_its_page() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["a"]);
        let said = SaidLines::default();
        std::fs::create_dir(run.folder.path.join(REPORT)).unwrap();
        run.add(ran("a"), &said).unwrap();
        assert_eq!(written(&run)["stable"]["unfinished"], serde_json::json!([]));
        let said = said.lines();
        assert!(said[0].starts_with("no page: "), "{said:?}");
    }

    #[test]
    fn a_run_that_is_given_up_leaves_a_page_with_what_there_is() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["unfenced", "fenced", "later"]);
        let said = SaidLines::default();
        run.add(ran("unfenced"), &said).unwrap();
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
        run.give_up(&said);
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
        assert!(said.lines().is_empty());
    }

    #[test]
    fn a_verdict_stands_without_its_plots() {
        let results = tempfile::tempdir().unwrap();
        let mut run = begun(results.path(), &["a"]);
        let said = SaidLines::default();
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
        run.add(load, &said).unwrap();
        assert_eq!(written(&run)["stable"]["unfinished"], serde_json::json!([]));
        let said = said.lines();
        assert!(said[0].starts_with("no plots: "), "{said:?}");
    }
}
