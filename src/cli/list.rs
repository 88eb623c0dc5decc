use super::exit::{Exit, Failure};
use super::home::Home;
use super::output;

/// Each scenario with its hypothesis; one that is invalid is named, not hidden.
pub fn execute(home: &Home) -> Result<Exit, Failure> {
    let (library, around) = (home.library(), home.surroundings()?);
    let mut exit = Exit::AsExpected;
    for name in library.names()? {
        match library.load(&name, &around) {
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
