use super::RedlockSettings;
use super::fan::Fan;
use super::node::Node;
use crate::redis::{
    Heir, Lua, RedisLink, RedisSettings, Release, Reply, fence_key, gone_key, lock_key,
};
use crate::{Env, LockError, LockProblem};
use prometheus_client::metrics::counter::Counter;
use std::collections::HashSet;
use std::sync::Arc;

/// All nodes, and the requests that can be sent to them.
pub(super) struct Nodes {
    pub(super) all: Vec<Node>,
    /// All names joined, for errors.
    pub(super) names: String,
    pub(super) quorum: usize,
    /// The count of requests to all nodes together.
    pub(super) requests: Counter,
    pub(super) env: Env,
    acquire: Lua,
    write_back: Lua,
    renew: Lua,
    release: Lua,
}

/// One request for all nodes.
pub(super) enum Order {
    Acquire { owner: String, call: Call },
    WriteBack(Call),
    Renew(Call),
    Release(Arc<Release>),
}

/// What a script is called with.
pub(super) struct Call {
    keys: Vec<String>,
    arguments: Vec<String>,
}

impl Nodes {
    pub(super) fn new(
        servers: &[impl AsRef<str>],
        settings: &RedlockSettings,
        env: Env,
    ) -> Result<Nodes, LockError> {
        let names = || {
            let names: Vec<&str> = servers.iter().map(AsRef::as_ref).collect();
            names.join(",")
        };
        let error = |node: String, problem| {
            LockError::new(super::name_of(settings.tokens), node, "", problem)
        };
        let link_settings = RedisSettings {
            connect_timeout: settings.connect_timeout,
            response_timeout: settings.response_timeout,
            #[cfg(all(debug_assertions, feature = "mutants"))]
            mutant: settings.mutant,
            ..RedisSettings::default()
        };
        let requests = Counter::default();
        let mut all = Vec::new();
        for server in servers {
            let server = server.as_ref();
            let link = RedisLink::new(server, link_settings, env.clone(), requests.clone());
            all.push(Node::new(
                link.map_err(|problem| error(server.to_owned(), problem))?,
            ));
        }
        check_names(&all).map_err(|problem| error(names(), problem))?;
        let quorum = quorum_of(all.len(), settings.quorum);
        let quorum = quorum.map_err(|problem| error(names(), problem))?;
        let names: Vec<&str> = all.iter().map(Node::name).collect();
        Ok(Nodes {
            names: names.join(","),
            all,
            quorum,
            requests,
            env,
            acquire: link_settings.script(include_str!("scripts/acquire.lua")),
            write_back: link_settings.script(include_str!("scripts/write_back.lua")),
            renew: link_settings.script(include_str!("../redis/scripts/renew.lua")),
            release: link_settings.script(include_str!("../redis/scripts/release.lua")),
        })
    }

    /// Asks the nodes for which `wanted` returns true, once the result is polled.
    pub(super) fn ask(self: &Arc<Self>, order: Order, wanted: impl Fn(usize) -> bool) -> Fan {
        let order = Arc::new(order);
        let wanted = (0..self.all.len()).filter(|node| wanted(*node));
        Fan::new(wanted.map(|node| {
            let (nodes, order) = (self.clone(), order.clone());
            let request = Box::pin(async move { nodes.run(node, &order).await });
            (node, request as _)
        }))
    }

    async fn run(&self, node: usize, order: &Order) -> Result<Reply, LockProblem> {
        let node = &self.all[node];
        match order {
            Order::Acquire { owner, call } => {
                let arguments = call.arguments();
                let answer = node.run_try(owner, &self.acquire, &call.keys, &arguments);
                answer.await
            }
            Order::WriteBack(call) => {
                let arguments = call.arguments();
                node.run(&self.write_back, &call.keys, &arguments).await
            }
            Order::Renew(call) => node.run(&self.renew, &call.keys, &call.arguments()).await,
            Order::Release(release) => node.release(release.clone()).await,
        }
    }

