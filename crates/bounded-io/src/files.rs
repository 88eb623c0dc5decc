//! Files that somebody else may have made, and files that only this user may write.
//!
//! A file to read may be anything: a pipe that never ends, a device, a link to somebody's
//! secret, a file that is larger than the memory. A file to write may find a link in its
//! place. This module handles both, once.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest file that somebody writes by hand, such as a scenario or a topology.
pub const BY_HAND: u64 = 4 << 20;
/// The largest document, such as a result or the notes of a case.
pub const DOCUMENT: u64 = 64 << 20;
/// The largest file of rows.
pub const ROWS: u64 = 4 << 30;
/// The largest of our own small notes, such as an owner, a pid or a journal.
pub const NOTE: u64 = 1 << 20;

/// The mode of files that everybody may read.
pub const FOR_ALL: u32 = 0o644;
/// The mode of files for this user only.
pub const PRIVATE: u32 = 0o600;

/// Whether the last part of a path may be a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Follow a link: a person named this path.
    Follow,
    /// Refuse a link: somebody else may have planted it here.
    Refuse,
}

/// Opens a regular file to read it. Anything else is refused at once, even a pipe that
/// nobody writes to.
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    let no_links = match links {
        Links::Follow => 0,
        Links::Refuse => libc::O_NOFOLLOW,
    };
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | no_links);
    let file = options.open(path).map_err(name_the_link)?;
    is_regular(&file).map(|()| file)
}

fn is_regular(file: &File) -> io::Result<()> {
    match file.metadata()?.file_type() {
        kind if kind.is_file() => Ok(()),
        kind if kind.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        _ => Err(not_ours(NOT_REGULAR)),
    }
}

/// Explains the errors for a link that is not followed, which would be "too many levels
/// of symbolic links", and for a socket, which would be "no such device or address".
fn name_the_link(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENXIO) => not_ours(NOT_REGULAR),
        Some(libc::ELOOP) => not_ours(A_LINK),
        _ => error,
    }
}

const NOT_REGULAR: &str = "it is not a regular file";
const A_LINK: &str = "it is a link, and links are not followed here";

fn not_ours(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns the whole content of a regular file of at most `limit` bytes.
pub fn read(path: &Path, links: Links, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path, links)?;
    let too_large = || {
        let why = format!("it has more than {limit} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    let length = file.metadata()?.len();
    if length > limit {
        return Err(too_large());
    }
    let mut content = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    // The file may grow while it is read.
    file.take(limit + 1).read_to_end(&mut content)?;
    match content.len() as u64 > limit {
        true => Err(too_large()),
        false => Ok(content),
    }
}

/// Returns the same as text.
pub fn read_text(path: &Path, links: Links, limit: u64) -> io::Result<String> {
    let content = read(path, links, limit)?;
    String::from_utf8(content).map_err(|_| not_ours("it is not UTF-8 text"))
}

/// Returns whether there is a folder at this path. Anything else in its place is refused,
/// even a link to a folder.
pub fn is_folder(path: &Path) -> io::Result<bool> {
    match path.symlink_metadata() {
        Ok(about) if about.is_dir() => Ok(true),
        Ok(about) if about.is_symlink() => Err(not_ours(A_LINK)),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Creates a file that must not exist yet, and never follows a link.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode).open(path)
}

/// Opens one of our own files to read it and append to it, or creates it. It never
/// follows a link, and never opens a file that belongs to somebody else.
pub fn append_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().append(true))
}

/// Does the same for a file that may be written at any position.
pub fn edit_private(path: &Path) -> io::Result<File> {
    open_private(path, OpenOptions::new().write(true))
}

fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let file = options
        .read(true)
        .create(true)
        .mode(PRIVATE)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(path)
        .map_err(name_the_link)?;
    is_regular(&file)?;
    match file.metadata()?.uid() == nix::unistd::geteuid().as_raw() {
        true => Ok(file),
        false => Err(not_ours("it belongs to another user")),
    }
}

/// Makes a folder for this user only, with all its parents. An existing one has to be a
/// folder, not a link, ours, and not writable for anybody else.
pub fn private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path)?;
    is_private(path)
}

