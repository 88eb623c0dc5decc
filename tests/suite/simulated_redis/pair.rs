use super::wire::Wire;
use simulated_redis::{Protocol, Redis, Reply};
use std::collections::VecDeque;
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
/// How far apart two times may be that the servers give in milliseconds.
const APART_MS: u64 = 2_000;
/// The same for tokens and times in microseconds, which are larger than anything else.
const MICROSECONDS: i64 = 1_000_000_000_000_000;
const APART_US: u64 = 5_000_000;
pub const CONNECTIONS: usize = 4;

/// A simulated and a real server, with the same connections to both.
pub struct Pair {
    both: Vec<[Wire; 2]>,
    last: VecDeque<String>,
    pub compared: usize,
}

/// How exactly two answers have to be the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    Exact,
    /// Numbers are times, which pass.
    Times,
    /// The order of a hash is nobody's business.
    AnyOrder,
    /// Only the kind of the answer counts.
    Shape,
}

impl Pair {
    /// Connects to the real server. The simulated one has the clock of this machine too.
    pub async fn connect(address: &str) -> Pair {
        let simulated = Redis::new(|| {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            now.expect("after 1970")
        });
        let mut both = Vec::new();
        for _ in 0..CONNECTIONS {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(simulated.serve(theirs));
            let real = TcpStream::connect(address).await.expect("a Redis");
            real.set_nodelay(true).expect("a socket");
            both.push([Wire::over(ours), Wire::over(real)]);
        }
        Pair {
            both,
            last: VecDeque::new(),
            compared: 0,
        }
    }

    /// Sends a command on both, and compares all that comes on this connection up to the answer.
    pub async fn same(&mut self, at: usize, words: &[Vec<u8>], care: Care) -> Reply {
        let shown: Vec<String> = words
            .iter()
            .map(|word| {
                let end = word.len().saturating_sub(60);
                word[end..].escape_ascii().to_string()
            })
            .collect();
        self.last.push_back(format!("{at}: {}", shown.join(" ")));
        while self.last.len() > 12 {
            self.last.pop_front();
        }
        let mut heard = Vec::new();
        for wire in &mut self.both[at] {
            wire.send(words).await;
            let all = timeout(ANSWER_DEADLINE, until_answered(wire)).await;
            heard.push(all.unwrap_or_else(|_| panic!("no answer to {:#?}", self.last)));
        }
        let (real, simulated) = (heard.pop().expect("two"), heard.pop().expect("two"));
        let is_same = real.len() == simulated.len()
            && real
                .iter()
                .zip(&simulated)
                .all(|(one, other)| agree(one, other, care));
        assert!(
            is_same,
            "{:#?}\nsimulated: {}\nreal:      {}",
            self.last,
            bytes_of(&simulated),
            bytes_of(&real)
        );
        self.compared += 1;
        simulated.into_iter().next_back().expect("an answer")
    }

    /// Compares the messages that every connection has received.
    pub async fn same_messages(&mut self) {
        for at in 0..CONNECTIONS {
            self.same(at, &[b"PING".to_vec()], Care::Exact).await;
        }
    }
}

async fn until_answered(wire: &mut Wire) -> Vec<Reply> {
    let mut all = Vec::new();
    loop {
        let reply = wire.read().await.expect("an answer");
        let is_message = is_message(&reply);
        all.push(reply);
        if !is_message {
            all.chunk_by_mut(is_same_news)
                .for_each(|same| same.sort_by_key(|message| format!("{message:?}")));
            return all;
        }
    }
}

/// Returns whether two messages are the same one, to two patterns of this connection: nobody says
/// in which order they come.
fn is_same_news(one: &Reply, next: &Reply) -> bool {
    match (one, next) {
        (Reply::Array(one), Reply::Array(next)) | (Reply::Push(one), Reply::Push(next)) => {
            one.len() == 4 && next.len() == 4 && one[0] == next[0] && one[2..] == next[2..]
        }
        _ => false,
    }
}

fn bytes_of(replies: &[Reply]) -> String {
    let mut bytes = Vec::new();
    for reply in replies {
        reply.write(Protocol::Resp3, &mut bytes);
    }
    bytes.escape_ascii().to_string()
}

fn is_message(reply: &Reply) -> bool {
    let (Reply::Array(words) | Reply::Push(words)) = reply else {
        return false;
    };
    let first = words.first();
    [&b"message"[..], b"pmessage"]
        .iter()
        .any(|kind| first == Some(&Reply::Bulk(kind.to_vec())))
}

fn agree(one: &Reply, other: &Reply, care: Care) -> bool {
    match (one, other) {
        (Reply::Int(one), Reply::Int(other)) => near(*one, *other, care),
        (Reply::Bulk(one), Reply::Bulk(other)) if one != other => {
            care == Care::Shape || near_words(one, other, care)
        }
        (Reply::Array(one), Reply::Array(other)) | (Reply::Push(one), Reply::Push(other)) => {
            let sorted = |all: &[Reply]| {
                let mut all = all.to_vec();
                if care == Care::AnyOrder {
                    all.sort_by_key(|reply| format!("{reply:?}"));
                }
                all
            };
            let (one, other) = (sorted(one), sorted(other));
            let mut pairs = one.iter().zip(&other);
            one.len() == other.len() && pairs.all(|(one, other)| agree(one, other, care))
        }
        (Reply::Map(one), Reply::Map(other)) => {
            let flat = |pairs: &[(Reply, Reply)]| {
                let pairs = pairs.iter().cloned();
                Reply::Array(
                    pairs
                        .map(|(key, value)| Reply::Array(vec![key, value]))
                        .collect(),
                )
            };
            agree(&flat(one), &flat(other), care)
        }
        _ => one == other,
    }
}

fn near(one: i64, other: i64, care: Care) -> bool {
    let apart = one.abs_diff(other);
    match care {
        Care::Shape => true,
        _ if (MICROSECONDS..i64::MAX / 2).contains(&one) => apart <= APART_US,
        // A time that is over is never taken for one that is not.
        Care::Times if one > 0 && other > 0 => apart <= APART_MS,
        _ => one == other,
    }
}

/// Compares texts in which words can be numbers.
fn near_words(one: &[u8], other: &[u8], care: Care) -> bool {
    let texts = str::from_utf8(one).ok().zip(str::from_utf8(other).ok());
    let Some((one, other)) = texts else {
        return false;
    };
    let (one, other): (Vec<&str>, Vec<&str>) =
        (one.split(' ').collect(), other.split(' ').collect());
    let mut pairs = one.iter().zip(&other);
    one.len() == other.len()
        && pairs.all(|(one, other)| match (one.parse(), other.parse()) {
            (Ok(one), Ok(other)) => near(one, other, care),
            _ => one == other,
        })
}
