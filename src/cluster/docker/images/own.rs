//! This program as an image: the running executable and the shared libraries it maps, and nothing
//! else.

use super::build::Context;
use super::*;

/// glibc before 2.34 looks names up through these, and loads them only when needed.
const NAME_SERVICE: [&str; 3] = ["libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2"];

/// The Dockerfile is part of the program, not of a topology.
const DOCKERFILE: &str = include_str!("own.Dockerfile");

pub fn context() -> ClusterResult<Context> {
    Ok(Context::of(DOCKERFILE)
        .with_folder("data")
        .with_root(pack()?))
}

/// Returns the contents of the files by their paths in the image.
fn pack() -> ClusterResult<BTreeMap<PathBuf, Vec<u8>>> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| {
            ClusterError::failed(format!("pack {} into an image", path.display()), error)
        })
    };
    let mut files = BTreeMap::new();
    // Not `current_exe`: a rebuild may have replaced that path since we started.
    files.insert(
        PathBuf::from("fencepost"),
        read(Path::new("/proc/self/exe"))?,
    );
    for library in mapped_libraries(&read(Path::new("/proc/self/maps"))?) {
        let inside = library.strip_prefix("/").unwrap_or(&library).to_owned();
        files.insert(inside, read(&library)?);
    }
    Ok(files)
}

/// Returns the shared objects in /proc/self/maps, the dynamic loader among them, at the paths where
/// the loader will look for them.
fn mapped_libraries(maps: &[u8]) -> Vec<PathBuf> {
    let maps = String::from_utf8_lossy(maps);
    let mut libraries: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.starts_with('/') && path.contains(".so"))
        .map(PathBuf::from)
        .collect();
    let libc = libraries
        .iter()
        .find(|path| path.file_name().is_some_and(|name| name == "libc.so.6"));
    if let Some(folder) = libc.and_then(|libc| libc.parent()).map(Path::to_owned) {
        let extra = NAME_SERVICE.map(|name| folder.join(name));
        libraries.extend(extra.into_iter().filter(|path| path.is_file()));
    }
    // The executable names its loader by a fixed path, which is often a link to the mapped file.
    let loaders = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
    libraries.extend(
        loaders
            .map(PathBuf::from)
            .into_iter()
            .filter(|p| p.exists()),
    );
    libraries.sort();
    libraries.dedup();
    libraries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_and_libc_come_along() {
        let files = pack().unwrap();
        let has = |part: &str| {
            let mut paths = files.keys();
            paths.any(|path| path.to_string_lossy().contains(part))
        };
        assert!(has("fencepost") && has("libc.so.6") && has("ld-linux"));
    }
}
