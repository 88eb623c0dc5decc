//! The floor: the two commands that a lock cannot do without, on every node at
//! once, through the same client library, and nothing else. No token, no
//! deadline, no random owner.

use super::{Lock, Peer, TTL};
use crate::Trouble;
use async_trait::async_trait;
use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use redis::{Client, Cmd, Script, cmd};

const COMPARE_AND_DELETE: &str =
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
const OWNER: &str = "6f9619ff-8b86-4d01-b42d-00cf4fc964ff";

pub struct BareRedis {
    pub nodes: Vec<String>,
}

#[async_trait]
impl Peer for BareRedis {
    fn name(&self) -> String {
        match self.nodes.len() {
            1 => "bare SET NX PX + EVALSHA".to_owned(),
            nodes => format!("bare SET NX PX + EVALSHA on {nodes} nodes at once"),
        }
    }

    async fn client(&self, key: &str) -> Result<Box<dyn Lock>, Trouble> {
        let mut nodes = Vec::new();
        let mut script_hash = String::new();
        for address in &self.nodes {
            // As it comes: the time limit of its answers is the library's default.
            let client = Client::open(format!("redis://{address}"))?;
            let mut connection = client.get_multiplexed_async_connection().await?;
            let script = Script::new(COMPARE_AND_DELETE);
            script_hash = script.prepare_invoke().load_async(&mut connection).await?;
            nodes.push(connection);
        }
        let mut set = cmd("SET");
        set.arg(key)
            .arg(OWNER)
            .arg("NX")
            .arg("PX")
            .arg(TTL.as_millis() as u64);
        let mut delete = cmd("EVALSHA");
        delete.arg(script_hash).arg(1).arg(key).arg(OWNER);
        Ok(Box::new(Pair { nodes, set, delete }))
    }
}

struct Pair {
    nodes: Vec<MultiplexedConnection>,
    set: Cmd,
    delete: Cmd,
}

#[async_trait]
impl Lock for Pair {
    async fn acquire(&mut self) -> Result<Option<u64>, Trouble> {
        let answers: Vec<Option<String>> = everywhere(&mut self.nodes, &self.set).await?;
        match answers.iter().all(Option::is_some) {
            true => Ok(None),
            false => Err("bare SET NX: somebody holds the lock".into()),
        }
    }

    async fn release(&mut self) -> Result<(), Trouble> {
        let deleted: Vec<u64> = everywhere(&mut self.nodes, &self.delete).await?;
        match deleted.iter().all(|deleted| *deleted == 1) {
            true => Ok(()),
            false => Err("bare EVALSHA: the lock was not there".into()),
        }
    }
}

async fn everywhere<T: redis::FromRedisValue>(
    nodes: &mut [MultiplexedConnection],
    command: &Cmd,
) -> Result<Vec<T>, redis::RedisError> {
    match nodes {
        [node] => Ok(vec![command.query_async(node).await?]),
        nodes => try_join_all(nodes.iter_mut().map(|node| command.query_async(node))).await,
    }
}
