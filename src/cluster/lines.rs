/// A longer line is not an event; it is cut so that it cannot fill the memory.
const LONGEST_LINE: usize = 64 * 1024;

#[derive(Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    pub fn take(&mut self, chunk: &[u8]) -> Vec<String> {
        self.rest.extend_from_slice(chunk);
        let mut lines = Vec::new();
        while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line[..end]);
            lines.push(text.trim_end_matches('\r').to_owned());
        }
        self.rest.truncate(LONGEST_LINE);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_become_whole_lines() {
        let mut lines = Lines::default();
        assert!(lines.take(b"{\"a\"").is_empty());
        let expected = ["{\"a\":1}", "{\"b\":2}"];
        assert_eq!(lines.take(b":1}\n{\"b\":2}\nre"), expected);
        assert_eq!(lines.take(b"st\r\n"), ["rest"]);
    }

    #[test]
    fn an_endless_line_does_not_fill_the_memory() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert!(lines.take(&[b'x'; 4096]).is_empty());
        }
        assert!(lines.rest.len() <= LONGEST_LINE);
    }
}
