//! `docker build` through the API, from a context put together in memory.

use super::*;
use crate::builtin::{self, Location};
use crate::cluster::LastLines;
use bollard::query_parameters::BuildImageOptions;
use bounded_io::files::Links;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

const BUILD_DEADLINE: Duration = Duration::from_secs(600);
/// The limit of a context, because all of it is held in memory.
const LARGEST_CONTEXT: u64 = 64 << 20;
/// A Dockerfile that names this file gets the certificates that this machine trusts: a proxy that
/// signs anew what it passes on is known to the machine, and to no image.
const CERTIFICATES: &str = "machine-certificates.crt";
const BUNDLES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
];

/// The files that a build sees, with the Dockerfile among them.
pub struct Context {
    files: BTreeMap<PathBuf, Vec<u8>>,
    folders: Vec<&'static str>,
}

impl Context {
    pub fn of(dockerfile: &str) -> Context {
        Context {
            files: BTreeMap::from([("Dockerfile".into(), dockerfile.into())]),
            folders: Vec::new(),
        }
    }

    /// Reads regular files only, and none outside of the folder: the author of the Dockerfile may
    /// not be allowed to read the target of a link.
    pub fn read(folder: &Location) -> ClusterResult<Context> {
        let files = match folder {
            Location::Disk(folder) => read_folder(folder)?,
            Location::BuiltIn(folder) => {
                let files = builtin::below(folder);
                files
                    .map(|(path, content)| (path.to_owned(), content.to_owned()))
                    .collect()
            }
        };
        let folders = Vec::new();
        Ok(Context { files, folders })
    }

    /// Adds files as the folder `root/`.
    pub fn with_root(mut self, files: BTreeMap<PathBuf, Vec<u8>>) -> Context {
        let under_root = |(path, content)| (Path::new("root").join(path), content);
        self.files.extend(files.into_iter().map(under_root));
        self
    }

    pub fn with_folder(mut self, name: &'static str) -> Context {
        self.folders.push(name);
        self
    }

    /// Adds the certificates if the Dockerfile names them. They are not a part of the tag.
    fn with_certificates(mut self) -> Context {
        let dockerfile = self.files.get(Path::new("Dockerfile"));
        let text = dockerfile.map(|text| String::from_utf8_lossy(text));
        // The Dockerfile spells the name with brackets, so that it need not be there.
        if text.is_some_and(|text| text.contains("machine-certificates.cr[t]")) {
            let mut bundles = BUNDLES.iter().map(Path::new);
            let bundle = bundles.find_map(|path| files::read(path, Links::Follow, 4 << 20).ok());
            let named = bundle.map(|bundle| (CERTIFICATES.into(), bundle));
            self.files.extend(named);
        }
        self
    }

    /// Returns `image` with a hash of the context behind its tag.
    pub fn tag(&self, image: &str) -> String {
        let mut hash = Sha256::new();
        for (path, content) in &self.files {
            hash.update(path.as_os_str().as_encoded_bytes());
            hash.update((content.len() as u64).to_le_bytes());
            hash.update(content);
        }
        format!("{image}-{}", &format!("{:x}", hash.finalize())[..12])
    }

    /// Returns the image that the Dockerfile's `ARG BASE=` names.
    pub fn default_base(&self) -> Option<String> {
        let dockerfile = self.files.get(Path::new("Dockerfile"))?;
        let text = String::from_utf8_lossy(dockerfile);
        let base = text.lines().find_map(|line| line.strip_prefix("ARG BASE="));
        base.map(|base| base.trim().to_owned())
    }

    fn into_tar(self) -> std::io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        for folder in self.folders {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Directory);
            header.set_size(0);
            header.set_mode(0o755);
            tar.append_data(&mut header, folder, std::io::empty())?;
        }
        for (path, content) in self.files {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            // Everything is executable, because the program and its loader have to be.
            header.set_mode(0o755);
            tar.append_data(&mut header, path, content.as_slice())?;
        }
        tar.into_inner()
    }
}

/// Returns the files of a folder and of those below it by their paths inside. Version control is no
/// part of an image.
fn read_folder(folder: &Path) -> ClusterResult<BTreeMap<PathBuf, Vec<u8>>> {
    let mut files = BTreeMap::new();
    let mut left = LARGEST_CONTEXT;
    let mut open = vec![folder.to_owned()];
    while let Some(below) = open.pop() {
        let failed = |error: std::io::Error| {
            let what = format!("read the build context {}", below.display());
            ClusterError::failed(what, error)
        };
        for entry in std::fs::read_dir(&below).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            // A link to a folder is no folder here, and is refused below.
            if entry.file_type().map_err(failed)?.is_dir() {
                open.extend((entry.file_name() != ".git").then_some(path));
                continue;
            }
            let content = files::read(&path, Links::Refuse, left).map_err(|error| {
                let most = LARGEST_CONTEXT >> 20;
                ClusterError::failed(
                    format!("read {}", path.display()),
                    format!("{error}; a build context has regular files alone, of at most {most} MiB in all"),
                )
            })?;
            left -= content.len() as u64;
            let inside = path.strip_prefix(folder).unwrap_or(&path);
            files.insert(inside.to_owned(), content);
        }
    }
    Ok(files)
}

