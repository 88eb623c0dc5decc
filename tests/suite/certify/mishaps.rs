//! Stores that go away, come back or are given up in the middle of a certificate.

use super::{DEADLINE, certify, certify_s3, objects_at, with_verdict};
use crate::support::{
    S3Process, command, docker_shared, free_port, fresh_folder, machine_shared, own_postgres, start,
};
use fencepost::resource::open_bucket;
use fencepost::resource::s3::{DEFAULT_BUCKET, DEFAULT_KEY};
use fencing_lock::AwsCredentials;
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use std::fs;
use std::process::Command;
use std::thread::JoinHandle;
use tempfile::TempDir;
use tokio::task::spawn_blocking;

/// A command of the shell that lets this process do something and waits until it is done.
pub struct Restart<T> {
    pub command: String,
    done: JoinHandle<T>,
    _folder: TempDir,
}

impl<T: Send + 'static> Restart<T> {
    pub fn new(restart: impl FnOnce() -> T + Send + 'static) -> Restart<T> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [asked, done] = ["asked", "done"].map(|name| folder.path().join(name));
        for fifo in [&asked, &done] {
            mkfifo(fifo, Mode::S_IRWXU).expect("a pipe with a name");
        }
        let command = format!("echo > {}; cat {}", asked.display(), done.display());
        let done = std::thread::spawn(move || {
            // A pipe opens when the other end does.
            fs::read(asked).expect("somebody asks");
            let restarted = restart();
            fs::write(done, "done").expect("somebody waits");
            restarted
        });
        Restart {
            command,
            done,
            _folder: folder,
        }
    }

    /// Returns what the restart returned; the command must have run.
    pub fn join(self) -> T {
        self.done.join().expect("the restart succeeds")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_s3_forgets_nothing_in_a_restart() {
    let _turn = machine_shared();
    let (folder, port) = (fresh_folder("certify-restart"), free_port());
    let process = S3Process::start(&folder, port);
    let endpoint = process.endpoint();
    let restart = Restart::new(move || {
        drop(process);
        S3Process::start(&folder, port)
    });
    let more = ["--format", "json", "--restart", &restart.command];
    let ended = certify_s3(&endpoint, &more).await.expect_code(0);
    assert_eq!(with_verdict(&ended.stdout, "kept").len(), 11, "{ended}");
    let _process = restart.join();
    assert_eq!(objects_at(&endpoint).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_forgets_nothing_in_a_restart() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let url = format!("postgres://{}", postgres.address);
    let restart = Restart::new(move || {
        postgres.stop();
        postgres.start();
        postgres
    });
    let more = [&url, "--format", "json", "--restart", &restart.command];
    let ended = certify(&more).await;
    let _postgres = restart.join();
    let ended = ended.expect_code(0);
    let kept = with_verdict(&ended.stdout, "kept");
    assert!(kept.iter().any(|it| it == "restart"), "{ended}");
}

#[tokio::test]
async fn a_restart_that_fails_leaves_its_property_open() {
    let _turn = machine_shared();
    let process = S3Process::start(&fresh_folder("certify-no-restart"), 0);
    let more = ["--restart", "exit 3"];
    let ended = certify_s3(&process.endpoint(), &more).await;
    ended.expect_code(2).expect_said(&[
        "the command after --restart failed: exit status: 3",
        "not everything could be examined",
    ]);
    assert_eq!(objects_at(&process.endpoint()).await, Vec::<String>::new());
}

/// The certificate of an S3, as it is started by hand.
fn certificate(endpoint: &str) -> Command {
    let store = format!("s3://{DEFAULT_BUCKET}");
    command([
        "certify",
        &store,
        "--endpoint",
        endpoint,
        "--format",
        "json",
    ])
}

/// Writes an object that is not the certificate's.
async fn theirs(endpoint: &str) {
    let credentials = AwsCredentials::new(DEFAULT_KEY, DEFAULT_KEY);
    let store = open_bucket(endpoint, DEFAULT_BUCKET, &credentials, DEADLINE).unwrap();
    store
        .put(&Path::from("theirs"), "stays".into())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_goes_away_is_reported_with_what_may_be_left() {
    let _turn = machine_shared();
    let (folder, port) = (fresh_folder("certify-gone"), free_port());
    let process = S3Process::start(&folder, port);
    let endpoint = process.endpoint();
    theirs(&endpoint).await;
    let certificate = start(certificate(&endpoint));
    process.await_row("stale").await;
    drop(process);
    let ended = spawn_blocking(|| certificate.wait()).await.unwrap();
    let ended = ended.expect_code(70).expect_said(&[
        "the store is gone",
        "cannot remove everything: objects below s3://fencepost/fencepost-certify-",
    ]);
    assert!(!with_verdict(&ended.stdout, "not_examined").is_empty());
    let process = S3Process::start(&folder, port);
    let left = objects_at(&process.endpoint()).await;
    let (ours, others): (Vec<&String>, Vec<&String>) = left
        .iter()
        .partition(|key| key.starts_with("fencepost-certify-"));
    assert_eq!(others, ["theirs"]);
    // It says where they are.
    let prefix = ours[0].split('/').next().expect("a prefix");
    assert!(ended.stderr.contains(&format!("{prefix}/")), "{ended}");
}

/// The requests that are under way when Ctrl-C comes have their effect later.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_removes_everything() {
    let _turn = machine_shared();
    let process = S3Process::start(&fresh_folder("certify-interrupt"), 0);
    let endpoint = process.endpoint();
    theirs(&endpoint).await;
    let certificate = start(certificate(&endpoint));
    process.await_row("replace-1").await;
    process.signal(Signal::SIGSTOP);
    // Whatever comes at the same moment is the same wish.
    certificate.signal(Signal::SIGINT);
    certificate.signal(Signal::SIGTERM);
    certificate.await_said("interrupted");
    process.signal(Signal::SIGCONT);
    let ended = spawn_blocking(|| certificate.wait()).await.unwrap();
    ended.expect_code(130);
    assert_eq!(objects_at(&endpoint).await, ["theirs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_interrupt_ends_at_once_and_says_what_may_be_left() {
    let _turn = machine_shared();
    let process = S3Process::start(&fresh_folder("certify-interrupt-twice"), 0);
    let certificate = start(certificate(&process.endpoint()));
    process.await_row("replace-1").await;
    process.signal(Signal::SIGSTOP);
    certificate.signal(Signal::SIGINT);
    certificate.await_said("once more stops at once");
    certificate.signal(Signal::SIGINT);
    let ended = spawn_blocking(|| certificate.wait()).await.unwrap();
    ended.expect_code(130).expect_said(&[
        "stopped at once; objects below s3://fencepost/fencepost-certify-",
        "may be left",
    ]);
    process.signal(Signal::SIGCONT);
}
