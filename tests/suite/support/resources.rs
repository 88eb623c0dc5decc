//! Resources of every kind, for tests that compare them.

use super::command::command;
use fencepost::model::{Fence, FencingToken, LogRow, RowOutcome};
use fencepost::resource::s3::{self, DEFAULT_BUCKET, DEFAULT_KEY};
use fencepost::resource::{self, Config, ResourceClient, Stored, WriteAnswer, WriteRequest};
use fencing_lock::AwsCredentials;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::time::timeout;

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

pub fn resource_client(url: &str) -> ResourceClient {
    ResourceClient::new(url, ANSWER_DEADLINE).unwrap()
}

/// A write by a holder; an empty name is none.
pub fn a_write(key: &str, token: u64, seq: u64, owner: &str, body: &str) -> WriteRequest {
    WriteRequest {
        key: key.to_owned(),
        token: Some(FencingToken(token)),
        token_seq: seq,
        owner: (!owner.is_empty()).then(|| owner.to_owned()),
        based_on: Some(token),
        body: body.to_owned().into(),
    }
}

/// Starts the HTTP resource, which stops with the test. Returns its address.
pub async fn http_resource(fence: Fence, folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let opened = resource::open(Config::new(fence, folder)).unwrap();
    tokio::spawn(opened.serve(listener, std::future::pending()));
    url
}

/// The S3 of this program. It stops with the test, and its folder with this.
pub struct OwnS3 {
    _folder: TempDir,
    /// `host:port`
    pub address: String,
}

impl OwnS3 {
    pub async fn start() -> OwnS3 {
        OwnS3::with(|_| {}).await
    }

    /// Starts one with other settings.
    pub async fn with(change: impl FnOnce(&mut s3::Config)) -> OwnS3 {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut config = s3::Config {
            data_dir: folder.path().to_owned(),
            credentials: AwsCredentials::new(DEFAULT_KEY, DEFAULT_KEY),
            bucket: DEFAULT_BUCKET.to_owned(),
            #[cfg(debug_assertions)]
            mutant: None,
        };
        change(&mut config);
        let store = s3::open(config).expect("a store");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound").to_string();
        tokio::spawn(store.serve(listener, std::future::pending()));
        OwnS3 {
            _folder: folder,
            address,
        }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// The S3 of this program as a process of its own, which is killed with this.
pub struct S3Process {
    child: Child,
    address: String,
}

impl S3Process {
    /// Starts it on a port of this machine; 0 lets the system choose.
    pub fn start(folder: &Path, port: u16) -> S3Process {
        let mut role = command(["s3", "--listen", &format!("127.0.0.1:{port}"), "--data"]);
        role.arg(folder).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = role.spawn().expect("the program starts");
        let stdout = child.stdout.take().expect("piped");
        let mut process = S3Process {
            child,
            address: String::new(),
        };
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        read.expect("it says where it listens");
        let address = line.strip_prefix("s3 listening on ");
        let address = address.and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("no address in {line:?}"));
        process.address = address.to_owned();
        process
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).expect("it runs");
    }

    /// Returns when the log has a row of this key.
    pub async fn await_row(&self, key: &str) {
        let url = format!("{}/-/log?follow=true", self.endpoint());
        let waiting = async {
            let mut answer = reqwest::get(url).await.expect("a log");
            let mut read = Vec::new();
            while let Some(part) = answer.chunk().await.expect("a part of the log") {
                read.extend_from_slice(&part);
                let text = String::from_utf8_lossy(&read);
                if text.contains(&format!("/{key}\"")) {
                    return;
                }
            }
            panic!("the log has ended");
        };
        let waited = timeout(ANSWER_DEADLINE, waiting).await;
        waited.unwrap_or_else(|_| panic!("no row of {key} in time"));
    }
}

impl Drop for S3Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A row as every kind of resource has to have it. Positions may have gaps in some of them, so each
/// row is named by its place in the log.
fn comparable(log: &[LogRow]) -> Vec<LogRow> {
    let numbered = log.iter().zip(1..);
    let row = |(row, place): (&LogRow, u64)| LogRow {
        seq: place,
        at_ns: 0,
        ..row.clone()
    };
    numbered.map(row).collect()
}

