//! Lists the files that the program carries, so that it works in any folder (see src/builtin.rs).

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

const CARRIED: [&str; 5] = ["compose", "examples", "kits", "scenarios", "toxiproxy"];

fn main() {
    let project = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for folder in CARRIED {
        // Cargo looks at every file below.
        println!("cargo::rerun-if-changed={folder}");
        collect(&project.join(folder), &mut files);
    }
    println!("cargo::rerun-if-changed=build.rs");
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        let inside = file.strip_prefix(&project).expect("it is below");
        writeln!(table, "({inside:?}, include_bytes!({file:?})),").expect("memory");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("carried.rs"), table).expect("the folder of cargo is writable");
}

/// Leaves out what editors and interpreters leave: hidden files and `__pycache__`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name.starts_with("__") {
            continue;
        }
        match path.is_dir() {
            true => collect(&path, files),
            false => files.push(path),
        }
    }
}
