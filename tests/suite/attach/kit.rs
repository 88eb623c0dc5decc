use crate::support::*;
use serde_json::Value;
use std::path::Path;

/// Runs the program at a server that looks like production, which is meant.
pub fn attached(arguments: &[&str], results: &Path) -> Ended {
    let results = results.to_str().expect("a plain path");
    let more = ["--yes", "--results", results];
    fencepost(&[arguments, &more].concat())
}

pub fn result(folder: &Path, scenario: &str) -> Value {
    json(&folder.join(scenario).join("latest/result.json"))
}

pub async fn of_a_redis(server: &Server, words: &[&str]) -> redis::Value {
    let mut connection = connection_to(&server.address).await;
    let mut command = redis::Cmd::new();
    command.arg(words);
    command
        .query_async(&mut connection)
        .await
        .expect("an answer")
}

/// Returns the names of all keys.
pub async fn names(server: &Server) -> Vec<String> {
    let keys = of_a_redis(server, &["KEYS", "*"]).await;
    redis::from_redis_value(keys).expect("names")
}

pub async fn setting(server: &Server) -> String {
    let pair = of_a_redis(server, &["CONFIG", "GET", "notify-keyspace-events"]).await;
    let pair: Vec<String> = redis::from_redis_value(pair).expect("a name and a value");
    pair[1].clone()
}

/// A Redis in a container of a Compose project that is not ours. It is removed when dropped.
pub struct ComposeRedis {
    pub project: String,
    pub container: String,
}

impl ComposeRedis {
    pub fn start(name: &str) -> ComposeRedis {
        let project = format!("test-{name}-{}", std::process::id());
        let container = format!("{project}_cache_1");
        // These labels are how Compose knows its own containers.
        let of = format!("--label=com.docker.compose.project={project}");
        let service = "--label=com.docker.compose.service=cache";
        let run = ["run", "-d", "--name", &container, &of, service];
        let command = [
            "redis-server",
            "--bind",
            "0.0.0.0",
            "--protected-mode",
            "no",
        ];
        // What it says is nowhere but in a file of its own.
        let logs = ["--logfile", "/data/log"];
        let keeps = ["--dir", "/data", "--appendonly", "yes"];
        let image = ["-v", "/data", "--user", "0", "fencepost/redis:7.0"];
        docker_ok(&[&run[..], &image, &command, &logs, &keeps].concat());
        let ready = || {
            let said = docker(&["exec", &container, "redis-cli", "PING"]);
            said.stdout.starts_with(b"PONG").then_some(())
        };
        until("the Redis", ready);
        ComposeRedis { project, container }
    }

    pub fn said(&self, words: &[&str]) -> String {
        docker_ok(&[&["exec", &self.container, "redis-cli"], words].concat())
    }

    /// Returns the state of its container, as the engine reports it.
    pub fn state(&self) -> String {
        docker_ok(&["inspect", &self.container, "--format", "{{.State.Status}}"])
    }
}

impl Drop for ComposeRedis {
    fn drop(&mut self) {
        docker(&["rm", "-f", "-v", &self.container]);
    }
}
