//! A real disk that fails: ext4 in a sparse file on a tmpfs. While the tmpfs is full, no new
//! block can be written. The kernel reports that to the next sync, once, and then treats the
//! pages as clean.
//!
//! There is no journal, because ext4 would stop at the first block of it that fails. A request
//! writes one block, because the loop device does not report that only a part was written.

use nix::sched::{CloneFlags, unshare};
use std::fs::{self, File};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use tempfile::TempDir;

const IMAGE_BYTES: u64 = 16 << 20;

pub struct LoopDisk {
    folder: TempDir,
    image: PathBuf,
    /// Takes all the space that the image has left.
    ballast: PathBuf,
}

/// Runs a test with such a disk, and says so where that is not possible: only root may mount.
/// The mounts are those of one thread, so they end with it.
pub fn with_loop_disk(name: &str, test: impl FnOnce(LoopDisk) + Send + 'static) {
    let run = || match LoopDisk::mount() {
        Ok(disk) => {
            test(disk);
            None
        }
        Err(why) => Some(why),
    };
    let ended = thread::scope(|scope| scope.spawn(run).join());
    if let Some(why) = ended.unwrap_or_else(|panic| resume_unwind(panic)) {
        // Unlike the macros, this is shown although the test passes.
        let _ = writeln!(
            io::stderr(),
            "skipped {name}: cannot mount a disk: {why}; run it as root"
        );
    }
}

impl LoopDisk {
    fn mount() -> Result<LoopDisk, String> {
        unshare(CloneFlags::CLONE_NEWNS).map_err(|errno| format!("unshare: {errno}"))?;
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        run("mount", &["--make-rprivate", "/"])?;
        let disk = LoopDisk {
            image: folder.path().join("tmpfs/image"),
            ballast: folder.path().join("tmpfs/ballast"),
            folder,
        };
        for mountpoint in [disk.tmpfs(), disk.path()] {
            fs::create_dir(mountpoint).map_err(|error| error.to_string())?;
        }
        let tmpfs = disk.tmpfs().display().to_string();
        run("mount", &["-t", "tmpfs", "-o", "size=24m", "tmpfs", &tmpfs])?;
        let made = File::create(&disk.image).and_then(|file| file.set_len(IMAGE_BYTES));
        made.map_err(|error| error.to_string())?;
        let image = disk.image.display().to_string();
        let without_journal = ["-q", "-O", "^has_journal", "-b", "4096", &image];
        run("mkfs.ext4", &without_journal)?;
        disk.attach(&disk.image)?;
        Ok(disk)
    }

    fn attach(&self, image: &Path) -> Result<(), String> {
        let image = image.display().to_string();
        let device = run("losetup", &["--find", "--show", &image])?;
        let queue = device.replace("/dev/", "/sys/block/") + "/queue/max_sectors_kb";
        let mounted = fs::write(&queue, "4")
            .map_err(|error| format!("{queue}: {error}"))
            .and_then(|()| run("mount", &[&device, &self.path().display().to_string()]));
        // It stays for as long as it is mounted.
        run("losetup", &["--detach", &device])?;
        mounted.map(drop)
    }

    fn tmpfs(&self) -> PathBuf {
        self.folder.path().join("tmpfs")
    }

    /// Returns the folder that is on this disk.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    pub fn fill(&self) {
        let mut ballast = File::create(&self.ballast).unwrap();
        let block = [b'x'; 4096];
        let full = std::iter::repeat_with(|| ballast.write(&block)).find_map(Result::err);
        assert_eq!(full.unwrap().kind(), io::ErrorKind::StorageFull);
    }

    pub fn free(&self) {
        fs::remove_file(&self.ballast).unwrap();
    }

    /// Loses the page cache: only blocks that have been written to the device remain.
    pub fn lose_power(&self) {
        let left = self.folder.path().join("image-after");
        fs::copy(&self.image, &left).unwrap();
        // Without a journal, the tables of free blocks are behind; it reports what it mends.
        let _ = run("e2fsck", &["-f", "-y", &left.display().to_string()]);
        let disk = self.path().display().to_string();
        run("umount", &["--lazy", &disk]).unwrap();
        self.attach(&left).unwrap();
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        for mountpoint in [self.path(), self.tmpfs()] {
            let _ = run("umount", &["--lazy", &mountpoint.display().to_string()]);
        }
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(format!("{program}: {}", text(&output.stderr))),
    }
}
