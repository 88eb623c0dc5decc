//! Reads a vDSO: where its functions begin and where its contents end. There is no I/O.

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const SYMBOL_SIZE: usize = 24;
const SIXTY_FOUR_BITS: u8 = 2;
const X86_64: u16 = 62;

/// One vDSO as it is mapped, from its first byte to the end of its last page.
pub struct Elf<'a> {
    image: &'a [u8],
    load: Segment,
    symbols: usize,
    symbol_count: usize,
    names: usize,
}

#[derive(Clone, Copy)]
struct Segment {
    offset: usize,
    address: u64,
    size: usize,
}

/// A function, as an offset into the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    pub offset: usize,
    pub size: usize,
}

impl<'a> Elf<'a> {
    /// Parses the image. The error completes "has no vDSO that could be patched: …".
    pub fn parse(image: &'a [u8]) -> Result<Elf<'a>, String> {
        let header = image.get(..64).ok_or("it is too short")?;
        if !header.starts_with(b"\x7fELF") {
            return Err("it is no ELF file".to_owned());
        }
        if header[4] != SIXTY_FOUR_BITS || u16_at(image, 18) != Some(X86_64) {
            return Err("the process is no 64-bit x86 program".to_owned());
        }
        let load = segment(image, PT_LOAD).ok_or("it has no loaded segment")?;
        let dynamic = segment(image, PT_DYNAMIC).ok_or("it has no dynamic segment")?;
        let entry = |tag: u64| {
            let entries = image.get(dynamic.offset..)?.get(..dynamic.size)?;
            let mut entries = entries.chunks_exact(16);
            let found = entries.find(|entry| u64_at(entry, 0) == Some(tag))?;
            load.offset_of(u64_at(found, 8)?)
        };
        let symbols = entry(DT_SYMTAB).ok_or("it has no symbol table")?;
        let names = entry(DT_STRTAB).ok_or("it has no names of symbols")?;
        // If the old hash table, which holds the count, is missing: in every existing
        // vDSO the names follow the symbols.
        let symbol_count = match entry(DT_HASH).and_then(|table| u32_at(image, table + 4)) {
            Some(count) => count as usize,
            None => names.saturating_sub(symbols) / SYMBOL_SIZE,
        };
        Ok(Elf {
            image,
            load,
            symbols,
            symbol_count,
            names,
        })
    }

    pub fn function(&self, name: &str) -> Option<Function> {
        let table = self.image.get(self.symbols..)?;
        let mut symbols = table.chunks_exact(SYMBOL_SIZE).take(self.symbol_count);
        symbols.find_map(|symbol| {
            let at = self.names + u32_at(symbol, 0)? as usize;
            let text = self.image.get(at..)?.split(|byte| *byte == 0).next()?;
            let section = u16_at(symbol, 6)?;
            let is_it = text == name.as_bytes() && section != 0;
            let function = Function {
                offset: self.load.offset_of(u64_at(symbol, 8)?)?,
                size: u64_at(symbol, 16)? as usize,
            };
            let is_inside = function.offset + function.size <= self.image.len();
            (is_it && is_inside).then_some(function)
        })
    }

    /// Returns how many bytes at the end are unused: they are behind the loaded segment
    /// and behind the section headers, which follow it, and all of them are zero.
    pub fn room_at_the_end(&self) -> usize {
        let contents = self.load.offset + self.load.size;
        let contents = contents.max(self.end_of_section_headers());
        let rest = self.image.get(contents..).unwrap_or_default();
        let zeros = rest.iter().rev().take_while(|byte| **byte == 0);
        zeros.count()
    }

    fn end_of_section_headers(&self) -> usize {
        let end = || {
            let start = u64_at(self.image, 40)? as usize;
            let size = u16_at(self.image, 58)? as usize;
            let count = u16_at(self.image, 60)? as usize;
            start.checked_add(size * count)
        };
        end().unwrap_or(0)
    }
}

impl Segment {
    /// Converts an address to an offset. The pointers in a vDSO are as the linker left
    /// them, never relocated.
    fn offset_of(&self, address: u64) -> Option<usize> {
        let inside = address.checked_sub(self.address)? as usize;
        (inside < self.size).then_some(self.offset + inside)
    }
}

fn segment(image: &[u8], kind: u32) -> Option<Segment> {
    let start = u64_at(image, 32)? as usize;
    let size = u16_at(image, 54)? as usize;
    let count = u16_at(image, 56)? as usize;
    let mut headers = (0..count).map(|index| start + index * size);
    let at = headers.find(|at| u32_at(image, *at) == Some(kind))?;
    let segment = Segment {
        offset: u64_at(image, at + 8)? as usize,
        address: u64_at(image, at + 16)?,
        size: u64_at(image, at + 40)? as usize,
    };
    let end = segment.offset.checked_add(segment.size)?;
    (end <= image.len()).then_some(segment)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::super::process::vdso_of;
    use super::*;
    use std::os::unix::fs::FileExt;

    fn our_own_vdso() -> (u64, Vec<u8>) {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = vdso_of(&maps).unwrap();
        let mut image = vec![0; (range.end - range.start) as usize];
        let memory = std::fs::File::open("/proc/self/mem").unwrap();
        memory.read_exact_at(&mut image, range.start).unwrap();
        (range.start, image)
    }

    #[test]
    fn functions_are_where_the_loader_finds_them() {
        // SAFETY: the name is a C string; the first handle that knows it is asked.
        let loaded = unsafe {
            let handle = libc::dlopen(c"linux-vdso.so.1".as_ptr(), libc::RTLD_LAZY);
            libc::dlsym(handle, c"__vdso_clock_gettime".as_ptr())
        } as u64;
        let (start, image) = our_own_vdso();
        let elf = Elf::parse(&image).unwrap();
        let found = elf.function("__vdso_clock_gettime").unwrap();
        assert_eq!(start + found.offset as u64, loaded);
        assert!(found.size > 5);
        assert_eq!(elf.function("clock_gettime"), Some(found));
        assert_eq!(elf.function("__vdso_clock_get"), None);
    }

    #[test]
    fn the_room_at_the_end_is_behind_the_section_headers() {
        let (_, mut image) = our_own_vdso();
        let room = Elf::parse(&image).unwrap().room_at_the_end();
        let free = image.len() - room;
        assert!(image[free..].iter().all(|byte| *byte == 0));
        let sections = Elf::parse(&image).unwrap().end_of_section_headers();
        assert!(free >= sections, "{free} {sections}");
        *image.last_mut().unwrap() = 1;
        assert_eq!(Elf::parse(&image).unwrap().room_at_the_end(), 0);
    }

    #[test]
    fn a_broken_image_is_refused_and_never_a_panic() {
        let (_, image) = our_own_vdso();
        assert!(Elf::parse(&[]).is_err());
        assert!(Elf::parse(&image[..100]).is_err());
        let mut thirty_two_bits = image.clone();
        thirty_two_bits[4] = 1;
        assert!(Elf::parse(&thirty_two_bits).is_err());
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..2_000 {
            let mut broken = image.clone();
            for _ in 0..20 {
                let at = random.usize(4..0x400);
                broken[at] = random.u8(..);
            }
            if let Ok(elf) = Elf::parse(&broken) {
                elf.function("__vdso_time");
                elf.room_at_the_end();
            }
        }
    }
}
