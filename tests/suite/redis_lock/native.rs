//! Servers that can compare and delete by themselves. None of the images has such a server: what
//! is said to it is translated for one that cannot.

use super::confused::value;
use super::kit::*;
use super::late::{Kind, locks};
use crate::support::{docker_shared, redis_address, stranger};
use fencepost::model::WaitPolicy;
use fencing_lock::ReleaseOutcome;
use redis::AsyncCommands;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

/// What the server says that it has, and what it does about it.
#[derive(Clone, Copy, Debug)]
enum Server {
    DelIfEq,
    DelEx,
    /// It knows the command and refuses it.
    Refuses,
}

#[tokio::test]
async fn a_server_that_compares_and_deletes_releases_only_what_is_held() {
    let _turn = docker_shared();
    let mut redis = redis_connection().await;
    for server in [Server::DelIfEq, Server::DelEx, Server::Refuses] {
        for kind in [Kind::Redis(WaitPolicy::Spin), Kind::Redlock] {
            let asked: Arc<AtomicUsize> = Arc::default();
            let client = locks(kind, &translator(server, asked.clone()).await);
            let key = unique_key();
            let lock = format!("lock:{{{key}}}");
            let lease = client.acquire(&key, soon()).await.unwrap();
            assert_eq!(
                lease.release().await,
                ReleaseOutcome::Released,
                "{server:?}"
            );
            assert_eq!(holder(&key).await, None);

            let lease = client.acquire(&key, soon()).await.unwrap();
            let () = redis.del(&lock).await.unwrap();
            assert_eq!(lease.release().await, ReleaseOutcome::Expired, "{server:?}");

            let lease = client.acquire(&key, soon()).await.unwrap();
            let () = redis.set(&lock, "another").await.unwrap();
            assert_eq!(
                lease.release().await,
                ReleaseOutcome::Superseded,
                "{server:?}"
            );
            assert_eq!(holder(&key).await.as_deref(), Some("another"));
            assert_eq!(asked.load(Ordering::SeqCst), 3, "{server:?}, {kind:?}");
        }
    }
}

async fn translator(server: Server, asked: Arc<AtomicUsize>) -> String {
    stranger(move |client| {
        let asked = asked.clone();
        async move {
            let redis = TcpStream::connect(redis_address()).await.unwrap();
            let (from_client, to_client) = client.into_split();
            let (mut from_redis, mut to_redis) = redis.into_split();
            let to_client = Mutex::new(to_client);
            let mut from_client = BufReader::new(from_client);
            let requests = async {
                while let Some(request) = value(&mut from_client).await {
                    let words = words(&request);
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    let request = match words.as_slice() {
                        ["COMMAND", "INFO", "DELIFEQ", "DELEX"] => {
                            let known = match server {
                                Server::DelIfEq | Server::Refuses => {
                                    "*2\r\n*1\r\n+delifeq\r\n*-1\r\n"
                                }
                                Server::DelEx => "*2\r\n*-1\r\n*1\r\n+delex\r\n",
                            };
                            let mut to_client = to_client.lock().await;
                            to_client.write_all(known.as_bytes()).await.unwrap();
                            continue;
                        }
                        ["DELIFEQ", lock, owner] | ["DELEX", lock, "IFEQ", owner] => {
                            asked.fetch_add(1, Ordering::SeqCst);
                            match server {
                                Server::Refuses => request,
                                Server::DelIfEq | Server::DelEx => compare_and_delete(lock, owner),
                            }
                        }
                        _ => request,
                    };
                    if to_redis.write_all(&request).await.is_err() {
                        return;
                    }
                }
            };
            let answers = async {
                let mut bytes = [0; 4_096];
                loop {
                    let length = tokio::io::AsyncReadExt::read(&mut from_redis, &mut bytes).await;
                    let length = length.unwrap_or(0);
                    let told = to_client.lock().await.write_all(&bytes[..length]).await;
                    if length == 0 || told.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = requests => {}
                () = answers => {}
            }
        }
    })
    .await
}

/// The words of a request.
fn words(request: &[u8]) -> Vec<String> {
    let lines = String::from_utf8_lossy(request);
    lines
        .split("\r\n")
        .skip(2)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn compare_and_delete(lock: &str, owner: &str) -> Vec<u8> {
    let script = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(1).arg(lock).arg(owner);
    command.get_packed_command()
}
