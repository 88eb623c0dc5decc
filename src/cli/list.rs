use super::exit::{Exit, Failure};
use super::home::Home;
use super::output;
use crate::scenario::{Scenario, Settings, page};
use clap::Args;

#[derive(Args)]
pub struct List {
    /// As the page docs/scenarios.md
    #[arg(long)]
    markdown: bool,
}

impl List {
    /// Each scenario with its hypothesis; one that is invalid is named, not hidden.
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let (library, around) = (home.library(), home.surroundings()?);
        let none = Settings::default();
        if self.markdown {
            let names = library.names()?;
            let all = names.iter().map(|name| library.load(name, &none, &around));
            let all: Vec<Scenario> = all.collect::<Result<_, _>>()?;
            output::print(page(&all))?;
            return Ok(Exit::AsExpected);
        }
        let mut exit = Exit::AsExpected;
        for name in library.names()? {
            match library.load(&name, &none, &around) {
                Ok(scenario) => {
                    let cases: Vec<&str> = scenario.cases.iter().map(|c| c.name.as_str()).collect();
                    output::line(format_args!("{name}  ({})", cases.join(", ")))?;
                    output::line(format_args!("  {}", scenario.about))?;
                }
                Err(error) => {
                    output::line(format_args!("{name}  invalid"))?;
                    output::complain(&error);
                    exit = Exit::Usage;
                }
            }
        }
        Ok(exit)
    }
}
