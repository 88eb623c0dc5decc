//! Peers that read and answer by heart. They are no servers: a Redis that knows its lines,
//! and somebody who says nothing.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, split,
};
use tokio::time::sleep;

/// The answer of a script.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    /// The server does not know the script by its hash.
    Unknown,
    /// A code, and the numbers that belong to it.
    Reply(u64, &'static [i64]),
}

impl Answer {
    /// Returns the bytes of the answer to this command. Its number is the last argument.
    fn to(self, command: &[String]) -> String {
        let Answer::Reply(code, numbers) = self else {
            return "-NOSCRIPT No matching script\r\n".to_owned();
        };
        let number = command.last().and_then(|number| number.parse().ok());
        let head: u64 = number
            .map(|number: u64| number * 8 + code)
            .expect("a number");
        let numbers: String = numbers.iter().map(|it| format!(":{it}\r\n")).collect();
        let values = 1 + numbers.lines().count();
        format!("*{values}\r\n:{head}\r\n{numbers}")
    }
}

/// The reaction to the next script.
#[derive(Clone, Copy, Debug)]
pub enum Line {
    Say(Answer),
    /// Say it, and hand the lock to its owner later.
    HandOver {
        first: Answer,
        after: Duration,
        token: u64,
    },
    /// Say it, and close the connection later.
    HangUp {
        first: Answer,
        after: Duration,
    },
}

/// The lines that are left, for all connections of a peer.
pub type Lines = Arc<Mutex<VecDeque<Line>>>;

/// Answers like a Redis: to the setup of a connection as every one does, and to scripts
/// with these lines, one after the other.
pub async fn redis(stream: DuplexStream, lines: Lines, note: impl Fn(&str)) {
    let (read, mut write) = split(stream);
    let mut read = BufReader::new(read);
    let mut hand_offs = String::new();
    while let Ok(Some(command)) = command(&mut read).await {
        note(&command.join(" "));
        let answer = match command[0].as_str() {
            "HELLO" => "%1\r\n+proto\r\n:3\r\n".to_owned(),
            "CLIENT" => "+OK\r\n".to_owned(),
            "SUBSCRIBE" => {
                hand_offs.clone_from(&command[1]);
                push(&["subscribe", &hand_offs], ":1\r\n")
            }
            "EVALSHA" | "EVAL" => {
                let line = lines.lock().unwrap().pop_front();
                match line.unwrap_or_else(|| panic!("no line is left for {command:?}")) {
                    Line::Say(answer) => answer.to(&command),
                    Line::HandOver {
                        first,
                        after,
                        token,
                    } => {
                        write
                            .write_all(first.to(&command).as_bytes())
                            .await
                            .unwrap();
                        sleep(after).await;
                        let word = format!("{} {token}", owner(&command));
                        push(&["message", &hand_offs, &word], "")
                    }
                    Line::HangUp { first, after } => {
                        write
                            .write_all(first.to(&command).as_bytes())
                            .await
                            .unwrap();
                        sleep(after).await;
                        return;
                    }
                }
            }
            other => panic!("nobody taught the peer {other}"),
        };
        if write.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// Reads everything, and never answers.
pub async fn silent(mut stream: DuplexStream, note: impl Fn(&str)) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        note(&buffer[..count].escape_ascii().to_string());
    }
}

/// Passes everything on to a server and back.
#[cfg(feature = "etcd")]
pub async fn heard(client: DuplexStream, server: DuplexStream, note: impl Fn(&str)) {
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = split(server);
    let there = async {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
            note(&buffer[..count].escape_ascii().to_string());
            if to_server.write_all(&buffer[..count]).await.is_err() {
                break;
            }
        }
        let _or_it_is_gone = to_server.shutdown().await;
    };
    let back = tokio::io::copy(&mut from_server, &mut to_client);
    let _until_both_end = tokio::join!(there, back);
}

/// Reads one command, as an array of texts. Scripts are shown by a hash.
async fn command(read: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<Option<Vec<String>>> {
    let Some(count) = number(read, '*').await? else {
        return Ok(None);
    };
    let mut words = Vec::new();
    for _ in 0..count {
        let length = number(read, '$').await?.expect("a whole command");
        let mut word = vec![0; length + 2];
        read.read_exact(&mut word).await?;
        let word = String::from_utf8_lossy(&word[..length]);
        words.push(match word.contains('\n') {
            true => format!("(a script: {:x})", hash(&word)),
            false => word.into_owned(),
        });
    }
    Ok(Some(words))
}

/// Reads a line such as `$12`; `None` at the end of the stream.
async fn number(
    read: &mut (impl AsyncBufReadExt + AsyncRead + Unpin),
    kind: char,
) -> io::Result<Option<usize>> {
    let mut line = String::new();
    if read.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let number = line.trim_end().strip_prefix(kind).expect("this kind");
    Ok(Some(number.parse().expect("a number")))
}

fn hash(text: &str) -> u64 {
    // It has no random keys.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Returns the first argument behind the keys of a script.
fn owner(command: &[String]) -> &str {
    let keys: usize = command[2].parse().expect("the number of keys");
    &command[3 + keys]
}

fn push(words: &[&str], end: &str) -> String {
    let values = words.len() + usize::from(!end.is_empty());
    let words: String = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()))
        .collect();
    format!(">{values}\r\n{words}{end}")
}
