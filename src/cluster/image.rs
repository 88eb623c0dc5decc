use std::path::{Path, PathBuf};

/// An image that a run needs, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// As Compose files and helpers name it.
    pub name: String,
    /// The folder with its Dockerfile, where it is built. Without one it is
    /// fetched, unless it is the one of this program itself.
    pub build: Option<PathBuf>,
}

impl Image {
    /// The image that a scenario names: with a tag it is one already, and else
    /// the folder that it is built from.
    pub fn named(name: &str, home: &Path) -> Image {
        if name.contains(':') {
            return Image {
                name: name.to_owned(),
                build: None,
            };
        }
        Image {
            name: format!("fencepost/{name}:latest"),
            build: Some(home.join(name)),
        }
    }
}
