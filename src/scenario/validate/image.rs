//! The image of the workers, if it is not this program's own.

use super::*;

/// Returns the folder that a path means as a whole path: `./` and `../` are meant from the folder of
/// the file, and in an override from the current folder. Everything else stays as it is.
pub fn found_from(image: &At<String>, file: &Path) -> String {
    let path = Path::new(&image.value);
    if !(path.is_absolute() || path.starts_with(".") || path.starts_with("..")) {
        return image.value.clone();
    }
    let base = match image.place.is_outside() {
        true => Path::new(""),
        false => file.parent().unwrap_or(Path::new("")),
    };
    let path = base.join(path);
    let whole = path.canonicalize().or_else(|_| std::path::absolute(&path));
    whole.unwrap_or(path).display().to_string()
}

/// Checks the image. With a tag it is the name of an image, else a folder that has to be there.
pub fn check(draft: &DraftSetup, file: &Path, surroundings: &Surroundings, report: &mut Report) {
    let (Some(image), Surroundings::Here { home, .. }) = (&draft.worker.image, surroundings) else {
        return;
    };
    let name = &found_from(image, file);
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(is_letter)
    };
    let has_recipe = |layer: &Location| layer.join(name).join("Dockerfile").is_file();
    let shown: Vec<String> = home.iter().map(ToString::to_string).collect();
    let shown = shown.join(" or ");
    if name.starts_with('/') {
        if !Path::new(name).join("Dockerfile").is_file() {
            let message = format!("there is no Dockerfile in {name}");
            report.add(image.place, message);
        }
    } else if name.contains(':') {
        // The name of an image.
    } else if !name.split('/').all(is_part) {
        // The image is named after the folder.
        let message = format!(
            "`{name}` is no folder that an image can be called after: below {shown}, in lower-case letters, digits and dashes; write ./ before a folder beside the file"
        );
        report.add(image.place, message);
    } else if !home.iter().any(has_recipe) {
        let is_here = image.place.is_outside() && Path::new(name).join("Dockerfile").is_file();
        let remedy = match is_here {
            true => format!("write ./{name} for the folder that is here"),
            false => "name such a folder (./… from the folder of this file) or an image with its tag, or give the home of this file with --home".to_owned(),
        };
        let message = format!("there is no {name}/Dockerfile in {shown}; {remedy}");
        report.add(image.place, message);
    }
}
