//! The files that this program carries, and one way to read these and those of a person:
//! scenarios, topologies, recipes of images, the service of the proxies, kits and examples of workers.

use bounded_io::files::{self, Links};
use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Every file by its path, in the order of the paths. `build.rs` makes the list.
static CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// Where a file or folder is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// On disk: a person wrote it.
    Disk(PathBuf),
    /// Inside this program, such as `compose/redis.yml`.
    BuiltIn(PathBuf),
}

impl Location {
    /// Returns the place below this one. Inside the program, `..` leads out of nothing.
    pub fn join(&self, path: impl AsRef<Path>) -> Location {
        match self {
            Location::Disk(folder) => Location::Disk(folder.join(path)),
            Location::BuiltIn(folder) => Location::BuiltIn(plain(&folder.join(path))),
        }
    }

    pub fn parent(&self) -> Location {
        let of = |path: &Path| path.parent().unwrap_or(Path::new(".")).to_owned();
        match self {
            Location::Disk(path) => Location::Disk(of(path)),
            Location::BuiltIn(path) => Location::BuiltIn(of(path)),
        }
    }

    pub fn is_file(&self) -> bool {
        match self {
            Location::Disk(path) => path.is_file(),
            Location::BuiltIn(path) => carried(path).is_some(),
        }
    }

    /// Returns whether there is anything, file or not.
    pub fn exists(&self) -> bool {
        match self {
            Location::Disk(path) => path.exists(),
            Location::BuiltIn(_) => self.is_file() || self.is_folder(),
        }
    }

    pub fn is_folder(&self) -> bool {
        match self {
            Location::Disk(path) => path.is_dir(),
            Location::BuiltIn(path) => below(path).next().is_some(),
        }
    }

    /// Returns a file that somebody wrote by hand, as text.
    pub fn text(&self, links: Links) -> io::Result<String> {
        match self {
            Location::Disk(path) => files::read_text(path, links, files::BY_HAND),
            Location::BuiltIn(path) => {
                let content = carried(path).ok_or(ErrorKind::NotFound)?;
                Ok(String::from_utf8_lossy(content).into_owned())
            }
        }
    }

    /// Returns the names of the YAML files of this folder, without `.yml`, in order.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let name = |path: &Path| {
            let is_yaml = path.extension().is_some_and(|ext| ext == "yml");
            let stem = path.file_stem().filter(|_| is_yaml)?;
            Some(stem.to_string_lossy().into_owned())
        };
        let mut names = Vec::new();
        match self {
            Location::Disk(folder) => {
                for entry in std::fs::read_dir(folder)? {
                    names.extend(name(&entry?.path()));
                }
            }
            Location::BuiltIn(folder) => {
                let direct = below(folder).filter(|(path, _)| path.components().count() == 1);
                names.extend(direct.filter_map(|(path, _)| name(path)));
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the path that errors show.
    pub fn shown(&self) -> PathBuf {
        PathBuf::from(self.to_string())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Disk(path) => write!(f, "{}", path.display()),
            Location::BuiltIn(path) if path.as_os_str().is_empty() => {
                f.write_str("what is built in")
            }
            Location::BuiltIn(path) => write!(f, "builtin:{}", path.display()),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Location {
    fn from(path: P) -> Location {
        Location::Disk(path.as_ref().to_owned())
    }
}

/// Returns the file of this path that the program carries.
pub fn carried(path: &Path) -> Option<&'static [u8]> {
    let path = path.to_str()?;
    let found = CARRIED.binary_search_by(|(carried, _)| Path::new(carried).cmp(Path::new(path)));
    found.ok().map(|at| CARRIED[at].1)
}

/// Returns every carried file below a folder, with its path inside.
pub fn below(folder: &Path) -> impl Iterator<Item = (&'static Path, &'static [u8])> {
    let inside = move |(path, content): &(&'static str, &'static [u8])| {
        let inside = Path::new(*path).strip_prefix(folder).ok()?;
        (!inside.as_os_str().is_empty()).then_some((inside, *content))
    };
    CARRIED.iter().filter_map(inside)
}

/// Returns the path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => plain.push(part),
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_carries_what_the_project_has() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (path, content) in CARRIED {
            assert_eq!(
                std::fs::read(project.join(path)).unwrap(),
                *content,
                "{path}"
            );
        }
        for folder in ["scenarios", "compose"] {
            let (here, carried) = (project.join(folder), Location::BuiltIn(folder.into()));
            let names = carried.names().unwrap();
            assert_eq!(names, Location::Disk(here).names().unwrap());
            assert!(carried.is_folder() && !carried.is_file());
            for name in names {
                assert!(carried.join(format!("{name}.yml")).is_file(), "{name}");
            }
        }
    }

    #[test]
    fn a_path_inside_the_program_leads_nowhere_else() {
        let compose = Location::BuiltIn("compose".into());
        assert!(compose.join("./images/redis/Dockerfile").is_file());
        assert!(compose.join("../toxiproxy/server.yml").is_file());
        for path in [
            "../../../etc/hostname",
            "/etc/hostname",
            "images/redis",
            "no.yml",
        ] {
            assert!(!compose.join(path).is_file(), "{path}");
        }
        let error = compose.join("no.yml").text(Links::Follow).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(
            compose.join("redis.yml").to_string(),
            "builtin:compose/redis.yml"
        );
    }
}
