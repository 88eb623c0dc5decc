//! What we hand to the CI of others: it parses, and it names commands and options that exist.

use crate::support::{offline, project};
use std::fs;
use std::process::Command;

fn action() -> serde_yaml::Value {
    let text = fs::read_to_string(project().join("action.yml")).expect("action.yml");
    serde_yaml::from_str(&text).expect("YAML")
}

/// Returns the command lines of fencepost in a text, without what stands around them.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let begins = |line: &str| {
        let at = line.find("fencepost run ")?;
        let rest = &line[at + "fencepost ".len()..];
        let end = rest.find(['\'', '`']).unwrap_or(rest.len());
        Some(rest[..end].split_whitespace().map(str::to_owned).collect())
    };
    text.lines().filter_map(begins).collect()
}

#[test]
fn the_action_is_composite_and_each_of_its_scripts_is_sound() {
    let action = action();
    assert_eq!(action["runs"]["using"].as_str(), Some("composite"));
    let steps = action["runs"]["steps"].as_sequence().expect("steps");
    let scripts: Vec<&str> = steps
        .iter()
        .filter_map(|step| step["run"].as_str())
        .collect();
    assert!(scripts.len() >= 4, "{scripts:?}");
    for (step, script) in steps
        .iter()
        .filter_map(|step| Some((step, step["run"].as_str()?)))
    {
        assert_eq!(step["shell"].as_str(), Some("bash"), "{script}");
        let checked = Command::new("bash")
            .args(["-n", "-c", script])
            .output()
            .expect("bash");
        assert!(checked.status.success(), "{script}: {checked:?}");
        // An input in a script would be code of whoever sets it.
        assert!(!script.contains("${{"), "{script}");
    }
}

#[test]
fn every_recipe_names_commands_and_options_that_exist() {
    let action = fs::read_to_string(project().join("action.yml")).expect("action.yml");
    let recipes = fs::read_to_string(project().join("docs/ci.md")).expect("docs/ci.md");
    let lines = command_lines(&format!("{action}\n{recipes}"));
    assert!(lines.len() >= 3, "{lines:?}");
    for words in lines {
        let help = offline(&[&words[0], "--help"]).expect_code(0).stdout;
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option.as_str()), "{words:?}: {option}");
        }
    }
}