/// What is stored. Without a fence, not every store knows the highest token.
fn value_of(stored: Option<Stored>, fence: Fence) -> Option<(String, Option<FencingToken>)> {
    let highest = |stored: &Stored| stored.max_fence.filter(|_| fence == Fence::On);
    stored.map(|stored| (format!("{:?}", stored.value), highest(&stored)))
}

/// Sends the same random writes to the HTTP resource and to `others`, clients of one other
/// resource that take turns. Answers, values and logs have to be the same.
pub async fn decides_as_the_http_resource(others: &[ResourceClient], fence: Fence, seed: u64) {
    let folder = tempfile::tempdir().unwrap();
    let http = resource_client(&http_resource(fence, folder.path()).await);
    let before = others[0].log().await.unwrap().len();
    let mut random = fastrand::Rng::with_seed(seed);
    for number in 0..400 {
        let other = &others[random.usize(0..others.len())];
        let key = format!("{fence}-{}", random.u8(0..3));
        let owner = ["", "a", "b"][random.usize(0..3)];
        let body = ["x", "y"][random.usize(0..2)];
        let attempt = a_write(&key, random.u64(1..12), random.u64(0..3), owner, body);
        let context = || format!("write {number} of seed {seed}: {attempt:?}");
        let answers = (http.put(&attempt).await, other.put(&attempt).await);
        match (answers.0.unwrap(), answers.1.unwrap()) {
            (WriteAnswer::Accepted { .. }, WriteAnswer::Accepted { .. }) => {}
            (one, other) => assert_eq!(one, other, "{}", context()),
        }
        if random.bool() {
            let values = (http.get(&key).await, other.get(&key).await);
            let values = (values.0.unwrap(), values.1.unwrap());
            let values = (value_of(values.0, fence), value_of(values.1, fence));
            assert_eq!(values.0, values.1, "{}", context());
        }
    }
    let (http, other) = (http.log().await.unwrap(), others[0].log().await.unwrap());
    assert_eq!(comparable(&http), comparable(&other[before..]));
    let outcomes = [
        RowOutcome::Accepted,
        RowOutcome::Duplicate,
        RowOutcome::Rejected,
    ];
    let came = |outcome: &&RowOutcome| http.iter().any(|row| row.outcome == **outcome);
    let expected = if fence == Fence::On { 3 } else { 1 };
    assert_eq!(outcomes.iter().filter(came).count(), expected);
}

/// Sixteen writers of one key come at the same moment; each has to be decided on after what the one
/// before it left.
pub async fn one_of_many_writers_at_a_time_decides(client: impl Fn() -> ResourceClient) {
    let reader = client();
    for round in 0..10 {
        let key = format!("key-{round}");
        let writers = (1..=16).map(|token| {
            let (client, key) = (client(), key.clone());
            let owner = format!("owner-{token}");
            tokio::spawn(async move { client.put(&a_write(&key, token, 0, &owner, "x")).await })
        });
        let mut refused = 0;
        for answer in futures_util::future::join_all(writers).await {
            if let WriteAnswer::Rejected { seen, got } = answer.unwrap().unwrap() {
                refused += 1;
                assert!(
                    seen >= got,
                    "{got} was refused although {seen} was the highest"
                );
            }
        }
        let log = reader.log().await.unwrap();
        let log: Vec<&LogRow> = log.iter().filter(|row| row.key == key).collect();
        let mut highest = None;
        for row in &log {
            assert_eq!(row.seen, highest, "{row:?}");
            let is_accepted = row.outcome == RowOutcome::Accepted;
            assert_eq!(is_accepted, row.token > highest, "{row:?}");
            highest = highest.max(row.token);
        }
        let rejected = log.iter().filter(|row| row.outcome == RowOutcome::Rejected);
        // A refusal may have two rows if a higher token came between them.
        let owners: HashSet<&Option<String>> = rejected.map(|row| &row.owner).collect();
        assert_eq!(owners.len(), refused, "every refusal is in the log");
        let stored = reader.get(&key).await.unwrap().unwrap();
        assert_eq!(stored.max_fence, Some(FencingToken(16)));
        assert_eq!(highest, Some(FencingToken(16)));
    }
}
