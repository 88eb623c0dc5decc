//! The probe: asks a server something over a fresh connection, from inside the network of the
//! node beside it, and reports the outcome.
//!
//! It is a role of the same program (`fencepost probe`). Questions come on stdin and answers go
//! to stdout, one JSON object a line, so no network fault cuts it off. Any byte that comes back
//! is an answer: Redis, etcd and the resource all reply to an HTTP request, if only with an
//! error.

use super::*;
use fencing_lock::Env;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::pin::pin;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, split,
};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The largest number of questions at once; nobody asks more.
const MOST_AT_ONCE: usize = 64;
/// The length of one step of patience.
const STEP: Duration = Duration::from_millis(10);
/// Nobody runs this late on a machine that is only busy.
const STANDSTILL: Duration = Duration::from_millis(50);
/// The part of an answer that is reported.
const TOLD_BYTES: usize = 8 * 1024;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Question {
    pub id: u64,
    /// `redis-1:6379`
    pub to: String,
    pub within_ms: u64,
    /// The probe sends at least this many bytes, all of them before there can be an answer.
    #[serde(default)]
    pub up_bytes: usize,
    /// At least this many bytes have to come back.
    #[serde(default)]
    pub down_bytes: usize,
    /// The text to send in place of the usual request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub say: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub id: u64,
    pub outcome: Outcome,
    /// The time from before the connection until the last byte that was waited for, without
    /// the time in which the whole machine stood still.
    pub took_us: u64,
    /// The bytes that came back, or the system's reason why none did.
    #[serde(default)]
    pub text: String,
}

/// The outcome of a connection, as TCP sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Answered,
    Refused,
    Reset,
    /// The connection was made, and closed without an answer.
    Closed,
    /// No answer came within the time.
    Silent,
    /// There is no route to it, or no host of that name.
    Unreachable,
}

/// Answers every line of stdin until it ends.
pub async fn run() -> io::Result<()> {
    let (stdin, stdout) = (tokio::io::stdin(), tokio::io::stdout());
    run_in(Env::default(), BufReader::new(stdin), stdout).await
}

/// Does the same in surroundings that may be simulated.
pub async fn run_in(
    env: Env,
    input: impl AsyncBufRead + Unpin,
    mut out: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = input.lines();
    let mut asked = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            line = lines.next_line(), if asked.len() < MOST_AT_ONCE => {
                let Some(line) = line? else { return Ok(()) };
                match serde_json::from_str::<Question>(&line) {
                    Ok(question) => {
                        asked.spawn(ask(env.clone(), question));
                    }
                    Err(error) => eprintln!("fencepost probe: {line:?} is no question: {error}"),
                }
            }
            Some(answer) = asked.join_next() => {
                let Ok(answer) = answer else { continue };
                let mut line = serde_json::to_vec(&answer)?;
                line.push(b'\n');
                out.write_all(&line).await?;
                out.flush().await?;
            }
        }
    }
}

/// Waits in small steps, and counts a step for no longer than it was to be. If the whole machine
/// stands still for a while, nobody can answer: that proves neither silence nor a slow link.
async fn ask(env: Env, question: Question) -> Answer {
    let started = Instant::now();
    let mut steps_left = question.within_ms.div_ceil(STEP.as_millis() as u64);
    let mut stood_still = Duration::ZERO;
    let mut exchange = pin!(exchange(&env, &question));
    let came = loop {
        let step = Instant::now();
        let came = timeout(STEP, exchange.as_mut()).await;
        let late = step.elapsed().saturating_sub(STEP);
        if late >= STANDSTILL {
            stood_still += late;
        }
        steps_left = steps_left.saturating_sub(1);
        match came {
            Ok(came) => break came,
            Err(_) if steps_left == 0 => break Err((Outcome::Silent, String::new())),
            Err(_) => {}
        }
    };
    let (outcome, text) = match came {
        Ok(text) => (Outcome::Answered, text),
        Err(failure) => failure,
    };
    Answer {
        id: question.id,
        outcome,
        took_us: started.elapsed().saturating_sub(stood_still).as_micros() as u64,
        text,
    }
}

type Failure = (Outcome, String);

async fn exchange(env: &Env, question: &Question) -> Result<String, Failure> {
    let request = match &question.say {
        Some(text) => text.clone(),
        // The padding is before the end of the first line, so that no server answers sooner.
        None => format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(question.up_bytes)),
    };
    let first = say_and_listen(env, question, &request, 1).await?;
    if question.down_bytes == 0 {
        return Ok(text_of(&first));
    }
    let request = match first.first() {
        // An answer of Redis begins with one of these characters.
        Some(b'-' | b'+' | b':' | b'$' | b'*') => {
            let echo = format!("ECHO {}\r\n", "x".repeat(1000));
            echo.repeat(question.down_bytes.div_ceil(1000))
        }
        _ => "GET / HTTP/1.1\r\nHost: probe\r\n\r\n".repeat(question.down_bytes.div_ceil(80)),
    };
    let all = say_and_listen(env, question, &request, question.down_bytes).await?;
    Ok(text_of(&all))
}

