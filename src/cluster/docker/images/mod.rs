//! Images on a machine that may have none and may reach no registry.
//!
//! Every image is tagged with a hash of what it was made from, so after a change no stale image is
//! used. The plain tag of the Compose file is moved along for people who use plain Compose.

mod base;
mod build;
mod own;
mod program;

use super::engine::{Engine, call, if_there, label_filter};
use super::labels;
use crate::cluster::{ClusterError, ClusterResult, Image, OWN_IMAGE};
use crate::progress::Progress;
use bollard::models::ImageSummary;
use bollard::query_parameters::{
    CreateImageOptions, ListImagesOptions, RemoveImageOptions, TagImageOptions,
};
use bounded_io::files;
use futures_util::StreamExt;
use nix::fcntl::{Flock, FlockArg};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use base::bootstrap_tool;

const PULL_DEADLINE: Duration = Duration::from_secs(300);
/// As long as everything that the other builder may have to make can take.
const OTHER_BUILDER_DEADLINE: Duration = Duration::from_secs(1800);
/// The number of older images of this program that are kept: another run may be about to use one.
const OWN_IMAGES_KEPT: usize = 4;

/// Images with this prefix are ours to remove.
const OWN_NAMES: &str = "fencepost/";

/// The ids of the images to start, by their names in the Compose file.
pub type ImageIds = BTreeMap<String, String>;

/// Makes or finds every one of these images, each of them once, and holds the file `lock`
/// meanwhile.
pub async fn ensure(
    engine: &Engine,
    images: impl IntoIterator<Item = &Image>,
    lock: &Path,
    progress: &dyn Progress,
) -> ClusterResult<ImageIds> {
    // One builder of this user at a time: the second finds the images of the first.
    let _lock = one_builder(lock, progress).await?;
    let mut ids = ImageIds::new();
    for Image { name, build } in each_once(images) {
        let id = match build {
            _ if name == OWN_IMAGE => ensure_own(engine, progress).await?,
            Some(folder) => {
                let context = build::Context::read(folder)?;
                ensure_built(engine, name, context, name, progress).await?.0
            }
            None => ensure_pulled(engine, name, progress).await?,
        };
        ids.insert(name.clone(), id);
    }
    Ok(ids)
}

pub async fn ensure_this_program(
    engine: &Engine,
    lock: &Path,
    progress: &dyn Progress,
) -> ClusterResult<String> {
    let _lock = one_builder(lock, progress).await?;
    ensure_own(engine, progress).await
}

/// Returns the names of the images that would have to be made or fetched.
pub async fn missing(
    engine: &Engine,
    images: impl IntoIterator<Item = &Image>,
) -> ClusterResult<BTreeSet<String>> {
    let mut missing = BTreeSet::new();
    for Image { name, build } in each_once(images) {
        let tag = match build {
            _ if name == OWN_IMAGE => own::context()?.tag(OWN_IMAGE),
            Some(folder) => build::Context::read(folder)?.tag(name),
            None => name.clone(),
        };
        if find(engine, &tag).await?.is_none() {
            missing.insert(name.clone());
        }
    }
    Ok(missing)
}

fn each_once<'a>(images: impl IntoIterator<Item = &'a Image>) -> impl Iterator<Item = &'a Image> {
    let mut seen = BTreeSet::new();
    images
        .into_iter()
        .filter(move |image| seen.insert(&image.name))
}

async fn ensure_own(engine: &Engine, progress: &dyn Progress) -> ClusterResult<String> {
    let (id, is_new) = ensure_built(engine, OWN_IMAGE, own::context()?, "self", progress).await?;
    if is_new {
        prune_own(engine).await?;
    }
    Ok(id)
}

/// Returns the id of the image that is built from this context, and whether it is new.
async fn ensure_built(
    engine: &Engine,
    image: &str,
    context: build::Context,
    label: &str,
    progress: &dyn Progress,
) -> ClusterResult<(String, bool)> {
    let tag = context.tag(image);
    let found = find(engine, &tag).await?;
    let is_new = found.is_none();
    let id = match found {
        Some(id) => id,
        None => {
            let base = match context.default_base() {
                Some(wanted) => Some(base::ensure(engine, &wanted, progress).await?),
                None => None,
            };
            build::build(engine, context, &tag, label, base, progress).await?
        }
    };
    // Another build of this program may have moved the plain tag meanwhile.
    retag(engine, &tag, image).await?;
    Ok((id, is_new))
}

async fn ensure_pulled(
    engine: &Engine,
    image: &str,
    progress: &dyn Progress,
) -> ClusterResult<String> {
    if let Some(id) = find(engine, image).await? {
        return Ok(id);
    }
    pull(engine, image, progress).await?;
    let id = find(engine, image).await?;
    id.ok_or_else(|| {
        ClusterError::failed(
            format!("pull {image}"),
            "the engine says it has, and does not have it",
        )
    })
}

async fn find(engine: &Engine, tag: &str) -> ClusterResult<Option<String>> {
    let inspect = if_there(engine.docker().inspect_image(tag));
    let found = call(&format!("look up the image {tag}"), inspect).await?;
    Ok(found.and_then(|image| image.id))
}

