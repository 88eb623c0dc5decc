//! What one scenario came to, on a screen: short, as wide as it is, in colour where that is wanted.

use crate::support::*;

/// A recorded run judged again, with these variables set.
fn checked(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let run = project().join("tests/results/pause-gt-ttl/settings");
    let run = run.to_str().expect("a plain path");
    let mut command = command([&["check", run], arguments].concat());
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    start(command).wait().expect_code(0).stdout
}

#[test]
fn a_screen_is_short_and_its_lines_fit() {
    let text = checked(&[], &[("COLUMNS", "50")]);
    assert!(text.lines().count() < 30, "{text}");
    // A path stays in one piece.
    let mut lines = text.lines().filter(|line| !line.contains("/tests/"));
    let long = lines.find(|line| line.chars().count() > 50);
    assert_eq!(long, None, "{text}");
    assert!(text.contains("shortened: "), "{text}");
    let all = checked(&["--all"], &[("COLUMNS", "50")]);
    assert!(!all.contains("shortened: "), "{all}");
    assert!(all.lines().count() > text.lines().count(), "{all}");
}

#[test]
fn colours_come_where_they_are_wanted() {
    let painted = |variables: &[(&str, &str)]| checked(&[], variables).contains('\u{1b}');
    assert!(!painted(&[]), "this is no terminal");
    assert!(painted(&[("CLICOLOR_FORCE", "1")]));
    assert!(!painted(&[("CLICOLOR_FORCE", "0")]));
    assert!(!painted(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}
