use super::pair::{CONNECTIONS, Care, Pair};
use simulated_redis::Reply;
use std::time::Duration;
use tokio::time::sleep;

const KEYS: [&str; 6] = ["a", "b", "c", "hash", "list", "{x}:9"];
const VALUES: [&str; 13] = [
    "",
    "0",
    "1",
    "-5",
    "abc",
    "007",
    " 1",
    "9223372036854775807",
    "-9223372036854775808",
    "1.5",
    "é",
    "x\r\ny",
    "zz zz",
];
const CHANNELS: [&str; 4] = ["news", "news:1", "other", "n?ws"];
const PATTERNS: [&str; 4] = ["n*", "news", "[a-o]ther", "*"];
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "-1",
    "-2",
    "3",
    "100",
    "x",
    "1.0",
    "",
    "9223372036854775807",
    "+1",
];
/// No key ends by itself while the test runs, unless a step waits for it.
const LONG_MS: [&str; 3] = ["1000000", "2000000", "9999999"];
const LONG_S: [&str; 2] = ["5000", "100000"];

/// Scripts that show what a script can see and return.
const SCRIPTS: [&str; 36] = [
    "return 1",
    "return 1.9",
    "return -1.9",
    "return 'x'",
    "return nil",
    "return true",
    "return false",
    "return {1, 2.5, 'x', {true, false, 3}, nil, 4}",
    "return {ok = 'fine'}",
    "return {err = 'WRONG something'}",
    "return redis.error_reply('CODE some words')",
    "return redis.error_reply('-CODE some words')",
    "return redis.error_reply('word')",
    "return redis.status_reply('STATUS')",
    "return redis.call('GET', KEYS[1])",
    "return redis.pcall('GET', KEYS[1])",
    "return redis.call('MGET', KEYS[1], KEYS[2], 'nothing')",
    "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 5000000)",
    "return type(redis.call('SET', KEYS[1], 1.5)) .. redis.call('GET', KEYS[1])",
    "return redis.call('INCR', KEYS[1])",
    "local got = redis.pcall('INCR', KEYS[1]) if type(got) == 'table' then return got.err end return got",
    "return redis.call('LRANGE', KEYS[1], 0, -1)",
    "return redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])",
    "return redis.call('PUBLISH', 'news', ARGV[1])",
    "return redis.call('NOSUCH')",
    "return redis.call('GET')",
    "return redis.call()",
    "return redis.call('SUBSCRIBE', 'news')",
    "return redis.call('GET', {})",
    "error('went wrong')",
    "error({err = 'CODE went wrong'})",
    "local x = nil\nreturn x.y",
    "return nothing_of_this_name",
    "made_up = 1",
    "return {KEYS[1], ARGV[1], #KEYS, #ARGV, redis.sha1hex('x')}",
    "redis.call('SET', KEYS[1], string.format('%.0f', 2^53)) return tonumber(redis.call('GET', KEYS[1])) + ARGV[1] * 8",
];

struct Draw {
    random: fastrand::Rng,
}

pub async fn play(pair: &mut Pair, seed: u64, steps: usize) {
    let mut draw = Draw {
        random: fastrand::Rng::with_seed(seed),
    };
    let words = |text: &str| split(text);
    for at in 0..CONNECTIONS {
        if at % 2 == 1 {
            pair.same(at, &words("HELLO 3"), Care::Shape).await;
        }
    }
    pair.same(0, &words("FLUSHALL"), Care::Exact).await;
    pair.same(
        0,
        &words("CONFIG SET notify-keyspace-events KEA"),
        Care::Exact,
    )
    .await;
    for pattern in ["__key*", "n*"] {
        pair.same(3, &words(&format!("PSUBSCRIBE {pattern}")), Care::Exact)
            .await;
    }
    for step in 0..steps {
        let at = draw.random.usize(..CONNECTIONS);
        match draw.random.usize(..200) {
            0 => draw.ended(pair, at).await,
            1..=20 => draw.script(pair, at).await,
            21..=26 => draw.messages(pair, at).await,
            _ => {
                let (command, care) = draw.command();
                pair.same(at, &command, care).await;
            }
        }
        if step % 20 == 0 {
            pair.same_messages().await;
        }
    }
    pair.same_messages().await;
    assert!(pair.compared >= steps, "{} of {steps}", pair.compared);
}

fn split(text: &str) -> Vec<Vec<u8>> {
    let words = text.split(' ').filter(|word| !word.is_empty());
    words.map(|word| word.as_bytes().to_vec()).collect()
}

