//! The base image: pulled if a registry answers, else bootstrapped once from Debian's packages with
//! mmdebstrap, which finds its mirror by itself.

use super::*;
use crate::cluster::docker::engine::failed;
use crate::cluster::find_program;
use std::io::{Read, Seek};
use std::process::Stdio;
use tokio::process::Command;

const BOOTSTRAP_DEADLINE: Duration = Duration::from_secs(600);
const INSTALL_DEADLINE: Duration = Duration::from_secs(300);
const INSTALL_COMMAND: &str = "apt-get update && apt-get install -y mmdebstrap";

/// Returns a local image that can be used as `wanted`, such as `debian:bookworm-slim`.
pub async fn ensure(
    engine: &Engine,
    wanted: &str,
    progress: &dyn Progress,
) -> ClusterResult<String> {
    if find(engine, wanted).await?.is_some() {
        return Ok(wanted.to_owned());
    }
    let suite = suite_of(wanted);
    let own = suite.map(|suite| format!("fencepost/base:{suite}"));
    if let Some(own) = &own
        && find(engine, own).await?.is_some()
    {
        return Ok(own.clone());
    }
    let refused = match pull(engine, wanted, progress).await {
        Ok(()) => return Ok(wanted.to_owned()),
        Err(refused) => refused,
    };
    let (Some(suite), Some(own)) = (suite, own) else {
        return Err(refused);
    };
    progress.say(&format!(
        "{wanted} cannot be pulled; bootstrapping Debian {suite} with mmdebstrap instead, once"
    ));
    bootstrap(engine, suite, &own, progress).await?;
    Ok(own)
}

/// Returns the suite in `debian:SUITE` or `debian:SUITE-slim`.
fn suite_of(image: &str) -> Option<&str> {
    let tag = image.strip_prefix("debian:")?;
    Some(tag.strip_suffix("-slim").unwrap_or(tag))
}

/// Returns the path of mmdebstrap, or the command that installs it.
pub fn bootstrap_tool() -> Result<PathBuf, String> {
    find_program("mmdebstrap").ok_or_else(|| format!("run: {INSTALL_COMMAND}"))
}

async fn bootstrap(
    engine: &Engine,
    suite: &str,
    tag: &str,
    progress: &dyn Progress,
) -> ClusterResult {
    let tool = install_tool(progress).await?;
    let what = format!("bootstrap Debian {suite}");
    let task = progress.begin(&what);
    let io_failed = |error: std::io::Error| ClusterError::failed(what.clone(), error);
    // A file without a name does not stay behind, whatever happens to us.
    let mut file = tempfile::tempfile().map_err(io_failed)?;
    let mut command = Command::new(tool);
    command
        .args(["--variant=minbase", "--format=tar", suite, "-"])
        .stdout(Stdio::from(file.try_clone().map_err(io_failed)?));
    let ended = program::run(command, &what, BOOTSTRAP_DEADLINE).await?;
    if !ended.success {
        task.finish("failed");
        let remedy = if nix::unistd::geteuid().is_root() {
            ""
        } else {
            "\nrun `fencepost images` once as root: images are the engine's, whoever made them"
        };
        return Err(ClusterError::failed(
            what,
            format!("mmdebstrap failed{}{remedy}", ended.stderr.below()),
        ));
    }
    task.detail("importing");
    file.rewind().map_err(io_failed)?;
    import(engine, file, tag, &what).await?;
    task.finish("done");
    Ok(())
}

async fn import(engine: &Engine, file: File, tag: &str, what: &str) -> ClusterResult {
    let (repo, version) = tag.rsplit_once(':').unwrap_or((tag, "latest"));
    let options = CreateImageOptions {
        from_src: Some("-".to_owned()),
        repo: Some(repo.to_owned()),
        tag: Some(version.to_owned()),
        changes: vec![format!("LABEL {}=base", labels::IMAGE)],
        ..Default::default()
    };
    let chunks = futures_util::stream::unfold(file, |mut file| async move {
        let mut chunk = vec![0; 1 << 20];
        let read = file.read(&mut chunk).unwrap_or(0);
        chunk.truncate(read);
        (read > 0).then(|| (bytes::Bytes::from(chunk), file))
    });
    let body = bollard::body_stream(chunks);
    let mut stream = engine
        .docker()
        .create_image(Some(options), Some(body), None);
    let imported = async {
        while let Some(info) = stream.next().await {
            info.map_err(|error| failed(what, &error))?;
        }
        Ok(())
    };
    tokio::time::timeout(BOOTSTRAP_DEADLINE, imported)
        .await
        .unwrap_or_else(|_| {
            Err(ClusterError::deadline(
                format!("{what}: import"),
                BOOTSTRAP_DEADLINE,
            ))
        })
}

async fn install_tool(progress: &dyn Progress) -> ClusterResult<PathBuf> {
    if let Ok(tool) = bootstrap_tool() {
        return Ok(tool);
    }
    let missing = || {
        ClusterError::missing(
            "mmdebstrap, needed to make a base image where none can be pulled,",
            format!("run as root: {INSTALL_COMMAND}"),
        )
    };
    let apt = find_program("apt-get").filter(|_| nix::unistd::geteuid().is_root());
    let Some(apt) = apt else {
        return Err(missing());
    };
    progress.say("mmdebstrap is missing; installing it with apt-get");
    let task = progress.begin("apt-get install mmdebstrap");
    let attempts: [&[&str]; 3] = [
        &["install", "-y", "--no-install-recommends", "mmdebstrap"],
        &["update"],
        &["install", "-y", "--no-install-recommends", "mmdebstrap"],
    ];
    for arguments in attempts {
        let mut command = Command::new(&apt);
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdout(Stdio::null());
        program::run(command, "apt-get", INSTALL_DEADLINE).await?;
        if let Ok(tool) = bootstrap_tool() {
            task.finish("done");
            return Ok(tool);
        }
    }
    task.finish("failed");
    Err(missing())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suite_is_read_from_the_tag() {
        assert_eq!(suite_of("debian:bookworm-slim"), Some("bookworm"));
        assert_eq!(suite_of("debian:trixie"), Some("trixie"));
        assert_eq!(suite_of("alpine:3"), None);
    }
}
