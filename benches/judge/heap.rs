//! The system's allocator with a count of the bytes that are in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

pub struct Heap {
    /// Only while somebody asks: counting takes time, and of many small pieces
    /// more than of a few large ones.
    counts: AtomicBool,
    used: AtomicUsize,
    peak: AtomicUsize,
}

impl Heap {
    pub const fn new() -> Heap {
        Heap {
            counts: AtomicBool::new(false),
            used: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// The most bytes that were in use at once of all that `work` asked for.
    /// It has to free all of them, and nothing else.
    pub fn peak_of(&self, work: impl FnOnce()) -> usize {
        self.used.store(0, Relaxed);
        self.peak.store(0, Relaxed);
        self.counts.store(true, Relaxed);
        work();
        self.counts.store(false, Relaxed);
        assert_eq!(self.used.load(Relaxed), 0, "not all was freed");
        self.peak.load(Relaxed)
    }

    fn count(&self, more: usize, less: usize) {
        if self.counts.load(Relaxed) {
            let used = self.used.load(Relaxed) + more - less;
            self.used.store(used, Relaxed);
            self.peak.fetch_max(used, Relaxed);
        }
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: the caller keeps the promises that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        self.count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Large blocks are moved page by page and never exist twice.
        self.count(size, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}
