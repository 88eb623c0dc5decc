use super::runtime::in_ci;
use super::*;
use crate::cluster::docker::{Engine, images};
use crate::cluster::local::programs::Program;
use crate::cluster::{ClusterError, Image, Topology, find_program};

/// Something that a run needs or can use, and its state on this machine.
#[derive(Serialize)]
#[serde(tag = "state", content = "what", rename_all = "snake_case")]
enum Finding {
    Good(String),
    /// The next run fixes it by itself.
    Later(String),
    /// It is optional.
    Hint(String),
    Missing(String),
}

pub async fn execute(home: Result<Home, Failure>, printed: OutputFormat) -> Result<Exit, Failure> {
    let mut findings = vec![platform(), state_folder()];
    let mut servers = Vec::new();
    let mut can_do_without = !in_ci();
    for program in Program::SERVERS {
        let finding = for_local_runs(program).await;
        // Few scenarios need another.
        let is_needed = matches!(program, Program::RedisServer | Program::Etcd);
        can_do_without &= !is_needed || matches!(finding, Finding::Good(_));
        servers.push(finding);
    }
    match Engine::connect().await {
        Ok(engine) => {
            let about = &engine.about;
            findings.push(Finding::Good(format!(
                "Docker Engine {} at {}, API {}",
                about.version, about.host, about.api
            )));
            match &home {
                Ok(home) => findings.extend(images_of(&engine, home).await?),
                Err(failure) => findings.push(Finding::Missing(failure.to_string())),
            }
        }
        Err(error @ ClusterError::Unreachable { .. }) if can_do_without => {
            let instead = "until then runs use local processes, as with --runtime local";
            findings.push(Finding::Hint(format!("{error}\n{instead}")));
        }
        Err(error) => findings.push(Finding::Missing(error.to_string())),
    }
    findings.push(bootstrap());
    findings.extend(servers);
    findings.push(just());
    let text: String = findings.iter().map(Finding::line).collect();
    printed.show(&json!({ "findings": findings }), text)?;
    let is_missing = |finding: &Finding| matches!(finding, Finding::Missing(_));
    let all_good = !findings.iter().any(is_missing);
    Ok(Exit::expected_if(all_good, Exit::Unavailable))
}

impl Finding {
    fn line(&self) -> String {
        let (mark, text) = match self {
            Finding::Good(text) => ("ok      ", text),
            Finding::Later(text) => ("later   ", text),
            Finding::Hint(text) => ("hint    ", text),
            Finding::Missing(text) => ("MISSING ", text),
        };
        format!("{mark}{}\n", text.replace('\n', "\n        "))
    }
}

fn platform() -> Finding {
    let here = format!("{} on {}", std::env::consts::OS, std::env::consts::ARCH);
    match std::env::consts::OS {
        "linux" => Finding::Good(here),
        _ => Finding::Missing(format!(
            "{here}: the program packs itself into an image, and that takes Linux; run it in a Linux container or VM"
        )),
    }
}

fn state_folder() -> Finding {
    match State::open() {
        Ok(state) => Finding::Good(format!("state folder {}", state.path().display())),
        Err(failure) => Finding::Missing(failure.to_string()),
    }
}

async fn images_of(engine: &Engine, home: &Home) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let topologies = home.topologies()?;
    for (name, topology) in &topologies {
        let what = format!("images of the topology {name}");
        findings.push(images(engine, what, topology.images()).await?);
    }
    let proxy = home.toxiproxy()?.image;
    findings.push(images(engine, "image of the proxies".to_owned(), [&proxy]).await?);
    if let Some(filter) = topologies.values().next().map(Topology::packet_filter) {
        let what = "image of the packet filters".to_owned();
        findings.push(images(engine, what, [&filter]).await?);
    }
    Ok(findings)
}

async fn images(
    engine: &Engine,
    what: String,
    images: impl IntoIterator<Item = &Image>,
) -> Result<Finding, Failure> {
    let missing = images::missing(engine, images).await?;
    Ok(if missing.is_empty() {
        Finding::Good(what)
    } else {
        Finding::Later(format!(
            "{what}: {} (made by the next run that needs it, or now: fencepost images)",
            joined(missing, ", ")
        ))
    })
}

fn bootstrap() -> Finding {
    match images::bootstrap_tool() {
        Ok(path) => Finding::Good(format!("mmdebstrap at {}", path.display())),
        Err(_) if nix::unistd::geteuid().is_root() => Finding::Later(
            "mmdebstrap: installed by the first run that cannot pull a base image".to_owned(),
        ),
        Err(remedy) => Finding::Hint(format!(
            "mmdebstrap is not here; it is needed only where no base image can be pulled\n{remedy}"
        )),
    }
}

/// Looks for a program that only runs without containers need.
async fn for_local_runs(program: Program) -> Finding {
    match program.find().await {
        Ok(found) => Finding::Good(format!(
            "{} {} at {}, for --runtime local",
            program.name(),
            found.version,
            found.path.display()
        )),
        Err(error) => Finding::Hint(format!("for --runtime local only: {error}")),
    }
}

fn just() -> Finding {
    match find_program("just") {
        Some(path) => Finding::Good(format!("just at {}", path.display())),
        None => Finding::Hint(
            "just is not here; the recipes only call cargo\nrun: cargo install just".to_owned(),
        ),
    }
}
