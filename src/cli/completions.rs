use super::*;
use clap::builder::PossibleValuesParser;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Print a script that completes this program's commands, options and scenarios
///
/// bash: fencepost completions bash > ~/.local/share/bash-completion/completions/fencepost
/// zsh:  fencepost completions zsh > DIR/_fencepost, where DIR is in your $fpath
/// fish: fencepost completions fish > ~/.config/fish/completions/fencepost.fish
///
/// Scenarios are completed by the names that there are when the script is made.
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub struct Completions {
    shell: Shell,
}

impl Completions {
    pub fn execute(self, program: Command, home: Option<Home>) -> Result<Exit, Failure> {
        let names = home.and_then(|home| home.library().names().ok());
        // A file can have any name, and the shell executes the script.
        let names = names.into_iter().flatten().flat_map(Name::new);
        let mut program = with_scenarios(program, &names.collect::<Vec<_>>());
        let name = program.get_name().to_owned();
        let mut script = Vec::new();
        generate(self.shell, &mut program, name, &mut script);
        output::print(String::from_utf8_lossy(&script))?;
        Ok(Exit::AsExpected)
    }
}

/// Adds the names of the scenarios to the commands that take scenarios.
fn with_scenarios(program: Command, names: &[Name]) -> Command {
    if names.is_empty() {
        return program;
    }
    let known = |name: &'static str, argument: &'static str, program: Command| {
        let names = PossibleValuesParser::new(names.iter().map(Name::to_string));
        program.mut_subcommand(name, |command| {
            command.mut_arg(argument, |argument| argument.value_parser(names))
        })
    };
    known("plan", "scenario", known("run", "scenarios", program))
}
