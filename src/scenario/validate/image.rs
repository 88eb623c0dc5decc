//! The image that workers are started from, where it is not this program's own.

use super::Surroundings;
use crate::scenario::draft::DraftSetup;
use crate::yaml::Report;

/// With a tag it is the name of an image, and else a folder that has to be there.
pub fn check(draft: &DraftSetup, surroundings: &Surroundings, report: &mut Report) {
    let (Some(image), Surroundings::Here { folder, .. }) = (&draft.image, surroundings) else {
        return;
    };
    let name = &image.value;
    let is_part = |part: &str| {
        let mut letters = part.chars();
        letters.next().is_some_and(|c| c.is_ascii_alphanumeric())
            && part
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
    };
    if !name.contains(':') && !name.split('/').all(is_part) {
        // Its image gets its name.
        let message = format!(
            "`{name}` is no folder that an image can be called after: below {}, in lower-case letters, digits and dashes",
            folder.display()
        );
        report.add(image.place, message);
    } else if !name.contains(':') && !folder.join(name).join("Dockerfile").is_file() {
        let message = format!(
            "there is no {name}/Dockerfile in {}; name such a folder, or an image with its tag",
            folder.display()
        );
        report.add(image.place, message);
    }
}
