use std::ops::Range;

/// All text of a log: the file it was read from, unchanged, and behind it the text that
/// was added since.
///
/// A position counts through both. The file is never added to: a long text that grows is
/// copied, and takes twice its memory during the copy.
#[derive(Clone, Debug, Default)]
pub(super) struct Text {
    file: Vec<u8>,
    more: Vec<u8>,
}

impl Text {
    pub fn of_file(file: Vec<u8>) -> Text {
        Text {
            file,
            more: Vec::new(),
        }
    }

    pub fn file(&self) -> &[u8] {
        &self.file
    }

    #[inline]
    pub fn get(&self, range: Range<usize>) -> &[u8] {
        match range.start.checked_sub(self.file.len()) {
            None => &self.file[range],
            Some(start) => &self.more[start..][..range.len()],
        }
    }

    /// Returns the text from `start` to the end of the part that contains it.
    pub fn rest(&self, start: usize) -> &[u8] {
        match start.checked_sub(self.file.len()) {
            None => &self.file[start..],
            Some(start) => &self.more[start..],
        }
    }

    pub fn add(&mut self, text: &[u8]) -> Range<usize> {
        let start = self.file.len() + self.more.len();
        self.more.extend_from_slice(text);
        start..start + text.len()
    }

    /// Removes the last addition.
    pub fn remove_from(&mut self, start: usize) {
        self.more.truncate(start - self.file.len());
    }
}
