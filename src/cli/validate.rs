use super::*;
use crate::builtin::Location;
use crate::cluster::Topology;
use crate::scenario::{Settings, Surroundings, load_file};
use crate::yaml::{self, Node};
use bounded_io::files::Links;

#[derive(Args)]
pub struct Validate {
    /// Scenario or compose files [default: every scenario, every topology and the proxies]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Validate {
    /// Reports every error of every file before it fails.
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let around = home.surroundings()?;
        let files: Vec<Location> = if self.files.is_empty() {
            home.toxiproxy()?;
            let library = home.library();
            let names = library.names()?;
            let files = names.iter().map(|name| library.file(name));
            files.collect::<Result<_, _>>()?
        } else {
            self.files.iter().map(Location::from).collect()
        };
        let checked: Vec<_> = files
            .iter()
            .map(|file| (file, check(file, &around)))
            .collect();
        if self.printed.is_json() {
            document(&told(&checked))?
        } else {
            print(&checked)?
        }
        let all_good = checked.iter().all(|(_, checked)| checked.is_ok());
        Ok(Exit::expected_if(all_good, Exit::Usage))
    }
}

/// A file with its kind, or with its errors.
type Checked<'a> = (&'a Location, Result<&'static str, Failure>);

fn print(checked: &[Checked<'_>]) -> Result<(), Failure> {
    for (file, checked) in checked {
        match checked {
            Ok(what) => output::line(format_args!("{file}: ok (a {what})"))?,
            Err(failure) => output::complain(failure),
        }
    }
    Ok(())
}

fn told(checked: &[Checked<'_>]) -> Value {
    let files = checked.iter().map(|(file, checked)| match checked {
        Ok(what) => json!({ "file": file.shown(), "is": what }),
        Err(failure) => {
            let mut told = failure.document();
            told["file"] = json!(file.shown());
            told
        }
    });
    json!({ "files": files.collect::<Vec<Value>>() })
}

fn check(file: &Location, around: &Surroundings) -> Result<&'static str, Failure> {
    if is_topology(file) {
        Topology::load(file.clone())?;
        return Ok("topology");
    }
    load_file(file, &Settings::default(), around)?;
    Ok("scenario")
}

/// Returns whether the file is a Compose file: those have `services` and no `cases`.
fn is_topology(file: &Location) -> bool {
    let has = |node: &Node, field: &str| matches!(&node.value, yaml::Value::Map(entries) if entries.iter().any(|(key, _)| key.value == field));
    let text = file.text(Links::Follow).unwrap_or_default();
    let node = yaml::parse(&file.shown(), &text);
    node.is_ok_and(|node| has(&node, "services") && !has(&node, "cases"))
}
