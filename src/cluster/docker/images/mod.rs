//! Images on a machine that may have none and may reach no registry.
//!
//! Every image is tagged by a hash of what it was made from, so a change is
//! never answered with a stale one; the plain tag of the Compose file is moved
//! along for people who use plain Compose.

mod base;
mod build;
mod own;
mod program;

use super::engine::{Engine, call, is_not_found, label_filter};
use super::labels;
use crate::cluster::{ClusterError, Image, OWN_IMAGE};
use crate::files;
use crate::progress::Progress;
use bollard::models::ImageSummary;
use bollard::query_parameters::{
    CreateImageOptions, ListImagesOptions, RemoveImageOptions, TagImageOptions,
};
use futures_util::StreamExt;
use nix::fcntl::{Flock, FlockArg};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

pub use base::bootstrap_tool;

const PULL_DEADLINE: Duration = Duration::from_secs(300);
/// As long as everything that it may have to make can take.
const OTHER_BUILDER_DEADLINE: Duration = Duration::from_secs(1800);
/// Older images of this program that are kept: another run may be about to use one.
const OWN_IMAGES_KEPT: usize = 4;

/// What all images are called that are ours to remove.
const OWN_NAMES: &str = "fencepost/";

/// From the name in the Compose file to the id to start.
pub type ImageIds = BTreeMap<String, String>;

/// Makes or finds every one of these images, each of them once. The file `lock` is
/// held meanwhile.
pub async fn ensure(
    engine: &Engine,
    images: impl IntoIterator<Item = &Image>,
    lock: &Path,
    progress: &dyn Progress,
) -> Result<ImageIds, ClusterError> {
    // One builder at a time of this user: the second finds the first one's images.
    let _lock = one_builder(lock, progress).await?;
    let mut ids = ImageIds::new();
    for Image { name, build } in each_once(images) {
        let id = match build {
            _ if name == OWN_IMAGE => ensure_own(engine, progress).await?,
            Some(folder) => ensure_built(engine, name, folder, progress).await?,
            None => ensure_pulled(engine, name, progress).await?,
        };
        ids.insert(name.clone(), id);
    }
    Ok(ids)
}

/// The image of this program alone.
pub async fn ensure_this_program(
    engine: &Engine,
    lock: &Path,
    progress: &dyn Progress,
) -> Result<String, ClusterError> {
    let _lock = one_builder(lock, progress).await?;
    ensure_own(engine, progress).await
}

/// The names of those that would have to be made or fetched.
pub async fn missing(
    engine: &Engine,
    images: impl IntoIterator<Item = &Image>,
) -> Result<BTreeSet<String>, ClusterError> {
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

async fn ensure_own(engine: &Engine, progress: &dyn Progress) -> Result<String, ClusterError> {
    let context = own::context()?;
    let tag = context.tag(OWN_IMAGE);
    if let Some(id) = find(engine, &tag).await? {
        // Another build of this program may have moved the plain tag meanwhile.
        retag(engine, &tag, OWN_IMAGE).await?;
        return Ok(id);
    }
    let id = build::build(engine, context, &tag, "self", None, progress).await?;
    retag(engine, &tag, OWN_IMAGE).await?;
    prune_own(engine).await?;
    Ok(id)
}

async fn ensure_built(
    engine: &Engine,
    image: &str,
    context: &Path,
    progress: &dyn Progress,
) -> Result<String, ClusterError> {
    let context = build::Context::read(context)?;
    let tag = context.tag(image);
    if let Some(id) = find(engine, &tag).await? {
        retag(engine, &tag, image).await?;
        return Ok(id);
    }
    let base = match context.default_base() {
        Some(wanted) => Some(base::ensure(engine, &wanted, progress).await?),
        None => None,
    };
    let id = build::build(engine, context, &tag, image, base, progress).await?;
    retag(engine, &tag, image).await?;
    Ok(id)
}

async fn ensure_pulled(
    engine: &Engine,
    image: &str,
    progress: &dyn Progress,
) -> Result<String, ClusterError> {
    if let Some(id) = find(engine, image).await? {
        return Ok(id);
    }
    pull(engine, image, progress).await?;
    let id = find(engine, image).await?;
    id.ok_or_else(|| ClusterError::Failed {
        what: format!("pull {image}"),
        reason: "the engine says it has, and does not have it".to_owned(),
    })
}

/// The id of a local image.
async fn find(engine: &Engine, tag: &str) -> Result<Option<String>, ClusterError> {
    let inspect = async {
        match engine.docker().inspect_image(tag).await {
            Ok(image) => Ok(image.id),
            Err(error) if is_not_found(&error) => Ok(None),
            Err(error) => Err(error),
        }
    };
    call(&format!("look up the image {tag}"), inspect).await
}

async fn pull(engine: &Engine, image: &str, progress: &dyn Progress) -> Result<(), ClusterError> {
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
    Err(ClusterError::Failed {
        what: format!("pull {image}"),
        reason,
    })
}

async fn retag(engine: &Engine, from: &str, to: &str) -> Result<(), ClusterError> {
    let (repo, tag) = to.rsplit_once(':').unwrap_or((to, "latest"));
    let options = TagImageOptions {
        repo: Some(repo.to_owned()),
        tag: Some(tag.to_owned()),
    };
    let tagged = engine.docker().tag_image(from, Some(options));
    call(&format!("tag {from} as {to}"), tagged).await
}

/// Removes every image that `fencepost images` made. Returns their tags.
pub async fn remove_all(engine: &Engine) -> Result<Vec<String>, ClusterError> {
    let mut removed = Vec::new();
    for tag in made_by_us(engine, labels::IMAGE).await?.concat() {
        let options = RemoveImageOptions::default();
        let remove = engine.docker().remove_image(&tag, Some(options), None);
        call(&format!("remove the image {tag}"), remove).await?;
        removed.push(tag);
    }
    Ok(removed)
}

/// Every rebuild of this program leaves an image; the oldest go.
async fn prune_own(engine: &Engine) -> Result<(), ClusterError> {
    let own = made_by_us(engine, &format!("{}=self", labels::IMAGE)).await?;
    for tag in own.into_iter().skip(OWN_IMAGES_KEPT).flatten() {
        let options = RemoveImageOptions::default();
        let removed = engine.docker().remove_image(&tag, Some(options), None);
        // One that a container still uses is refused, and goes another time.
        let _ = call("remove an old image of this program", removed).await;
    }
    Ok(())
}

/// The tags of each image with this label, the latest first. Whatever is built from one
/// of ours inherits its labels, so the name has to be ours as well.
async fn made_by_us(engine: &Engine, label: &str) -> Result<Vec<Vec<String>>, ClusterError> {
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

/// Whoever waits for it may stop waiting at any time.
async fn one_builder(path: &Path, progress: &dyn Progress) -> Result<Flock<File>, ClusterError> {
    let failed = |reason: String| ClusterError::Failed {
        what: format!("lock the making of images ({})", path.display()),
        reason,
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
            return Err(ClusterError::Deadline {
                what: "another run that makes images".to_owned(),
                after: OTHER_BUILDER_DEADLINE,
            });
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

    /// They inherit the label by which ours are found.
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
