use super::*;
use fencing_lock::servers::{redis_fence_key, redis_lock_key};

#[derive(Clone, Copy, Debug)]
pub(in crate::load) enum Each {
    /// The lock, as a grant writes it: `SET key owner NX PX ttl`.
    Lock { ttl: Duration },
    /// The counter of a lock, as a grant with a floor leaves it behind: `SET key token PX idle`.
    Counter { idle: Duration },
    /// The removal of lock and counter.
    Unlink,
}

/// The writer of the command for one key after the other. The parts that are the same for all
/// keys are prepared once.
pub(in crate::load) struct Commands {
    names: Names,
    each: Each,
    lock: KeyFrame,
    fence: KeyFrame,
    /// The part after the value.
    tail: Vec<u8>,
}

/// The parts of a key before and after the number of the lock.
struct KeyFrame {
    before: Vec<u8>,
    after: Vec<u8>,
}

/// Microseconds in 2023: as many digits as a token from the server's clock.
const FIRST_TOKEN: u64 = 1_700_000_000_000_000;

impl Commands {
    pub(in crate::load) fn new(names: Names, each: Each) -> Commands {
        let mut tail = Vec::new();
        match each {
            Each::Lock { ttl } => {
                bulk(&mut tail, b"NX");
                bulk(&mut tail, b"PX");
                bulk(&mut tail, ttl.as_millis().to_string().as_bytes());
            }
            Each::Counter { idle } => {
                bulk(&mut tail, b"PX");
                bulk(&mut tail, idle.as_millis().to_string().as_bytes());
            }
            Each::Unlink => {}
        }
        Commands {
            lock: KeyFrame::of(&names, redis_lock_key),
            fence: KeyFrame::of(&names, redis_fence_key),
            names,
            each,
            tail,
        }
    }

    /// Writes one command, which is answered with one line.
    pub(in crate::load) fn write(&self, index: u64, out: &mut Vec<u8>) {
        match self.each {
            Each::Lock { .. } => {
                out.extend_from_slice(b"*6\r\n$3\r\nSET\r\n");
                self.lock.write(index, out);
                let mut owner = [0; uuid::fmt::Hyphenated::LENGTH];
                let owner = self
                    .names
                    .owner(index)
                    .hyphenated()
                    .encode_lower(&mut owner);
                bulk(out, owner.as_bytes());
                out.extend_from_slice(&self.tail);
            }
            Each::Counter { .. } => {
                out.extend_from_slice(b"*5\r\n$3\r\nSET\r\n");
                self.fence.write(index, out);
                let mut digits = [0; 20];
                bulk(out, decimal(FIRST_TOKEN + index, &mut digits));
                out.extend_from_slice(&self.tail);
            }
            Each::Unlink => {
                out.extend_from_slice(b"*3\r\n$6\r\nUNLINK\r\n");
                self.lock.write(index, out);
                self.fence.write(index, out);
            }
        }
    }
}

impl KeyFrame {
    fn of(names: &Names, key: fn(&str) -> String) -> KeyFrame {
        // A name is its stem and a number, so in the key of the bare stem the number belongs
        // right after the stem.
        let framed = key(names.stem());
        let at = framed.find(names.stem()).unwrap_or_default() + names.stem().len();
        KeyFrame {
            before: framed.as_bytes()[..at].to_vec(),
            after: framed.as_bytes()[at..].to_vec(),
        }
    }

    fn write(&self, index: u64, out: &mut Vec<u8>) {
        let mut digits = [0; 20];
        let digits = decimal(index, &mut digits);
        let mut length = [0; 20];
        let bytes = self.before.len() + digits.len() + self.after.len();
        out.push(b'$');
        out.extend_from_slice(decimal(bytes as u64, &mut length));
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.before);
        out.extend_from_slice(digits);
        out.extend_from_slice(&self.after);
        out.extend_from_slice(b"\r\n");
    }
}

pub(super) fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    let mut digits = [0; 20];
    out.push(b'*');
    out.extend_from_slice(decimal(words.len() as u64, &mut digits));
    out.extend_from_slice(b"\r\n");
    for word in words {
        bulk(out, word);
    }
}

fn bulk(out: &mut Vec<u8>, word: &[u8]) {
    let mut digits = [0; 20];
    out.push(b'$');
    out.extend_from_slice(decimal(word.len() as u64, &mut digits));
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// Formats a number without an allocation: there are ten million of them and more.
fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::cmd;

    const INDEXES: [u64; 5] = [0, 9, 10, 9_999_999, u64::MAX - FIRST_TOKEN];

    fn written(each: Each, index: u64) -> String {
        let mut out = Vec::new();
        Commands::new(Names::new("gen", 7), each).write(index, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn packed(command: &redis::Cmd) -> String {
        String::from_utf8(command.get_packed_command()).unwrap()
    }

    #[test]
    fn commands_are_what_a_client_library_would_send() {
        let names = Names::new("gen", 7);
        for index in INDEXES {
            let (lock, fence) = (
                format!("lock:{{gen-7-{index}}}"),
                format!("fence:{{gen-7-{index}}}"),
            );
            let ttl = Duration::from_secs(60);
            let owner = names.owner(index).to_string();
            let mut set = cmd("SET");
            set.arg(&lock).arg(owner).arg(&["NX", "PX", "60000"]);
            assert_eq!(written(Each::Lock { ttl }, index), packed(&set));
            let mut count = cmd("SET");
            count.arg(&fence).arg(FIRST_TOKEN + index);
            count.arg(&["PX", "60000"]);
            assert_eq!(written(Each::Counter { idle: ttl }, index), packed(&count));
            let mut unlink = cmd("UNLINK");
            unlink.arg(&lock).arg(&fence);
            assert_eq!(written(Each::Unlink, index), packed(&unlink));
        }
    }

    #[test]
    fn words_make_a_command() {
        let mut out = Vec::new();
        command(&mut out, &[b"AUTH", b"", b"p w"]);
        let mut auth = cmd("AUTH");
        auth.arg("").arg("p w");
        assert_eq!(out, auth.get_packed_command());
    }
}
