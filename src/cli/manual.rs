//! The manual page: every command and its options, from the same source as `--help`.

use super::*;
use clap::Command;
use clap_mangen::Man;
use std::io::{self, Write};

pub fn execute(program: Command) -> Result<Exit, Failure> {
    let page = page(program).map_err(Failure::harness)?;
    output::print(plain(&String::from_utf8_lossy(&page)))?;
    Ok(Exit::AsExpected)
}

fn page(program: Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let name = program.get_name().to_owned();
    let man = Man::new(program.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    for command in program.get_subcommands() {
        section(&mut page, &name, command)?;
    }
    Ok(page)
}

/// Replaces non-ASCII characters by their numbers: not every troff reads UTF-8.
fn plain(page: &str) -> String {
    let plain = page.chars().map(|c| {
        if c.is_ascii() {
            c.to_string()
        } else {
            format!("\\[u{:04X}]", u32::from(c))
        }
    });
    plain.collect()
}

/// Writes a command, and then the commands below it, as sections of the page.
fn section(page: &mut Vec<u8>, above: &str, command: &Command) -> io::Result<()> {
    if command.is_hide_set() {
        return Ok(());
    }
    let name = format!("{above} {}", command.get_name());
    writeln!(page, ".SH \"{}\"", name.to_uppercase())?;
    let man = Man::new(command.clone().bin_name(&name));
    let mut parts = Vec::new();
    man.render_description_section(&mut parts)?;
    man.render_synopsis_section(&mut parts)?;
    man.render_options_section(&mut parts)?;
    page.extend(below_a_section(&String::from_utf8_lossy(&parts)));
    for command in command.get_subcommands() {
        section(page, &name, command)?;
    }
    Ok(())
}

/// Turns the sections of a separate page into subsections. The description needs no title.
fn below_a_section(roff: &str) -> Vec<u8> {
    let lines = roff.lines().filter(|line| *line != ".SH DESCRIPTION");
    let lines = lines.map(|line| match line.strip_prefix(".SH ") {
        Some(title) => format!(".SS {title}\n"),
        None => format!("{line}\n"),
    });
    lines.collect::<String>().into_bytes()
}
