//! The assembled blob, as bytes in our own executable.

use super::blob::Entry;

unsafe extern "C" {
    static fencepost_clock_blob: u8;
    static fencepost_clock_blob_clock_gettime: u8;
    static fencepost_clock_blob_gettimeofday: u8;
    static fencepost_clock_blob_time: u8;
    static fencepost_clock_blob_end: u8;
}

pub fn all() -> &'static [u8] {
    let start = &raw const fencepost_clock_blob;
    let length = &raw const fencepost_clock_blob_end as usize - start as usize;
    // SAFETY: both labels are in one section that nobody writes to, the second
    // behind the first, and everything between them is initialised.
    unsafe { std::slice::from_raw_parts(start, length) }
}

pub fn offset_of(entry: Entry) -> usize {
    let code = match entry {
        Entry::ClockGettime => &raw const fencepost_clock_blob_clock_gettime,
        Entry::Gettimeofday => &raw const fencepost_clock_blob_gettimeofday,
        Entry::Time => &raw const fencepost_clock_blob_time,
    };
    code as usize - &raw const fencepost_clock_blob as usize
}
