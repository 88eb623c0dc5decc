use super::*;
use crate::cluster::Topology;
use crate::scenario::{Settings, Surroundings, load_file};
use crate::yaml::{self, Node};
use bounded_io::files::{self, Links};

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
        let files = if self.files.is_empty() {
            home.toxiproxy()?;
            let library = home.library();
            let names = library.names()?;
            let files = names.iter().map(|name| library.file(name));
            files.collect::<Result<_, _>>()?
        } else {
            self.files
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
type Checked<'a> = (&'a PathBuf, Result<&'static str, Failure>);

fn print(checked: &[Checked<'_>]) -> Result<(), Failure> {
    for (file, checked) in checked {
        match checked {
            Ok(what) => output::line(format_args!("{}: ok (a {what})", file.display()))?,
            Err(failure) => output::complain(failure),
        }
    }
    Ok(())
}

fn told(checked: &[Checked<'_>]) -> Value {
    let files = checked.iter().map(|(file, checked)| match checked {
        Ok(what) => json!({ "file": file, "is": what }),
        Err(failure) => {
            let mut told = failure.document();
            told["file"] = json!(file);
            told
        }
    });
    json!({ "files": files.collect::<Vec<Value>>() })
}

fn check(file: &Path, around: &Surroundings) -> Result<&'static str, Failure> {
    if is_topology(file) {
        Topology::load(file)?;
        return Ok("topology");
    }
    load_file(file, &Settings::default(), around)?;
    Ok("scenario")
}

/// Returns whether the file is a Compose file: those have `services` and no `cases`.
fn is_topology(file: &Path) -> bool {
    let has = |node: &Node, field: &str| matches!(&node.value, yaml::Value::Map(entries) if entries.iter().any(|(key, _)| key.value == field));
    let text = files::read_text(file, Links::Follow, files::BY_HAND).unwrap_or_default();
    let node = yaml::parse(file, &text);
    node.is_ok_and(|node| has(&node, "services") && !has(&node, "cases"))
}
