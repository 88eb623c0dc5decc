//! S3s that are not ours. What comes out here is in docs/fencing-a-real-resource.md.

use super::{certify_s3, with_verdict};
use crate::support::{docker_shared, free_port, machine_shared, own_moto, tmp};
use fencepost::resource::s3::{DEFAULT_BUCKET, DEFAULT_KEY};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const S3S_FS: &str = "0.14.1";
const START_DEADLINE: Duration = Duration::from_secs(30);

/// An s3s-fs with an empty bucket, which is killed with this.
struct S3sFs {
    child: Child,
    endpoint: String,
    _root: tempfile::TempDir,
}

impl S3sFs {
    fn start() -> S3sFs {
        let root = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(root.path().join(DEFAULT_BUCKET)).expect("a bucket");
        let port = free_port();
        let mut server = Command::new(installed());
        server.args(["--host", "127.0.0.1", "--port", &port.to_string()]);
        server.args(["--access-key", DEFAULT_KEY, "--secret-key", DEFAULT_KEY]);
        server.arg(root.path()).stdin(Stdio::null());
        server.stdout(Stdio::null()).stderr(Stdio::null());
        let server = S3sFs {
            child: server.spawn().expect("s3s-fs starts"),
            endpoint: format!("http://127.0.0.1:{port}"),
            _root: root,
        };
        // It does not say when it listens.
        let until = Instant::now() + START_DEADLINE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < until, "s3s-fs does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for S3sFs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds s3s-fs once for this folder of builds. It needs a newer Rust than this program, so it is no
/// dependency.
fn installed() -> PathBuf {
    let root = tmp().join(format!("s3s-fs-{S3S_FS}"));
    let program = root.join("bin/s3s-fs");
    if !program.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["install", "s3s-fs", "--version", S3S_FS, "--locked"]);
        cargo.args(["--features", "binary", "--debug", "--root"]);
        let built = cargo.arg(&root).env_remove("CARGO_TARGET_DIR").output();
        let built = built.expect("cargo runs");
        let errors = String::from_utf8_lossy(&built.stderr);
        assert!(built.status.success(), "{errors}");
    }
    program
}

/// It looks for the condition and writes to a file in two steps, the body in between.
#[tokio::test(flavor = "multi_thread")]
async fn s3s_fs_compares_before_the_body_has_arrived() {
    let _turn = machine_shared();
    let server = S3sFs::start();
    let ended = certify_s3(&server.endpoint, &["--format", "json"]).await;
    let ended = ended.expect_code(1);
    let broken = with_verdict(&ended.stdout, "broken");
    for property in ["concurrent-creates", "concurrent-replaces", "slow-body"] {
        assert!(broken.iter().any(|it| it == property), "{ended}");
    }
    assert_eq!(broken.len(), 3, "{ended}");
    assert_eq!(with_verdict(&ended.stdout, "depends"), ["equal-content"]);
}

/// One who writes after another is refused as it has to be; a restart forgets everything.
#[tokio::test(flavor = "multi_thread")]
async fn moto_forgets_everything_in_a_restart() {
    let _turn = docker_shared();
    let moto = own_moto();
    let endpoint = format!("http://{}", moto.address);
    let make = || {
        let url = format!("{endpoint}/{DEFAULT_BUCKET}");
        async { reqwest::Client::new().put(url).send().await.expect("moto") }
    };
    assert!(make().await.status().is_success());
    let ended = certify_s3(&endpoint, &["--format", "json"]).await;
    let ended = ended.expect_code(0);
    assert_eq!(with_verdict(&ended.stdout, "depends"), ["equal-content"]);
    assert_eq!(with_verdict(&ended.stdout, "kept").len(), 9, "{ended}");

    let restart = super::mishaps::Restart::new(move || {
        moto.stop();
        moto.start();
        moto
    });
    let more = ["--format", "json", "--restart", &restart.command];
    let ended = certify_s3(&endpoint, &more).await;
    let _moto = restart.join();
    let ended = ended.expect_code(1);
    assert_eq!(with_verdict(&ended.stdout, "broken"), ["restart"]);
}