    pub(super) fn release(&self, key: &str, owner: &str) -> Order {
        Order::Release(Arc::new(Release {
            script: self.release.clone(),
            key: key.to_owned(),
            owner: owner.to_owned(),
            keys: vec![lock_key(key)],
            arguments: vec![owner.to_owned(), String::new()],
            heir: Heir::IsTold,
        }))
    }

    /// Makes the error for too many failed nodes; `failures` holds one problem for each.
    pub(super) fn no_quorum<'a>(
        &self,
        answered: usize,
        failures: impl Iterator<Item = (usize, &'a LockProblem)>,
    ) -> LockProblem {
        let failures: Vec<String> = failures
            .map(|(node, problem)| format!("{}: {problem}", self.all[node].name()))
            .collect();
        LockProblem::NoQuorum {
            answered,
            quorum: self.quorum,
            nodes: self.all.len(),
            failures: failures.join("; "),
        }
    }
}

impl Order {
    pub(super) fn acquire(key: &str, owner: &str, ttl_ms: String, proposal: u64) -> Order {
        Order::Acquire {
            owner: owner.to_owned(),
            call: Call {
                keys: vec![lock_key(key), fence_key(key), gone_key(key, owner)],
                arguments: vec![owner.to_owned(), ttl_ms, proposal.to_string()],
            },
        }
    }

    pub(super) fn write_back(key: &str, owner: &str, token: u64) -> Order {
        Order::WriteBack(Call {
            keys: vec![lock_key(key), fence_key(key)],
            arguments: vec![owner.to_owned(), token.to_string()],
        })
    }

    pub(super) fn renew(key: &str, owner: &str, ttl_ms: String) -> Order {
        Order::Renew(Call {
            keys: vec![lock_key(key)],
            arguments: vec![owner.to_owned(), ttl_ms],
        })
    }
}

impl Call {
    fn arguments(&self) -> Vec<&str> {
        self.arguments.iter().map(String::as_str).collect()
    }
}

fn check_names(nodes: &[Node]) -> Result<(), LockProblem> {
    if nodes.is_empty() {
        let problem = "no server is named; Redlock needs at least one".to_owned();
        return Err(LockProblem::BadServers(problem));
    }
    let mut seen = HashSet::new();
    match nodes.iter().find(|node| !seen.insert(node.name())) {
        Some(node) => {
            let problem = format!("{} is named twice and would vote twice", node.name());
            Err(LockProblem::BadServers(problem))
        }
        None => Ok(()),
    }
}

fn quorum_of(nodes: usize, wanted: Option<usize>) -> Result<usize, LockProblem> {
    let majority = nodes / 2 + 1;
    let quorum = wanted.unwrap_or(majority);
    let reason = if quorum > nodes {
        "cannot be"
    } else if quorum < majority {
        "would let two hold the lock at once"
    } else {
        return Ok(quorum);
    };
    Err(LockProblem::BadQuorum {
        quorum,
        nodes,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_is_a_majority_that_can_be() {
        assert_eq!(quorum_of(5, None), Ok(3));
        assert_eq!(quorum_of(4, None), Ok(3));
        assert_eq!(quorum_of(1, None), Ok(1));
        assert_eq!(quorum_of(5, Some(5)), Ok(5));
        for wanted in [0, 2, 6] {
            let refused = quorum_of(5, Some(wanted));
            assert!(
                matches!(refused, Err(LockProblem::BadQuorum { quorum, nodes: 5, .. }) if quorum == wanted)
            );
        }
    }

    #[test]
    fn no_node_votes_twice_and_none_is_no_quorum() {
        let problem = |servers: &[&str]| {
            let nodes = Nodes::new(servers, &RedlockSettings::default(), Env::default());
            nodes.err().expect("refused").problem
        };
        let none: &[&str] = &[];
        assert!(matches!(problem(none), LockProblem::BadServers(_)));
        let twice = ["127.0.0.1:7001", "127.0.0.1:7002", "redis://127.0.0.1:7001"];
        let LockProblem::BadServers(reason) = problem(&twice) else {
            panic!("not refused");
        };
        assert!(reason.contains("127.0.0.1:7001"), "{reason}");
        let not_one = ["127.0.0.1:7001", "not an address"];
        assert!(matches!(problem(&not_one), LockProblem::BadAddress { .. }));
    }
}
