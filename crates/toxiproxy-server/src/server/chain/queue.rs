//! A bounded queue of data between two toxics.

use bytes::Bytes;
use std::collections::VecDeque;
use tokio::time::Instant;

/// The cost of a chunk besides its bytes, so that many tiny ones count as well.
const PER_CHUNK: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub bytes: Bytes,
    /// When it came in, or when the toxic before passed it.
    pub since: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Data(Chunk),
    /// The source has sent everything.
    End,
}

#[derive(Debug)]
pub struct Queue {
    items: VecDeque<Item>,
    held: usize,
    capacity: usize,
}

impl Queue {
    pub fn new(capacity: usize) -> Queue {
        Queue {
            items: VecDeque::new(),
            held: 0,
            capacity,
        }
    }

    /// Changes the bound; what is held already stays.
    pub fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether there is room. It is asked before each push; a single chunk may
    /// then exceed the bound.
    pub fn has_room(&self) -> bool {
        self.held < self.capacity
    }

    pub fn front(&self) -> Option<&Item> {
        self.items.front()
    }

    pub fn push(&mut self, item: Item) {
        self.held += cost(&item);
        self.items.push_back(item);
    }

    pub fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.held -= cost(&item);
        Some(item)
    }

    /// Returns the first chunk. An end in front of it waits for nothing, and passes.
    pub fn next_chunk(&mut self, output: &mut Queue) -> Option<&Chunk> {
        if let Some(Item::End) = self.front() {
            self.pop();
            output.push(Item::End);
        }
        match self.front() {
            Some(Item::Data(chunk)) => Some(chunk),
            _ => None,
        }
    }

    /// Passes this many bytes of the first chunk, at this time.
    pub fn pass(&mut self, bytes: usize, at: Instant, output: &mut Queue) {
        if let Some(mut chunk) = self.cut(bytes) {
            chunk.since = at;
            output.push(Item::Data(chunk));
        }
    }

    /// Takes this many bytes, or all there are, off the first chunk.
    pub fn cut(&mut self, bytes: usize) -> Option<Chunk> {
        let Some(Item::Data(chunk)) = self.items.front_mut() else {
            return None;
        };
        if bytes < chunk.bytes.len() {
            self.held -= bytes;
            let bytes = chunk.bytes.split_to(bytes);
            let since = chunk.since;
            return Some(Chunk { bytes, since });
        }
        match self.pop() {
            Some(Item::Data(chunk)) => Some(chunk),
            _ => None,
        }
    }

    /// Appends everything of another queue, regardless of the bound: nothing is lost when
    /// a toxic is removed.
    pub fn take_over(&mut self, mut other: Queue) {
        while let Some(item) = other.pop() {
            self.push(item);
        }
    }

    /// Returns a value that differs whenever something moved.
    pub fn size(&self) -> (usize, usize) {
        (self.items.len(), self.held)
    }
}

fn cost(item: &Item) -> usize {
    match item {
        Item::Data(chunk) => chunk.bytes.len() + PER_CHUNK,
        Item::End => PER_CHUNK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(text: &'static str) -> Chunk {
        Chunk {
            bytes: Bytes::from_static(text.as_bytes()),
            since: Instant::now(),
        }
    }

    #[test]
    fn a_queue_counts_what_it_holds() {
        let mut queue = Queue::new(2 * PER_CHUNK);
        queue.push(Item::Data(chunk("hello")));
        assert!(queue.has_room());
        queue.push(Item::Data(chunk("world")));
        assert!(!queue.has_room(), "two chunks cost more than their bytes");
        assert_eq!(queue.cut(2).unwrap().bytes, "he");
        assert_eq!(queue.cut(9).unwrap().bytes, "llo");
        assert!(queue.has_room());
        queue.push(Item::End);
        queue.pop();
        assert_eq!(queue.cut(1), None, "the end is no data");
        queue.pop();
        assert_eq!(queue.size(), (0, 0));
    }
}