/// Builds and tags an image; a failure shows the last lines of the build.
pub async fn build(
    engine: &Engine,
    context: Context,
    tag: &str,
    label: &str,
    base: Option<String>,
    progress: &dyn Progress,
) -> ClusterResult<String> {
    let failed = |reason: String| ClusterError::failed(format!("build the image {tag}"), reason);
    let task = progress.begin(&format!("building {tag}"));
    let tar = context
        .with_certificates()
        .into_tar()
        .map_err(|e| failed(e.to_string()))?;
    let options = BuildImageOptions {
        dockerfile: "Dockerfile".to_owned(),
        t: Some(tag.to_owned()),
        // Removes intermediate containers, also if the build fails or is given up.
        rm: true,
        forcerm: true,
        buildargs: base.map(|base| HashMap::from([("BASE".to_owned(), base)])),
        labels: Some(HashMap::from([(
            labels::IMAGE.to_owned(),
            label.to_owned(),
        )])),
        ..Default::default()
    };
    let body = bollard::body_full(tar.into());
    let mut stream = engine.docker().build_image(options, None, Some(body));
    let mut last_lines = LastLines::default();
    let built = async {
        let mut id = None;
        while let Some(info) = stream.next().await {
            let info = info.map_err(|error| error.to_string())?;
            if let Some(error) = info.error_detail.and_then(|detail| detail.message) {
                return Err(error);
            }
            id = info.aux.and_then(|aux| aux.id).or(id);
            for line in info.stream.unwrap_or_default().lines() {
                if !line.trim().is_empty() {
                    task.detail(line);
                    last_lines.push(line);
                }
            }
        }
        id.ok_or_else(|| "the engine named no image".to_owned())
    };
    let result = match tokio::time::timeout(BUILD_DEADLINE, built).await {
        Ok(result) => result,
        Err(_) => Err(format!("not done in {} s", BUILD_DEADLINE.as_secs())),
    };
    match result {
        Ok(id) => {
            task.finish("done");
            Ok(id)
        }
        Err(reason) => {
            task.finish("failed");
            Err(failed(reason + &last_lines.below()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;

    fn refused(folder: &Path) -> String {
        let read = Context::read(&folder.into());
        read.err().expect("it is refused").to_string()
    }

    #[test]
    fn a_context_is_regular_files_alone_and_of_a_bounded_size() {
        let home = tempfile::tempdir().unwrap();
        let secret = home.path().join("secret");
        fs::write(&secret, "s3cret").unwrap();
        let folder = home.path().join("context");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("Dockerfile"), "ARG BASE=debian:x\n").unwrap();
        let context = Context::read(&Location::from(&folder)).unwrap();
        assert_eq!(context.default_base().as_deref(), Some("debian:x"));

        let other = folder.join("other");
        symlink(&secret, &other).unwrap();
        assert!(refused(&folder).contains("it is a link"));
        fs::remove_file(&other).unwrap();
        // Nobody ever writes to it: reading it like a file would wait for ever.
        nix::unistd::mkfifo(&other, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(refused(&folder).contains("not a regular file"));
        fs::remove_file(&other).unwrap();
        fs::create_dir_all(other.join("lib")).unwrap();
        fs::create_dir(other.join(".git")).unwrap();
        fs::write(other.join(".git/HEAD"), "not for an image").unwrap();
        fs::write(other.join("lib/kit.py"), "x").unwrap();
        let context = Context::read(&Location::from(&folder)).unwrap();
        let paths: Vec<_> = context
            .files
            .keys()
            .map(|path| path.to_str().unwrap())
            .collect();
        assert_eq!(paths, ["Dockerfile", "other/lib/kit.py"]);
        symlink(home.path(), other.join("lib/link")).unwrap();
        assert!(
            refused(&folder).contains("it is a link"),
            "a folder behind a link"
        );
        fs::remove_dir_all(&other).unwrap();
        let large = File::create(&other).unwrap();
        large.set_len(LARGEST_CONTEXT).unwrap();
        assert!(refused(&folder).contains("at most 64 MiB"));
    }
}
