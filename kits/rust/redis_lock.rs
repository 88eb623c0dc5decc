//! A lock on one Redis, by hand: what the kit leaves to you.

mod fencepost_kit;

use fencepost_kit::{Error, Lock, Offers, Task};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const ACQUIRE: &str = "if redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) then return redis.call('incr',KEYS[2]) end return 0";
const RELEASE: &str = "local o=redis.call('get',KEYS[1]) if o==ARGV[1] then redis.call('del',KEYS[1]) return 0 end return o and 2 or 1";
const RENEW: &str = "if redis.call('get',KEYS[1])==ARGV[1] then return redis.call('pexpire',KEYS[1],ARGV[2]) end return 0";
const HELD: &str = "return redis.call('get',KEYS[1])==ARGV[1] and 1 or 0";

struct RedisLock {
    task: Task,
    owner: String,
}

impl Lock for RedisLock {
    fn acquire(&mut self, owner: &str, _timeout: Duration) -> Result<Option<u64>, Error> {
        self.owner = owner.to_owned();
        Ok(Some(self.eval(ACQUIRE)?).filter(|token| *token > 0))
    }

    fn release(&mut self) -> Result<&'static str, Error> {
        Ok(["released", "expired", "superseded"][self.eval(RELEASE)? as usize])
    }

    fn renew(&mut self) -> Result<bool, Error> {
        Ok(self.eval(RENEW)? == 1)
    }

    fn held(&mut self) -> Result<bool, Error> {
        Ok(self.eval(HELD)? == 1)
    }
}

impl RedisLock {
    /// EVAL of a script that answers with a number.
    fn eval(&self, script: &str) -> Result<u64, Error> {
        let (fence, ttl) = (format!("fence:{}", self.task.key), self.task.ttl.as_millis().to_string());
        let words = ["EVAL", script, "2", &self.task.lock_key, &fence, &self.owner, &ttl];
        let mut request = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| request += &format!("${}\r\n{word}\r\n", word.len()));
        let address = self.task.endpoints[0].to_socket_addrs()?.next().ok_or("no address")?;
        let mut redis = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
        redis.set_read_timeout(Some(Duration::from_secs(5)))?;
        redis.write_all(request.as_bytes())?;
        let mut answer = String::new();
        BufReader::new(redis).read_line(&mut answer)?;
        let number = answer.trim().strip_prefix(':').and_then(|number| number.parse().ok());
        number.ok_or_else(|| format!("Redis answers {answer:?}").into())
    }
}

fn main() {
    let make = |task| RedisLock { task, owner: String::new() };
    let only = &[("FENCEPOST_BACKEND", &["redis"] as &[&str])];
    fencepost_kit::run(make, Offers { only, tokens: true, renew: true, held: true });
}
