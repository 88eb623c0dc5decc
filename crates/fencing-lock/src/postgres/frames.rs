use std::io;

/// Everything that a lock asks for is answered in much less.
const MAX_MESSAGE_BYTES: u32 = 1024 * 1024;
/// One byte for the kind, and four for the length, which counts itself.
const HEADER_BYTES: usize = 5;

/// The messages of a server, each with a limit of its length.
#[derive(Default)]
pub(super) struct Frames {
    header: [u8; HEADER_BYTES],
    /// The number of bytes of the header that have come.
    read: usize,
    /// The number of bytes of the message that are still to come.
    left: u32,
}

impl crate::bounded::Frames for Frames {
    fn feed(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = bytes.len().min(self.left as usize);
                self.left -= skipped as u32;
                bytes = &bytes[skipped..];
                continue;
            }
            self.header[self.read] = bytes[0];
            self.read += 1;
            bytes = &bytes[1..];
            if self.read == HEADER_BYTES {
                self.read = 0;
                let [_, length @ ..] = self.header;
                let length = u32::from_be_bytes(length);
                if !(4..=MAX_MESSAGE_BYTES).contains(&length) {
                    let what = format!("a message of {length} bytes, which no lock needs");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
                self.left = length - 4;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::Frames as _;

    #[test]
    fn messages_pass_however_they_are_cut_into_pieces() {
        let messages = b"Z\0\0\0\x05IA\0\0\0\x04T\0\0\0\x08abcd";
        for size in 1..=messages.len() {
            let mut frames = Frames::default();
            for piece in messages.chunks(size) {
                frames.feed(piece).unwrap();
            }
            assert_eq!((frames.read, frames.left), (0, 0), "{size}");
        }
    }

    #[test]
    fn a_message_that_is_too_long_or_too_short_ends_the_stream() {
        for bytes in [
            &b"hello, I am no lock server"[..],
            b"T\0\0\0\x03",
            b"T\0\x10\0\x01",
        ] {
            let refused = Frames::default().feed(bytes).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}