async fn pull(engine: &Engine, image: &str, progress: &dyn Progress) -> ClusterResult {
    let task = progress.begin(&format!("pulling {image}"));
    let options = CreateImageOptions {
        from_image: Some(image.to_owned()),
        ..Default::default()
    };
    let mut stream = engine.docker().create_image(Some(options), None, None);
    let pulled = async {
        while let Some(info) = stream.next().await {
            let info = info.map_err(|error| error.to_string())?;
            task.detail(&info.status.unwrap_or_default());
        }
        Ok::<(), String>(())
    };
    let result = tokio::time::timeout(PULL_DEADLINE, pulled).await;
    let reason = match result {
        Ok(Ok(())) => {
            task.finish("done");
            return Ok(());
        }
        Ok(Err(reason)) => reason,
        Err(_) => format!("not done in {} s", PULL_DEADLINE.as_secs()),
    };
    task.finish("no registry has it for us");
    Err(ClusterError::failed(format!("pull {image}"), reason))
}

async fn retag(engine: &Engine, from: &str, to: &str) -> ClusterResult {
    let (repo, tag) = to.rsplit_once(':').unwrap_or((to, "latest"));
    let options = TagImageOptions {
        repo: Some(repo.to_owned()),
        tag: Some(tag.to_owned()),
    };
    let tagged = engine.docker().tag_image(from, Some(options));
    call(&format!("tag {from} as {to}"), tagged).await
}

/// Removes every image that `fencepost images` made; returns their tags.
pub async fn remove_all(engine: &Engine) -> ClusterResult<Vec<String>> {
    let mut removed = Vec::new();
    for tag in made_by_us(engine, labels::IMAGE).await?.concat() {
        let options = RemoveImageOptions::default();
        let remove = engine.docker().remove_image(&tag, Some(options), None);
        call(&format!("remove the image {tag}"), remove).await?;
        removed.push(tag);
    }
    Ok(removed)
}

/// Removes the oldest images of this program, because every rebuild leaves one.
async fn prune_own(engine: &Engine) -> ClusterResult {
    let own = made_by_us(engine, &format!("{}=self", labels::IMAGE)).await?;
    for tag in own.into_iter().skip(OWN_IMAGES_KEPT).flatten() {
        let options = RemoveImageOptions::default();
        let removed = engine.docker().remove_image(&tag, Some(options), None);
        // The engine refuses to remove an image that a container still uses; it is removed another
        // time.
        let _ = call("remove an old image of this program", removed).await;
    }
    Ok(())
}

/// Returns the tags of each image with this label, the latest first. Everything that is built from
/// one of ours inherits its labels, so the name has to be ours as well.
async fn made_by_us(engine: &Engine, label: &str) -> ClusterResult<Vec<Vec<String>>> {
    let options = ListImagesOptions {
        filters: Some(label_filter(label)),
        ..Default::default()
    };
    let listed = engine.docker().list_images(Some(options));
    Ok(own_tags(call("list the images", listed).await?))
}

fn own_tags(mut images: Vec<ImageSummary>) -> Vec<Vec<String>> {
    images.sort_by_key(|image| std::cmp::Reverse(image.created));
    let own_tags = images.into_iter().map(|image| {
        let tags = image.repo_tags.into_iter();
        tags.filter(|tag| tag.starts_with(OWN_NAMES)).collect()
    });
    own_tags
        .filter(|tags: &Vec<String>| !tags.is_empty())
        .collect()
}

/// Waits for the lock. The caller may stop waiting at any time.
async fn one_builder(path: &Path, progress: &dyn Progress) -> ClusterResult<Flock<File>> {
    let failed = |reason: String| {
        ClusterError::failed(
            format!("lock the making of images ({})", path.display()),
            reason,
        )
    };
    let file = files::append_private(path).map_err(|error| failed(error.to_string()))?;
    let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(locked) => return Ok(locked),
        Err((file, nix::errno::Errno::EWOULDBLOCK)) => file,
        Err((_, error)) => return Err(failed(error.to_string())),
    };
    let task = progress.begin("waiting for another run that makes images");
    let waiting = tokio::task::spawn_blocking(move || Flock::lock(file, FlockArg::LockExclusive));
    let locked = match tokio::time::timeout(OTHER_BUILDER_DEADLINE, waiting).await {
        Ok(Ok(locked)) => locked.map_err(|(_, error)| failed(error.to_string()))?,
        Ok(Err(error)) => return Err(failed(error.to_string())),
        Err(_) => {
            return Err(ClusterError::deadline(
                "another run that makes images",
                OTHER_BUILDER_DEADLINE,
            ));
        }
    };
    task.finish("done");
    Ok(locked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(created: i64, tags: &[&str]) -> ImageSummary {
        ImageSummary {
            created,
            repo_tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Default::default()
        }
    }

    /// Such images inherit the label by which ours are found.
    #[test]
    fn images_that_somebody_built_from_ours_are_not_ours() {
        let images = vec![
            image(1, &["fencepost/self:latest-1"]),
            image(4, &["mycompany/my-worker:1.0"]),
            image(2, &["fencepost/self:latest-2", "mycompany/pinned:1.0"]),
            image(3, &[]),
            image(5, &["somewhere/fencepost/self:latest"]),
        ];
        let ours = [["fencepost/self:latest-2"], ["fencepost/self:latest-1"]];
        assert_eq!(own_tags(images), ours);
    }
}
