use crate::redis::RedisWriter;
use crate::support::servers::own_durable_redis;
use crate::targets::{Bound, Targets};
use crate::turns::{Writer, contest};
use crate::{Arguments, Trouble, VALUE};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let redis = own_durable_redis();
    let resource = Resource::start()?;
    let (mut floor, mut ours) = (Vec::new(), Vec::new());
    for number in 0..arguments.connections {
        floor.push(RedisWriter::connect(&redis.address, number).await?);
        ours.push(HttpWriter::connect(&resource.address, number).await?);
    }
    let ratio = contest(
        arguments,
        ("Redis, SET, appendfsync always", &mut floor),
        ("HTTP resource, PUT with a token", &mut ours),
    );
    let ratio = ratio.await?;
    let mut targets = Targets::default();
    let what = "durable PUTs of the HTTP resource to SETs of that Redis".to_owned();
    targets.expect(what, ratio, Bound::AtLeast(1.0));
    Ok(targets)
}

/// The role as a process of its own, which is killed with this.
struct Resource {
    child: Child,
    address: String,
    _folder: TempDir,
}

impl Resource {
    fn start() -> Result<Resource, Trouble> {
        // On the disk of the build, and not in a temporary folder that may be in memory.
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
        let mut role = Command::new(env!("CARGO_BIN_EXE_fencepost"));
        role.args(["resource", "--listen", "127.0.0.1:0", "--data"]);
        role.arg(folder.path()).stdin(Stdio::null());
        let mut child = role.stdout(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut resource = Resource {
            child,
            address: String::new(),
            _folder: folder,
        };
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let words = line.split([' ', ',']);
        let mut words = words.skip_while(|word| *word != "on");
        let address = words.nth(1).ok_or_else(|| format!("it says {line:?}"))?;
        resource.address = address.trim().to_owned();
        Ok(resource)
    }
}

impl Drop for Resource {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that puts with a token that grows.
struct HttpWriter {
    stream: TcpStream,
    key: String,
    token: u64,
    answer: Vec<u8>,
}

impl HttpWriter {
    async fn connect(address: &str, number: usize) -> Result<HttpWriter, Trouble> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(HttpWriter {
            stream,
            key: format!("key-{number}"),
            token: 0,
            answer: Vec::with_capacity(1024),
        })
    }
}

impl Writer for HttpWriter {
    async fn write(&mut self) -> Result<(), Trouble> {
        self.token += 1;
        let request = format!(
            "PUT /r/{} HTTP/1.1\r\nhost: resource\r\nx-fence-token: {}\r\nx-owner: worker-1\r\ncontent-length: {}\r\n\r\n{VALUE}",
            self.key,
            self.token,
            VALUE.len(),
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err("the resource closed a connection".into());
            }
            if is_whole(&self.answer) {
                break;
            }
        }
        match self.answer.starts_with(b"HTTP/1.1 200") {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&self.answer).into_owned().into()),
        }
    }
}

/// Returns whether an answer has its head and all of its body.
fn is_whole(answer: &[u8]) -> bool {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else { return false };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let mut lines = head.lines();
    let length = lines.find_map(|line| line.strip_prefix("content-length: "));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    length.is_some_and(|length| answer.len() >= end + 4 + length)
}
