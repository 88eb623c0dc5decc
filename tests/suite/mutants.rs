//! The defects of a lock that can be switched on, each beside a lock that is
//! sound: the same steps keep a promise there and break it here. Where an
//! order of events matters, the steps force it.

mod etcd;
mod redis;
mod redlock;

use crate::support::project;
use std::fs;

#[test]
fn the_table_names_every_mutant_and_a_test_that_catches_it() {
    let table = fs::read_to_string(project().join("docs/mutants.md")).expect("a page");
    for mutant in fencepost::run::mutants() {
        let row = format!("| `{mutant}` |");
        let row = table.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("docs/mutants.md has no row for {mutant}"));
        let tests = tests_in(row);
        assert!(!tests.is_empty(), "nothing catches {mutant}");
        for (test, file) in tests {
            let code = fs::read_to_string(project().join("docs").join(file));
            let code = code.unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(code.contains(&format!("fn {test}()")), "{file}: {test}");
        }
    }
}

/// Tests are named as links: [`name`](file).
fn tests_in(row: &str) -> Vec<(&str, &str)> {
    let links = row.split("[`").skip(1);
    let parts = links.filter_map(|link| {
        let (test, rest) = link.split_once("`](")?;
        let (file, _) = rest.split_once(')')?;
        Some((test, file))
    });
    parts.filter(|(_, file)| file.ends_with(".rs")).collect()
}
