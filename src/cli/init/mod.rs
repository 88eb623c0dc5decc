//! `fencepost init`: a worker on a kit, a scenario and what belongs to them, in ./fencepost/.

use super::eject::write_new;
use super::runs::{RunsReport, run_scenarios};
use super::*;
use crate::builtin;
use crate::run::{RunOptions, RuntimeChoice};
use crate::scenario::Settings;
use crate::services::Backend;
use clap::ValueEnum;
use std::io::{IsTerminal, Write};
use std::time::Instant;
use strum::{Display, VariantArray};

/// Write a worker, a scenario and a CI workflow for a lock of your own, and run them
///
/// Everything is in ./fencepost/ (or --home DIR); nothing is overwritten. The worker is on the kit of
/// its language, with a lock on one Redis to replace by yours. What is not given is asked for.
#[derive(Args)]
pub struct Init {
    /// The language of the worker
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    language: Option<Language>,
    /// The lock service that the lock uses. Every kit has a lock on redis; that for python also
    /// one in etcd and one in postgres
    #[arg(long, value_enum, value_name = "SERVICE")]
    service: Option<Service>,
    /// The name of the lock: of its folder and its scenario
    #[arg(long, default_value = "my-lock")]
    name: String,
    /// Only write the files
    #[arg(long)]
    no_run: bool,
}

#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, ValueEnum, VariantArray)]
#[strum(serialize_all = "lowercase")]
enum Language {
    Python,
    Go,
    Java,
    Node,
    Php,
    Ruby,
    Rust,
}

/// A lock service that a kit has a lock for.
#[derive(Clone, Copy, Debug, Display, PartialEq, Eq, ValueEnum, VariantArray)]
#[strum(serialize_all = "lowercase")]
enum Service {
    Redis,
    Etcd,
    Postgres,
}

impl Service {
    fn backend(self) -> Backend {
        match self {
            Service::Redis => Backend::Redis,
            Service::Etcd => Backend::Etcd,
            Service::Postgres => Backend::PostgresLease,
        }
    }

    /// Returns the option that names it, with a space behind it; the default needs none.
    fn option(self) -> String {
        match self.backend() {
            Backend::Redis => String::new(),
            backend => format!("--backend {backend} "),
        }
    }

    /// Returns what its lock is made of beside the language, from Debian.
    fn package(self) -> Option<&'static str> {
        match self {
            Service::Redis | Service::Etcd => None,
            Service::Postgres => Some("python3-psycopg2"),
        }
    }
}

impl Language {
    fn services(self) -> &'static [Service] {
        match self {
            Language::Python => Service::VARIANTS,
            Language::Go
            | Language::Java
            | Language::Node
            | Language::Php
            | Language::Ruby
            | Language::Rust => &[Service::Redis],
        }
    }
}

