//! The image of the workers, if it is not this program's own.

use super::*;

/// Checks the image. With a tag it is the name of an image, else a folder that has to be there.
pub fn check(draft: &DraftSetup, surroundings: &Surroundings, report: &mut Report) {
    let (Some(image), Surroundings::Here { folder, .. }) = (&draft.image, surroundings) else {
        return;
    };
    let name = &image.value;
    let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.chars().all(is_letter)
    };
    let shown = folder.display();
    if name.contains(':') {
        // The name of an image.
    } else if !name.split('/').all(is_part) {
        // The image is named after the folder.
        let message = format!(
            "`{name}` is no folder that an image can be called after: below {shown}, in lower-case letters, digits and dashes"
        );
        report.add(image.place, message);
    } else if !folder.join(name).join("Dockerfile").is_file() {
        let message = format!(
            "there is no {name}/Dockerfile in {shown}; name such a folder, or an image with its tag"
        );
        report.add(image.place, message);
    }
}
