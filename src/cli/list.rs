use super::exit::{Exit, Failure};
use super::home::Home;

/// Each scenario with its hypothesis; one that is invalid is named, not hidden.
pub fn execute(home: &Home) -> Result<Exit, Failure> {
    let (library, around) = (home.library(), home.surroundings()?);
    let mut exit = Exit::AsExpected;
    for name in library.names()? {
        match library.load(&name, &around) {
            Ok(scenario) => {
                let cases: Vec<&str> = scenario.cases.iter().map(|c| c.name.as_str()).collect();
                println!("{name}  ({})", cases.join(", "));
                println!("  {}", scenario.about);
            }
            Err(error) => {
                println!("{name}  invalid");
                eprintln!("{error}");
                exit = Exit::Usage;
            }
        }
    }
    Ok(exit)
}