impl Init {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        if home.is_whole() {
            return Err(Failure::usage(
                "cannot init in a checkout of fencepost: it has everything itself; go to a repository of your own",
            ));
        }
        let begins = |c: char| c.is_ascii_lowercase();
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = self.name.starts_with(begins) && self.name.chars().all(letters);
        if !fits || self.name.ends_with('-') {
            return Err(Failure::usage(format!(
                "cannot call a lock `{}`: a name has lower-case letters, digits and dashes, begins with a letter and does not end with a dash; choose another with --name",
                self.name
            )));
        }
        let language = match self.language {
            Some(language) => language,
            None => ask("language", Language::VARIANTS)?,
        };
        let offered = language.services();
        let service = match self.service {
            Some(service) => service,
            None if offered.len() > 1 && can_ask() => ask("service", offered)?,
            None => Service::Redis,
        };
        if !offered.contains(&service) {
            return Err(Failure::usage(format!(
                "cannot make a lock on {service} in {language}: its kit has one on {} alone; take --language python, or --service redis, and replace the lock, and `topology` and `backend` in the scenario",
                joined(offered, ", ")
            )));
        }
        let began = Instant::now();
        let written = write_new("init", &home, self.files(&home, language, service))?;
        for path in &written {
            output::line(format_args!("written: {}", path.display()))?;
        }
        if self.no_run {
            return Ok(Exit::AsExpected);
        }
        self.run(&home, service, began).await
    }

    /// Returns the files by their paths inside of the home.
    fn files(&self, home: &Home, language: Language, service: Service) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = PathBuf::from(format!("kits/{language}"));
        let (mut lock, mut kit) = (String::new(), Vec::new());
        for (path, content) in builtin::below(&folder) {
            let name = path.display().to_string();
            let is_lock_of =
                |service: &Service| name.to_lowercase().starts_with(&service.to_string());
            match Service::VARIANTS.iter().find(|of| is_lock_of(of)) {
                Some(of) if *of != service => continue,
                Some(_) => lock = name,
                None => {}
            }
            kit.push((path, content.to_vec()));
        }
        let name = &self.name;
        let backend = service.backend();
        let (option, backend_name) = (service.option(), backend.to_string());
        let worker = home.shown(name).display().to_string();
        let home_option = home.option();
        let filled = |text: &str| {
            let words = [
                ("WORKER", worker.as_str()),
                ("HOME_OPTION ", home_option.as_str()),
                ("NAME", name.as_str()),
                ("LOCK", lock.as_str()),
                ("BACKEND_OPTION ", option.as_str()),
                ("BACKEND", backend_name.as_str()),
                ("TOPOLOGY", backend.servers().topology),
            ];
            let filled = words
                .iter()
                .fold(text.to_owned(), |text, (word, by)| text.replace(word, by));
            filled.into_bytes()
        };
        let worker = kit
            .into_iter()
            .map(|(path, content)| match path.ends_with("Dockerfile") {
                true => (path, with_lock(&content, &lock, service.package())),
                false => (path, content),
            });
        let worker = worker.map(|(path, content)| (Path::new(name).join(path), content));
        let mut files: Vec<_> = worker.collect();
        files.extend([
            (
                format!("scenarios/{name}.yml").into(),
                filled(include_str!("scenario.yml")),
            ),
            (
                format!("{name}-ci.yml").into(),
                filled(include_str!("ci.yml")),
            ),
            (
                format!("{name}.md").into(),
                filled(include_str!("README.md")),
            ),
        ]);
        files
    }

    async fn run(&self, home: &Home, service: Service, began: Instant) -> Result<Exit, Failure> {
        let (library, around) = (home.library(), home.surroundings()?);
        let scenario = library.load(&self.name, &Settings::default(), &around)?;
        let options = RunOptions {
            runtime: RuntimeChoice::Docker,
            seed: 1,
            repeat: 1,
            jobs: 3,
            ..RunOptions::default()
        };
        let mut report = RunsReport::new(false);
        run_scenarios(home, &[scenario], &options, &mut report).await?;
        let (seconds, name) = (began.elapsed().as_secs(), &self.name);
        let folder = home.shown(name);
        let (folder, option, home) = (folder.display(), service.option(), home.option());
        output::line(format_args!(
            "first verdict {seconds} s after init; next: put your lock into {folder}, then `fencepost try {home}{option}{folder}`"
        ))?;
        Ok(report.tally.worst().into())
    }
}

/// Puts a lock in the place of that on a Redis, with the package that it needs.
fn with_lock(dockerfile: &[u8], lock: &str, package: Option<&str>) -> Vec<u8> {
    let mut text = String::from_utf8_lossy(dockerfile).into_owned();
    if lock.ends_with(".py") {
        text = text.replace("redis_lock.py", lock);
    }
    if let Some(package) = package {
        text = text.replace(" python3 ", &format!(" python3 {package} "));
    }
    text.into_bytes()
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks for one of these, until one of them is the answer.
fn ask<T: ValueEnum + ToString + Copy>(option: &str, choices: &[T]) -> Result<T, Failure> {
    let names = joined(choices.iter().map(T::to_string), ", ");
    let unasked = || {
        Failure::usage(format!(
            "cannot choose a {option}: nobody can be asked here; give --{option} ({names})"
        ))
    };
    if !can_ask() {
        return Err(unasked());
    }
    loop {
        let mut stderr = std::io::stderr();
        // Whoever does not see the question can still answer it.
        let _ = write!(stderr, "{option} ({names}): ");
        let _ = stderr.flush();
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.map_err(Failure::harness)? == 0 {
            return Err(unasked());
        }
        if let Ok(choice) = T::from_str(answer.trim(), true) {
            return Ok(choice);
        }
        let _ = writeln!(stderr, "there is no `{}`; type one of these", answer.trim());
    }
}
