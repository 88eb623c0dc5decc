//! Limits for processes of this machine: a topology must not let them reach files outside of their
//! own folder, or listen to other machines.

use super::*;
use crate::cluster::topology::METRICS;
use std::net::IpAddr;

/// The roles of this program that are parts of a cluster.
const ROLES: [&str; 5] = ["resource", "s3", "worker", "toxiproxy", "probe"];
/// etcd reads every option from variables with this prefix as well.
const OPTIONS_OF_ETCD: &str = "ETCD_";

/// Returns why a node cannot be started here as it is written.
pub fn objection(program: Program, node: &NodeSpec) -> Option<String> {
    // It is what the user wants to be run, with the user's own rights.
    if program == Program::Given {
        return None;
    }
    let words = || node.command.iter().map(String::as_str);
    if let Some(word) = words().find(|word| goes_up(word)) {
        return Some(format!(
            "`{word}` leads out of its own folder; write a path without `..`"
        ));
    }
    if let Some(word) = words().find(|word| hides_a_path(word)) {
        return Some(format!(
            "`{word}` has a path within; make it a word of its own, or write it behind the first `=`"
        ));
    }
    match program {
        Program::RedisServer => {
            let is_both =
                |word: &&str| word.starts_with("--") && word.contains(char::is_whitespace);
            let both = words().find(is_both)?;
            Some(format!(
                "`{both}` is an option with its value; write two words"
            ))
        }
        Program::Etcd => {
            let mut names = node.environment.keys();
            let option = names.find(|name| name.starts_with(OPTIONS_OF_ETCD));
            option.map_or_else(
                || words().find_map(beyond),
                |name| Some(format!("write {name} as an option of its command")),
            )
        }
        // Otherwise it would read what is set for the machine's own server.
        Program::MariaDb if words().nth(1) != Some("--no-defaults") => {
            Some("its first option has to be --no-defaults".to_owned())
        }
        Program::Postgres | Program::MariaDb => words().find_map(beyond),
        Program::Given => None,
        Program::Ourselves if !words().next().is_some_and(|role| ROLES.contains(&role)) => Some(
            "of this program only `resource`, `s3`, `toxiproxy` and `worker` are parts of a cluster"
                .to_owned(),
        ),
        Program::Ourselves => {
            let metrics = node.environment.get(METRICS).map(String::as_str);
            words().chain(metrics).find_map(beyond)
        }
    }
}

/// Returns whether `..` is a part of a path in the word.
fn goes_up(word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    word.split(|c| !is_name(c)).any(|part| part == "..")
}

/// Returns whether the word has an absolute path that is not found, and so not put into the node's
/// folder: one anywhere but at the beginning or behind the first `=`.
fn hides_a_path(word: &str) -> bool {
    let found = path_at(word);
    word.match_indices('/').any(|(at, _)| {
        let before = word[..at].chars().next_back();
        let is_within = before.is_some_and(|c| c.is_alphanumeric() || "._-/".contains(c));
        let is_address = before == Some(':') && word[at..].starts_with("//");
        !is_within && !is_address && found.is_none_or(|found| at != found)
    }) || (word.contains(":///") && found != Some(0))
}

/// Returns where the path of a word begins: `/data`, `--data-dir=/data`.
pub fn path_at(word: &str) -> Option<usize> {
    if word.starts_with('/') {
        Some(0)
    } else {
        word.find("=/").map(|at| at + 1)
    }
}

/// Returns why an option is refused for a process that only this machine may reach.
fn beyond(word: &str) -> Option<String> {
    let mut hosts = word.split([',', '=', ' ']).map(host_of);
    let is_beyond = hosts.any(
        |host| match (host.parse::<SocketAddr>(), host.parse::<IpAddr>()) {
            (Ok(address), _) => !is_here(address.ip()),
            (_, Ok(ip)) => !is_here(ip),
            // This is how Go writes every address of the machine.
            _ => host.starts_with(':') || host.starts_with("[::]"),
        },
    );
    is_beyond.then(|| {
        format!("`{word}` is beyond this machine; write 0.0.0.0 for its own address, or use --runtime docker")
    })
}

/// Returns the host and its port of `http://0.0.0.0:2379/x`.
fn host_of(text: &str) -> &str {
    let host = text.split_once("://").map_or(text, |(_, host)| host);
    host.split('/').next().unwrap_or_default()
}

/// Returns whether the address is on this machine. 0.0.0.0 is replaced by the node's own address.
fn is_here(ip: IpAddr) -> bool {
    ip.is_loopback() || ip == Ipv4Addr::UNSPECIFIED
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(command: &[&str], environment: &[(&str, &str)]) -> NodeSpec {
        let environment = environment.iter();
        let command = command.iter().map(|&word| word.to_owned()).collect();
        NodeSpec {
            environment: environment
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            ..NodeSpec::new("n".into(), "", command)
        }
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        for word in [
            "/../../x",
            "..",
            "../x",
            "a/../../x",
            "--data-dir=/../x",
            "--data-dir=../x",
            "--log-outputs=stdout,../x",
            "--log-outputs=stdout,/etc/x",
            "--a=/x,/etc/y",
            "--dir \"/etc\"",
            "--dir ../x",
            "--dir \"\\x2fetc\"",
            "file:///etc/x",
            "--log-outputs=file:///etc/x",
        ] {
            let node = node(&["redis-server", word], &[]);
            assert!(objection(Program::RedisServer, &node).is_some(), "{word}");
        }
        for word in [
            "/data",
            "--data-dir=/data",
            "data/x",
            "1..3",
            "900 1",
            "...",
            "http://a:1/b/c",
            "--initial-cluster=a=http://a:1,b=http://b:2/",
            "",
        ] {
            let node = node(&["redis-server", word], &[]);
            assert_eq!(objection(Program::RedisServer, &node), None, "{word}");
        }
    }

    #[test]
    fn nobody_listens_to_other_machines() {
        for word in [
            "--listen-client-urls=http://192.168.0.5:2379",
            "--listen-client-urls=http://127.0.0.1:1,http://[::]:2",
            "--listen-metrics-urls=http://:2379",
            "http://10.0.0.1:2379",
            "[::]:8080",
            "::",
            "8.8.8.8",
        ] {
            for (program, first) in [(Program::Etcd, "etcd"), (Program::Ourselves, "resource")] {
                let node = node(&[first, word], &[]);
                assert!(objection(program, &node).is_some(), "{word}");
            }
        }
        for word in [
            "--listen-client-urls=http://0.0.0.0:2379,http://127.0.0.1:1",
            "--advertise-client-urls=http://etcd-1:2371",
            "[::1]:8080",
            "0.0.0.0",
            "--logger=zap",
        ] {
            let node = node(&["etcd", word], &[]);
            assert_eq!(objection(Program::Etcd, &node), None, "{word}");
        }
    }

    #[test]
    fn what_a_command_does_not_say_is_looked_at_too() {
        let etcd = node(&["etcd"], &[("ETCD_DATA_DIR", "x")]);
        assert!(objection(Program::Etcd, &etcd).is_some());
        let metrics = |at: &str| {
            let worker = node(&["worker"], &[("FENCEPOST_METRICS", at), ("X", "8.8.8.8")]);
            objection(Program::Ourselves, &worker)
        };
        assert!(metrics("192.168.0.5:9100").is_some());
        assert_eq!(metrics("0.0.0.0:9100"), None);
        let clean = node(&["clean", "--images"], &[]);
        assert!(objection(Program::Ourselves, &clean).is_some());
        assert!(objection(Program::Ourselves, &node(&[], &[])).is_some());
    }
}
