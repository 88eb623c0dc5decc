//! The worker that somebody brings along: a folder with a Dockerfile, an image, or a command.

use super::*;
use crate::cluster::{COMMAND_IMAGE, Image, find_program};
use crate::report::shown::in_a_shell;
use crate::run::RuntimeChoice;

#[derive(Args)]
pub struct SubjectArguments {
    /// A folder with a Dockerfile, an image with its tag, or a command of this machine with its
    /// arguments (without Docker)
    #[arg(required = true, trailing_var_arg = true, value_name = "WORKER")]
    worker: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    Folder(PathBuf),
    Image(String),
    Command(Vec<String>),
}

impl SubjectArguments {
    #[cfg(test)]
    pub fn words(&self) -> &[String] {
        &self.worker
    }

    pub fn subject(&self) -> Result<Subject, Failure> {
        let [one] = self.worker.as_slice() else {
            let first = self.worker.first().map_or("", String::as_str);
            return match Path::new(first).is_dir() {
                true => Err(Failure::usage(format!(
                    "cannot use the words after {first}: a folder has no arguments; write options before it"
                ))),
                false => command(self.worker.clone()),
            };
        };
        let path = Path::new(one);
        if path.is_dir() {
            return folder(path);
        }
        if !path.exists() && one.contains(char::is_whitespace) {
            return command(one.split_whitespace().map(str::to_owned).collect());
        }
        if !path.exists() && find_program(one).is_none() && one.contains(':') {
            return Ok(Subject::Image(one.clone()));
        }
        command(vec![one.clone()])
    }
}

fn folder(path: &Path) -> Result<Subject, Failure> {
    let shown = path.display();
    if !path.join("Dockerfile").is_file() {
        return Err(Failure::usage(format!(
            "cannot use {shown}: it has no Dockerfile; add one, or give the command that starts the worker"
        )));
    }
    let path = path.canonicalize();
    let path = path.map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    if path.to_str().is_none() {
        return Err(Failure::usage(format!(
            "cannot use {shown}: its path is not UTF-8; move it to another folder"
        )));
    }
    Ok(Subject::Folder(path))
}

fn command(words: Vec<String>) -> Result<Subject, Failure> {
    let program = words.first().map_or("", String::as_str);
    let is_there = match program.contains('/') {
        true => Path::new(program).is_file(),
        false => find_program(program).is_some(),
    };
    match is_there {
        true => Ok(Subject::Command(words)),
        false => Err(Failure::usage(format!(
            "cannot find the worker `{program}`: it is no folder, no image with a tag and no program; name one of them"
        ))),
    }
}

impl Subject {
    /// Returns the image of its nodes.
    pub fn image(&self) -> Image {
        match self {
            Subject::Folder(path) => Image::of_folder(path),
            Subject::Image(name) => Image {
                name: name.clone(),
                build: None,
            },
            Subject::Command(_) => Image {
                name: COMMAND_IMAGE.to_owned(),
                build: None,
            },
        }
    }

    /// Returns the overrides that put it in the place of a scenario's workers.
    pub fn settings(&self) -> Vec<String> {
        // JSON is YAML.
        match self {
            Subject::Folder(path) => vec![format!("worker.image={}", json!(path))],
            Subject::Image(name) => vec![format!("worker.image={}", json!(name))],
            Subject::Command(words) => vec![format!("worker.command={}", json!(words))],
        }
    }

    /// Returns its command; an image has its own.
    pub fn command(&self) -> Vec<String> {
        match self {
            Subject::Command(words) => words.clone(),
            _ => Vec::new(),
        }
    }

    pub fn runtime(&self) -> RuntimeChoice {
        match self {
            Subject::Command(_) => RuntimeChoice::Local,
            _ => RuntimeChoice::Docker,
        }
    }

    /// Returns how it would be typed here.
    pub fn typed(&self) -> String {
        match self {
            Subject::Folder(_) | Subject::Image(_) => in_a_shell(&self.shown()),
            Subject::Command(words) => {
                let words: Vec<String> = words.iter().map(|word| in_a_shell(word)).collect();
                words.join(" ")
            }
        }
    }

    /// Returns how it would be written here.
    pub fn shown(&self) -> String {
        match self {
            Subject::Folder(path) => {
                let here = std::env::current_dir().and_then(|here| here.canonicalize());
                let below = here
                    .ok()
                    .and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
                match below {
                    Some(below) if below.as_os_str().is_empty() => ".".to_owned(),
                    Some(below) => below.display().to_string(),
                    None => path.display().to_string(),
                }
            }
            Subject::Image(name) => name.clone(),
            Subject::Command(words) => words.join(" "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Subject, String> {
        let worker = words.iter().map(|word| word.to_string()).collect();
        let subject = SubjectArguments { worker }.subject();
        subject.map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_worker_is_a_folder_an_image_or_a_command() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        assert!(read(&[path]).unwrap_err().contains("no Dockerfile"));
        std::fs::write(folder.path().join("Dockerfile"), "FROM scratch").unwrap();
        let whole = folder.path().canonicalize().unwrap();
        assert_eq!(read(&[path]), Ok(Subject::Folder(whole)));
        assert_eq!(read(&["me/it:1"]), Ok(Subject::Image("me/it:1".into())));
        for words in [&["sh", "-c", "x"][..], &["sh -c x"]] {
            let command = ["sh", "-c", "x"].map(str::to_owned).into();
            assert_eq!(read(words), Ok(Subject::Command(command)));
        }
        assert!(read(&[path, "--x"]).unwrap_err().contains("before it"));
        let missing = read(&["no-such-program"]).unwrap_err();
        assert!(missing.contains("`no-such-program`"), "{missing}");
    }
}