const EXACT: [&str; 77] = [
    "GET k",
    "GET k",
    "get k k",
    "SET k v",
    "SET k v",
    "set k v NX",
    "SET k v XX",
    "SET k v NX PX m",
    "SET k v PX m",
    "SET k v EX s",
    "SET k v PX n NX GET EX s",
    "SET k v KEEPTTL",
    "SET k v GET",
    "SET k v EX 0",
    "SET k v PX -1",
    "SET k v PX x",
    "SET k v XX NX",
    "SET k v PX",
    "SET k v NX GET",
    "SET k v EX 9223372036854775807",
    "SETNX k v",
    "GETSET k v",
    "GETDEL k",
    "MGET k k k",
    "STRLEN k",
    "INCR k",
    "INCR k",
    "DECR k",
    "INCRBY k n",
    "DEL k",
    "DEL k k",
    "UNLINK k",
    "EXISTS k k",
    "TYPE k",
    "PERSIST k",
    "EXPIRE k s",
    "PEXPIRE k m",
    "PEXPIRE k m NX",
    "PEXPIRE k m XX",
    "PEXPIRE k m NX GT",
    "PEXPIRE k m GT LT",
    "PEXPIRE k m ODD",
    "PEXPIRE k 0",
    "EXPIRE k -5",
    "PEXPIREAT k 1000",
    "EXPIRE k x",
    "EXPIRE k 9223372036854775807",
    "HSET k v v",
    "HSET k v v v v",
    "HSET k v v v",
    "HSETNX k v v",
    "HGET k v",
    "HMGET k v v",
    "HDEL k v",
    "HDEL k v v",
    "HEXISTS k v",
    "HLEN k",
    "HINCRBY k v n",
    "RPUSH k v",
    "RPUSH k v v v",
    "LPUSH k v v",
    "LPOP k",
    "RPOP k",
    "LPOP k n",
    "RPOP k n",
    "LLEN k",
    "LINDEX k n",
    "LRANGE k n n",
    "LREM k n v",
    "LPOS k v",
    "LPOS k v RANK n",
    "LPOS k v COUNT n",
    "LPOS k v RANK n COUNT n MAXLEN n",
    "LPOS k v ODD 1",
    "LRANGE k 0 -1",
    "ECHO v",
    "DBSIZE",
];
const RARE: [&str; 24] = [
    "NOSUCH",
    "NOSUCH k v",
    "GET",
    "HSET k",
    "SCRIPT",
    "SCRIPT ODD",
    "SCRIPT LOAD",
    "SCRIPT FLUSH",
    "SCRIPT FLUSH ODD",
    "CLIENT SETINFO LIB-NAME x",
    "CLIENT GETNAME",
    "CLIENT SETNAME me",
    "CONFIG GET notify-keyspace-events",
    "CONFIG SET odd 1",
    "CONFIG SET notify-keyspace-events Q",
    "SELECT x",
    "SELECT 99",
    "AUTH x",
    "AUTH odd x",
    "HELLO 9",
    "HELLO x",
    "EVALSHA 0000000000000000000000000000000000000000 0",
    "EVAL syntax( 0",
    "FLUSHALL",
];
const TIMES: [&str; 2] = ["PTTL k", "TTL k"];
const ANY_ORDER: [&str; 4] = ["HKEYS k", "HVALS k", "HGETALL k", "KEYS *"];

impl Draw {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.usize(..of.len())]
    }

    /// Draws the words of a command after its template: k is a key, v a value, n a number, m and s
    /// a time, anything else itself.
    fn filled(&mut self, template: &str) -> Vec<Vec<u8>> {
        let words = template.split(' ').map(|word| match word {
            "k" => self.one(&KEYS),
            "v" => self.one(&VALUES),
            "n" => self.one(&NUMBERS),
            "m" => self.one(&LONG_MS),
            "s" => self.one(&LONG_S),
            word => word,
        });
        words.map(|word| word.as_bytes().to_vec()).collect()
    }

    fn command(&mut self) -> (Vec<Vec<u8>>, Care) {
        let (all, care): (&[&str], Care) = match self.random.usize(..100) {
            0..=1 => (&RARE, Care::Exact),
            2..=9 => (&TIMES, Care::Times),
            10..=14 => (&ANY_ORDER, Care::AnyOrder),
            15 => (&["TIME"], Care::Shape),
            _ => (&EXACT, Care::Exact),
        };
        let template = self.one(all);
        (self.filled(template), care)
    }

    async fn script(&mut self, pair: &mut Pair, at: usize) {
        let code = self.one(&SCRIPTS).as_bytes().to_vec();
        let arguments = self.filled("2 k k n v");
        let mut words = vec![b"EVAL".to_vec(), code.clone()];
        if self.random.bool() {
            let load = [b"SCRIPT".to_vec(), b"LOAD".to_vec(), code];
            // A client of version 2 that listens may not load.
            if let Reply::Bulk(hash) = pair.same(at, &load, Care::Exact).await {
                words = vec![b"EVALSHA".to_vec(), hash];
            }
        }
        words.extend(arguments);
        pair.same(at, &words, Care::Exact).await;
    }

    async fn messages(&mut self, pair: &mut Pair, at: usize) {
        let channel = self.one(&CHANNELS).to_owned();
        let pattern = self.one(&PATTERNS).to_owned();
        // The third listens with version 2, which can do nothing else then.
        let command = match self.random.usize(..5) {
            0 if at >= 2 || at == 1 => format!("SUBSCRIBE {channel}"),
            1 if at >= 2 => format!("PSUBSCRIBE {pattern}"),
            2 => format!("UNSUBSCRIBE {channel}"),
            3 => format!("PUNSUBSCRIBE {pattern}"),
            _ => format!("PUBLISH {channel} word"),
        };
        pair.same(at, &split(&command), Care::Exact).await;
    }

    /// Sets a key that ends soon, and looks at it when it has.
    async fn ended(&mut self, pair: &mut Pair, at: usize) {
        let key = self.one(&KEYS);
        let length_ms = self.random.u64(1..15);
        let set = format!("PEXPIRE {key} {length_ms}");
        pair.same(at, &split(&format!("SET {key} soon")), Care::Exact)
            .await;
        let set = pair.same(at, &split(&set), Care::Exact).await;
        if set == Reply::Int(1) {
            sleep(Duration::from_millis(length_ms + 3)).await;
        }
        pair.same(at, &split(&format!("EXISTS {key}")), Care::Exact)
            .await;
        pair.same_messages().await;
    }
}
