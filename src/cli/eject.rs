use super::*;
use crate::builtin::{self, Location};
use crate::yaml::suggestion;
use bounded_io::files::{self, FOR_ALL};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;

/// Copy a built-in scenario or topology out, to edit it
///
/// The copy is in ./fencepost/ (or --home DIR), and from then on it counts in the place of the
/// built-in one. A topology still uses the built-in recipes of its images; eject those by their
/// folder, such as compose/images/redis. Nothing is overwritten.
#[derive(Args)]
pub struct Eject {
    /// Name of a scenario or a topology, or the path of a built-in file or folder, such as
    /// scenarios/pause-gt-ttl.yml
    name: String,
    #[command(flatten)]
    pub printed: OutputFormat,
}

/// A built-in file and its path.
type Carried = (PathBuf, &'static [u8]);

impl Eject {
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let files = find(&self.name)?;
        if home.becomes_whole(files.iter().map(|(path, _)| path.as_path())) {
            return Err(Failure::usage(format!(
                "cannot eject {}: with scenarios/, compose/ and toxiproxy/, {} would be a checkout of this project, which sees nothing that is built in; eject fewer of them",
                self.name,
                home.shown("").display()
            )));
        }
        let files = files
            .into_iter()
            .map(|(path, content)| (path, content.to_vec()));
        let paths = write_new(&format!("eject {}", self.name), home, files)?;
        let lines = paths
            .iter()
            .map(|path| format!("written: {}\n", path.display()));
        self.printed
            .show(&json!({ "written": paths }), lines.collect::<String>())
    }
}

/// Writes files by their paths inside of the home: all of them, or none if one is there already.
pub fn write_new(
    deed: &str,
    home: &Home,
    files: impl IntoIterator<Item = (PathBuf, Vec<u8>)>,
) -> Result<Vec<PathBuf>, Failure> {
    let shown = |(path, content): (PathBuf, _)| (home.shown(&path.to_string_lossy()), content);
    let files: Vec<(PathBuf, Vec<u8>)> = files.into_iter().map(shown).collect();
    let mut paths = files.iter().map(|(path, _)| path);
    if let Some(path) = paths.find(|path| path.symlink_metadata().is_ok()) {
        return Err(Failure::usage(format!(
            "cannot {deed}: {} is there already; move it away first",
            path.display()
        )));
    }
    for (path, content) in &files {
        write(path, content).map_err(|error| {
            let path = path.display();
            Failure::harness(format!(
                "cannot write {path}: {error}; make its folder writable, or choose another one"
            ))
        })?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    files::create(path, FOR_ALL)?.write_all(content)
}

fn find(name: &str) -> Result<Vec<Carried>, Failure> {
    let plain = Location::BuiltIn(PathBuf::new()).join(name);
    let Location::BuiltIn(path) = &plain else {
        return Ok(Vec::new());
    };
    let one = |path: PathBuf| builtin::carried(&path).map(|content| vec![(path, content)]);
    let is_named = !name.contains('/') && !name.ends_with(".yml");
    if is_named {
        let in_folder = |folder: &str| one(PathBuf::from(folder).join(name).with_extension("yml"));
        return match (in_folder("scenarios"), in_folder("compose")) {
            (Some(_), Some(_)) => Err(Failure::usage(format!(
                "cannot eject {name}: it is both a scenario and a topology; write scenarios/{name}.yml or compose/{name}.yml"
            ))),
            (Some(found), None) | (None, Some(found)) => Ok(found),
            (None, None) => Err(unknown(name)),
        };
    }
    let below = builtin::below(path);
    let below: Vec<Carried> = below
        .map(|(file, content)| (path.join(file), content))
        .collect();
    match one(path.clone()) {
        Some(found) => Ok(found),
        None if below.is_empty() => Err(unknown(name)),
        None => Ok(below),
    }
}

fn unknown(name: &str) -> Failure {
    let (folder, _) = name.rsplit_once('/').unwrap_or_default();
    let inside: BTreeSet<String> = builtin::below(Path::new(folder))
        .filter_map(|(path, _)| path.components().next())
        .map(|first| format!("{folder}/{}", first.as_os_str().to_string_lossy()))
        .collect();
    let names: Vec<String> = match folder.is_empty() || inside.is_empty() {
        true => {
            let folders = ["scenarios", "compose"].map(|folder| Location::BuiltIn(folder.into()));
            let names = folders.iter().flat_map(|folder| folder.names());
            names.flatten().collect()
        }
        false => inside.into_iter().collect(),
    };
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let hint = suggestion(name, &known);
    Failure::usage(format!(
        "cannot eject {name}: nothing built in is called so; {hint}"
    ))
}
