//! The files in a folder of this machine.

use super::super::log::{LogError, failed};
use super::Storage;
use bounded_io::files::{self, Links};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

pub const FILE_NAME: &str = "log.jsonl";
pub const MARK_FILE_NAME: &str = "log.mark";
/// A file that is not in its place yet. One that a killed process left is removed.
const COPY_FILE_NAME: &str = "log.new";

const CHUNK_BYTES: usize = 64 * 1024;
const MAX_MARK_BYTES: u64 = 4096;

pub struct Folder {
    dir: PathBuf,
    path: PathBuf,
    /// It is locked, because two processes that append to one file would each believe in an
    /// order that the file does not have.
    log: Flock<File>,
    copy: Option<Flock<File>>,
    mark: Option<File>,
}

impl Folder {
    /// Opens the log in a folder, or creates it.
    pub fn open(dir: &Path) -> Result<Folder, LogError> {
        let path = dir.join(FILE_NAME);
        create_dir_durably(dir)?;
        let file = files::append_private(&path).map_err(failed("open", &path))?;
        let log = lock(file, &path)?;
        // Its last owner may have put a copy in its place and ended since it was opened.
        let here = log.metadata().map_err(failed("read", &path))?;
        let there = path.symlink_metadata().map_err(failed("read", &path))?;
        if (here.dev(), here.ino()) != (there.dev(), there.ino()) {
            return Err(LogError::InUse { path });
        }
        Ok(Folder {
            dir: dir.to_owned(),
            path,
            log,
            copy: None,
            mark: None,
        })
    }

    /// Uses any file as the log, to test with real errors of the kernel. Its lock is shared,
    /// because all tests of a machine share one `/dev/full`.
    #[cfg(test)]
    pub fn over(file: File, path: &Path) -> Folder {
        Folder {
            dir: PathBuf::from("folder-of-a-test"),
            path: path.to_owned(),
            log: Flock::lock(file, FlockArg::LockSharedNonblock).unwrap(),
            copy: None,
            mark: Some(tempfile::tempfile().unwrap()),
        }
    }

    /// Creates an empty file that is not in its place yet.
    fn aside(&self) -> Result<(File, PathBuf), LogError> {
        let path = self.dir.join(COPY_FILE_NAME);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path)(error));
            }
            _ => {}
        }
        let file = files::append_private(&path).map_err(failed("create", &path))?;
        Ok((file, path))
    }

    fn put_in_place(&self, place: &Path) -> Result<(), LogError> {
        let aside = self.dir.join(COPY_FILE_NAME);
        fs::rename(aside, place).map_err(failed("replace", place))?;
        sync_dir(&self.dir)
    }

    fn mark_path(&self) -> PathBuf {
        self.dir.join(MARK_FILE_NAME)
    }
}

impl Storage for Folder {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> Result<u64, LogError> {
        let about = self.log.metadata().map_err(failed("read", &self.path))?;
        Ok(about.len())
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, LogError> {
        let read = self.log.read_at(into, at);
        read.map_err(failed("read", &self.path))
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let written = (&*self.log).write_all(bytes);
        written.map_err(failed("write to", &self.path))
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.log.sync_data().map_err(failed("sync", &self.path))
    }

    fn copy(&mut self, bytes: u64, each: &mut dyn FnMut(&[u8])) -> Result<(), LogError> {
        let (file, path) = self.aside()?;
        let file = lock(file, &path)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut copied = 0;
        while copied < bytes {
            let wanted = (bytes - copied).min(CHUNK_BYTES as u64) as usize;
            let read = self.read_at(copied, &mut chunk[..wanted])?;
            if read == 0 {
                break;
            }
            let written = (&*file).write_all(&chunk[..read]);
            written.map_err(failed("write to", &path))?;
            each(&chunk[..read]);
            copied += read as u64;
        }
        file.sync_all().map_err(failed("sync", &path))?;
        self.copy = Some(file);
        Ok(())
    }

    fn adopt(&mut self) -> Result<(), LogError> {
        self.put_in_place(&self.path)?;
        self.log = self.copy.take().expect("a copy was made");
        Ok(())
    }

    fn mark(&self) -> Result<Option<Vec<u8>>, LogError> {
        let path = self.mark_path();
        match files::read(&path, Links::Refuse, MAX_MARK_BYTES) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            content => content.map(Some).map_err(failed("read", &path)),
        }
    }

    fn new_mark(&mut self, block: &[u8]) -> Result<(), LogError> {
        let (_, path) = self.aside()?;
        // Without O_APPEND, which would add to it instead of writing over it.
        let file = files::edit_private(&path).map_err(failed("open", &path))?;
        let written = file.write_all_at(block, 0).and_then(|()| file.sync_all());
        written.map_err(failed("write to", &path))?;
        self.put_in_place(&self.mark_path())?;
        self.mark = Some(file);
        Ok(())
    }

    fn write_mark(&mut self, block: &[u8]) -> Result<(), LogError> {
        let file = self.mark.as_ref().expect("there is a mark");
        let written = file.write_all_at(block, 0);
        written.map_err(failed("write to", &self.mark_path()))
    }

    fn sync_mark(&mut self) -> Result<(), LogError> {
        let file = self.mark.as_ref().expect("there is a mark");
        file.sync_all().map_err(failed("sync", &self.mark_path()))
    }
}

fn lock(file: File, path: &Path) -> Result<Flock<File>, LogError> {
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(file) => Ok(file),
        Err((_, Errno::EWOULDBLOCK)) => Err(LogError::InUse {
            path: path.to_owned(),
        }),
        Err((_, errno)) => Err(failed("lock", path)(errno.into())),
    }
}

/// Creates a directory durably: the directory that contains it must be synced too.
fn create_dir_durably(dir: &Path) -> Result<(), LogError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parents: Vec<&Path> = dir
        .ancestors()
        .skip(1)
        .map(|parent| {
            if parent == Path::new("") {
                Path::new(".")
            } else {
                parent
            }
        })
        .collect();
    let existing = parents.iter().take_while(|parent| !parent.is_dir()).count();
    let mut private = DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(dir);
    made.map_err(failed("create the directory", dir))?;
    parents
        .iter()
        .take(existing + 1)
        .try_for_each(|parent| sync_dir(parent))
}

fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(failed("sync the directory", dir))
}