/// Checks that only this user may write to an existing folder.
pub fn is_private(path: &Path) -> io::Result<()> {
    let about = fs::symlink_metadata(path)?;
    let denied = |why| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    if about.is_symlink() {
        return Err(not_ours(A_LINK));
    }
    if !about.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
    }
    if about.uid() != nix::unistd::geteuid().as_raw() {
        return denied("the folder belongs to another user");
    }
    if about.mode() & 0o022 != 0 {
        return denied("other users may write to the folder; `chmod go-w` it");
    }
    Ok(())
}

/// Writes a file so that a reader sees the old content or the new, and nothing between.
pub fn write_whole(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    Aside::write(path, content, mode)?.take_place()
}

/// Does the same with a link.
pub fn link_whole(path: &Path, target: &Path) -> io::Result<()> {
    let ((), link) = Aside::create(path, |aside| symlink(target, aside))?;
    link.take_place()
}

/// A file that is written and has not been moved to its place yet. It is removed if that
/// never happens.
pub struct Aside {
    path: PathBuf,
    aside: PathBuf,
}

impl Aside {
    /// Limits the names that may be taken already, by links that somebody planted or by
    /// files that killed processes left.
    const TRIES: u32 = 10_000;

    /// Writes the file beside its place, under a name that nobody else uses.
    pub fn write(path: &Path, content: &[u8], mode: u32) -> io::Result<Aside> {
        let (mut file, aside) = Aside::create(path, |aside| create(aside, mode))?;
        io::Write::write_all(&mut file, content)?;
        Ok(aside)
    }

    fn create<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Aside)> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        for _ in 0..Aside::TRIES {
            let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
            let mut name = OsString::from(".");
            name.push(path.file_name().unwrap_or_default());
            name.push(format!(".{}.{count}", std::process::id()));
            let aside = path.with_file_name(name);
            match make(&aside) {
                Ok(made) => {
                    let path = path.to_owned();
                    return Ok((made, Aside { path, aside }));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    pub fn take_place(self) -> io::Result<()> {
        fs::rename(&self.aside, &self.path)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // It is gone already if it was moved to its place.
        let _ = fs::remove_file(&self.aside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn only_regular_files_are_read_and_only_so_much() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, Links::Refuse, 5).unwrap(), "12345");
        let error = read(&file, Links::Refuse, 4).unwrap_err().to_string();
        assert_eq!(error, "it has more than 4 bytes");

        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(read(&link, Links::Follow, 5).unwrap(), b"12345");
        let error = read(&link, Links::Refuse, 5).unwrap_err().to_string();
        assert!(error.contains("it is a link"), "{error}");

        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for (path, links) in [
            (pipe.as_path(), Links::Refuse),
            (Path::new("/dev/zero"), Links::Follow),
        ] {
            let error = read(path, links, 5).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file");
        }
        let error = read(folder.path(), Links::Follow, 5).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::IsADirectory);
    }

    #[test]
    fn a_sparse_file_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(read(&path, Links::Refuse, ROWS).is_err());
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let results = folder.path().join("results");
        fs::create_dir(&results).unwrap();
        for count in 0..2000 {
            let name = format!(".report.html.{}.{count}", std::process::id());
            symlink(&victim, results.join(name)).unwrap();
        }
        let page = results.join("report.html");
        write_whole(&page, b"a page", FOR_ALL).unwrap();
        assert_eq!(fs::read(&page).unwrap(), b"a page");

        symlink(&victim, results.join("journal")).unwrap();
        assert!(append_private(&results.join("journal")).is_err());
        assert!(edit_private(&results.join("journal")).is_err());
        assert!(create(&results.join("journal"), PRIVATE).is_err());
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_private_folder_is_ours_and_nobody_else_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        private_folder(&path).unwrap();
        private_folder(&path).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let error = private_folder(&path).unwrap_err().to_string();
        assert!(error.contains("other users may write"), "{error}");

        let link = folder.path().join("link");
        symlink(folder.path(), &link).unwrap();
        assert!(private_folder(&link).is_err(), "a link is not followed");
        append_private(&folder.path().join("note")).unwrap();
        assert_eq!(mode(&folder.path().join("note")), 0o600);
    }

    #[test]
    fn many_writers_of_one_file_do_not_meet_half_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.html");
        let contents: Vec<Vec<u8>> = (0..8).map(|n| vec![b'a' + n; 100_000]).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..25 {
                        write_whole(path, content, FOR_ALL).unwrap();
                    }
                });
            }
        });
        assert!(contents.contains(&fs::read(&path).unwrap()));
        assert_eq!(names(folder.path()), ["index.html"]);
    }
}