async fn say_and_listen(
    env: &Env,
    question: &Question,
    request: &str,
    wanted_bytes: usize,
) -> Result<Vec<u8>, Failure> {
    let connected = async {
        let (host, port) = question.to.rsplit_once(':').unwrap_or_default();
        let port = port.parse().map_err(io::Error::other)?;
        env.dial(host, port).await
    };
    let stream = connected.await;
    let stream = stream.map_err(|error| failure(error, Outcome::Unreachable))?;
    let broken = |error| failure(error, Outcome::Closed);
    let (mut from, mut to) = split(stream);
    let mut came = Vec::new();
    // Sends and listens at once: an answer must not wait until everything is sent.
    let send = async {
        to.write_all(request.as_bytes()).await?;
        to.flush().await
    };
    let listen = async {
        let mut chunk = [0; 16 * 1024];
        while came.len() < wanted_bytes {
            match from.read(&mut chunk).await? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => came.extend_from_slice(&chunk[..read]),
            }
        }
        Ok(())
    };
    tokio::pin!(send, listen);
    let mut sent = false;
    loop {
        tokio::select! {
            biased;
            done = &mut send, if !sent => {
                done.map_err(broken)?;
                sent = true;
            }
            done = &mut listen => {
                done.map_err(broken)?;
                return Ok(came);
            }
        }
    }
}

fn failure(error: io::Error, otherwise: Outcome) -> Failure {
    let outcome = match error.kind() {
        ErrorKind::ConnectionRefused => Outcome::Refused,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Outcome::Reset,
        _ => otherwise,
    };
    (outcome, error.to_string())
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(TOLD_BYTES)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket};

    async fn outcome_at(to: String) -> Outcome {
        let question = Question {
            to,
            within_ms: 300,
            ..Question::default()
        };
        ask(Env::default(), question).await.outcome
    }

    async fn listener() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, address)
    }

    #[tokio::test]
    async fn every_way_a_connection_can_go_has_its_name() {
        let (silent, address) = listener().await;
        assert_eq!(outcome_at(address).await, Outcome::Silent);
        drop(silent);

        // Nobody else gets the port, and nobody listens there.
        let bound = TcpSocket::new_v4().unwrap();
        bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.local_addr().unwrap().to_string();
        assert_eq!(outcome_at(address).await, Outcome::Refused);

        let (closing, address) = listener().await;
        tokio::spawn(async move {
            let (mut stream, _) = closing.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
        });
        assert_eq!(outcome_at(address).await, Outcome::Closed);
        assert_eq!(
            outcome_at("no-such-host.invalid:1".to_owned()).await,
            Outcome::Unreachable
        );
    }

    #[tokio::test]
    async fn a_machine_that_stands_still_does_not_make_a_server_silent() {
        let (server, address) = listener().await;
        tokio::spawn(async move {
            let (mut stream, _) = server.accept().await.unwrap();
            // There is one thread, so everybody stands still for longer than the patience.
            std::thread::sleep(Duration::from_millis(900));
            tokio::time::sleep(Duration::from_millis(20)).await;
            stream.write_all(b"+PONG").await.unwrap();
        });
        let question = Question {
            to: address,
            within_ms: 300,
            ..Question::default()
        };
        let answer = ask(Env::default(), question).await;
        assert_eq!(answer.outcome, Outcome::Answered);
        assert!(answer.took_us < 500_000, "{answer:?}");
    }

    #[tokio::test]
    async fn bytes_are_counted_in_both_directions() {
        let (server, to) = listener().await;
        let serving = tokio::spawn(async move {
            let mut received = Vec::new();
            for answer in ["-ERR\r\n".to_owned(), "x".repeat(5000)] {
                let (mut stream, _) = server.accept().await.unwrap();
                let mut chunk = [0; 64 * 1024];
                let mut total = 0;
                while !chunk[..total].contains(&b'\n') {
                    total += stream.read(&mut chunk[total..]).await.unwrap();
                }
                received.push(total);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
            received
        });
        let question = Question {
            to,
            within_ms: 2000,
            up_bytes: 3000,
            down_bytes: 5000,
            ..Question::default()
        };
        assert_eq!(
            ask(Env::default(), question).await.outcome,
            Outcome::Answered
        );
        let received = serving.await.unwrap();
        assert!(received[0] > 3000 && received[1] > 1000, "{received:?}");
    }
}
