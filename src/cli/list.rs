use super::*;
use crate::scenario::{Scenario, Settings, page};

#[derive(Args)]
pub struct List {
    /// Print the page docs/scenarios.md
    #[arg(long, conflicts_with = "format")]
    markdown: bool,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl List {
    /// Prints each scenario with its hypothesis. An invalid scenario is named, not hidden.
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let (library, around) = (home.library(), home.surroundings()?);
        let none = Settings::default();
        let names = library.names()?;
        let all = names.iter().map(|name| library.load(name, &none, &around));
        if self.markdown {
            let all: Vec<Scenario> = all.collect::<Result<_, _>>()?;
            output::print(page(&all))?;
            return Ok(Exit::AsExpected);
        }
        let all: Vec<Result<Scenario, Failure>> =
            all.map(|one| one.map_err(Failure::from)).collect();
        let all = || names.iter().zip(&all);
        if self.printed.is_json() {
            let all: Vec<Value> = all().map(|(name, one)| told(name, one)).collect();
            document(&json!({ "scenarios": all }))?;
        } else {
            all().try_for_each(|(name, one)| print(name, one))?
        }
        let all_good = all().all(|(_, one)| one.is_ok());
        Ok(Exit::expected_if(all_good, Exit::Usage))
    }
}

fn print(name: &str, one: &Result<Scenario, Failure>) -> Result<(), Failure> {
    match one {
        Ok(scenario) => {
            output::line(format_args!("{name}  ({})", cases(scenario).join(", ")))?;
            output::line(format_args!("  {}", scenario.about))
        }
        Err(failure) => {
            output::complain(failure);
            output::line(format_args!("{name}  invalid"))
        }
    }
}

fn told(name: &str, one: &Result<Scenario, Failure>) -> Value {
    let mut told = match one {
        Ok(scenario) => json!({
            "about": scenario.about,
            "kind": if scenario.is_load() { "load" } else { "faults" },
            "cases": cases(scenario),
        }),
        Err(failure) => failure.document(),
    };
    told["name"] = json!(name);
    told
}

fn cases(scenario: &Scenario) -> Vec<&str> {
    scenario
        .cases
        .iter()
        .map(|case| case.name.as_str())
        .collect()
}
