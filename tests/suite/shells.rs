//! Completions and the manual page know every command.

use crate::support::*;
use std::io::Write;
use std::process::{Command, Stdio};

/// The commands that `--help` shows.
fn commands() -> Vec<String> {
    let help = offline(&["--help"]).expect_code(0).stdout;
    let list = help
        .split("Commands:\n")
        .nth(1)
        .expect("a list of commands");
    let lines = list.lines().take_while(|line| line.starts_with("  "));
    let lines = lines.filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    assert!(names.len() > 10, "{help}");
    names
}

/// What a program says to this on its stdin, on stdout and stderr; None where there is no such program.
fn fed(program: &str, arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        skip(&format!("there is no {program}"));
        return None;
    };
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("it can be awaited");
    writer
        .join()
        .expect("a thread")
        .expect("it reads all of it");
    let said = [output.stdout, output.stderr].concat();
    Some((
        output.status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

#[test]
fn every_shell_has_a_script_with_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = offline(&["completions", shell]).expect_code(0).stdout;
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
    }
    offline(&["completions", "abacus"]).expect_code(64);
}

#[test]
fn bash_completes_commands_options_and_scenarios() {
    let script = offline(&["completions", "bash"]).expect_code(0).stdout;
    for (typed, completed) in [
        ("fencepost ki", ""),
        ("fencepost val", "validate"),
        ("fencepost run pause-gt-ttl-e", "pause-gt-ttl-etcd"),
        ("fencepost run --rep", "--repeat"),
        ("fencepost list --format js", "json"),
    ] {
        let words: Vec<&str> = typed.split(' ').collect();
        let last = words.len() - 1;
        let asks = format!(
            "{script}\nCOMP_WORDS=({typed})\nCOMP_CWORD={last}\n\
             _fencepost fencepost '{}' '{}'\necho \"${{COMPREPLY[*]}}\"\n",
            words[last],
            words[last - 1],
        );
        let Some((fine, said)) = fed("bash", &["--norc", "-s"], &asks) else {
            return;
        };
        assert!(fine, "{said}");
        assert_eq!(said.trim(), completed, "{typed}");
    }
}

#[test]
fn completions_can_be_made_anywhere() {
    let elsewhere = tempfile::tempdir().expect("a temporary folder");
    let mut command = command(["completions", "bash"]);
    command.current_dir(elsewhere.path());
    let script = start(command).wait().expect_code(0).stdout;
    assert!(script.contains(SCENARIO), "what is built in is named");
}

/// The script is code, and bash expands the words that it offers.
#[test]
fn no_file_name_becomes_shell_code() {
    let home = Home::new();
    let names = [
        "$(touch pwned)",
        "`touch pwned`",
        "a;touch pwned",
        "a'b\"c",
        "a b",
    ];
    for name in names {
        home.write(&format!("scenarios/{name}.yml"), "");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let asked = ["completions", shell, "--home", home.path()];
        let script = offline(&asked).expect_code(0).stdout;
        assert!(!script.contains("touch pwned"), "{shell}");
        assert!(!script.contains("a'b"), "{shell}");
    }
    let script = offline(&["completions", "bash", "--home", home.path()]);
    script.expect_code(0).expect_said(&[SCENARIO]);
}

#[test]
fn the_manual_page_names_every_command_and_is_set_without_a_warning() {
    let page = offline(&["man"]).expect_code(0).stdout;
    for command in commands() {
        let section = format!(".SH \"FENCEPOST {}\"", command.to_uppercase());
        assert!(page.contains(&section), "no section about {command}");
    }
    assert!(page.contains(".SH \"FENCEPOST CLOCK SET\""));
    assert!(
        !page.contains("FENCEPOST PROBE"),
        "what is hidden stays hidden"
    );
    let Some((fine, said)) = fed("groff", &["-ww", "-man", "-Tutf8", "-z"], &page) else {
        return;
    };
    assert!(fine && said.is_empty(), "{said}");
}
