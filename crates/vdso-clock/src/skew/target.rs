//! A process, its vDSO and our changes to it.

use super::blob::{Blob, Entry, Found, JUMP_SIZE, Piece, SPACE, Shifts};
use super::elf::Elf;
use super::memory::Memory;
use super::process;
use crate::{SkewError, SkewResult};
use std::io;
use std::ops::Range;

pub struct Target {
    pub pid: i32,
    memory: Memory,
    /// Where the vDSO is mapped.
    range: Range<u64>,
    functions: Vec<(Entry, usize)>,
    blob_at: usize,
    /// `None` if a blob was never put there.
    pub blob: Option<Blob>,
    /// The functions that jump into the blob.
    patched: Vec<Entry>,
    /// The bytes at the functions' beginnings.
    heads: Vec<[u8; JUMP_SIZE]>,
}

impl Target {
    /// Reads all the data about a process; changes nothing.
    pub fn open(pid: i32) -> SkewResult<Target> {
        process::check(pid)?;
        let memory = Memory::open(pid);
        let memory = memory.map_err(|error| process::from_proc(pid, "open its memory", error))?;
        let range = process::vdso(pid)?;
        let mut image = vec![0; (range.end - range.start) as usize];
        let read = memory.read(&mut image, range.start);
        let read = read.map_err(|error| process::from_proc(pid, "read its vDSO", error))?;
        if read < image.len() {
            return Err(SkewError::NoSuchProcess { pid });
        }
        Target::from_image(pid, memory, range, &image)
    }

    fn from_image(pid: i32, memory: Memory, range: Range<u64>, image: &[u8]) -> SkewResult<Target> {
        let no_vdso = |why: String| SkewError::NoVdso { pid, why };
        let elf = Elf::parse(image).map_err(no_vdso)?;
        let found = Entry::ALL.map(|entry| (entry, elf.function(entry.symbol())));
        if let Some((entry, _)) = found.iter().find(|(_, f)| f.is_none()) {
            return Err(no_vdso(format!("it has no function {}", entry.symbol())));
        }
        let functions = found.into_iter().filter_map(|(entry, function)| {
            let function = function.filter(|function| function.size >= JUMP_SIZE)?;
            Some((entry, function.offset))
        });
        let functions: Vec<(Entry, usize)> = functions.collect();
        if functions.len() < Entry::ALL.len() {
            return Err(no_vdso("a function is shorter than a jump".to_owned()));
        }
        let Some((rest, place)) = image.split_last_chunk::<SPACE>() else {
            return Err(no_vdso("it is too short".to_owned()));
        };
        let blob_at = rest.len();
        let blob = match Blob::recognise(place) {
            Found::Ours(blob) => Some(*blob),
            Found::Nothing if elf.room_at_the_end() >= SPACE => None,
            Found::OtherVersion => return Err(SkewError::OtherVersion { pid }),
            Found::Nothing | Found::SomethingElse => {
                return Err(SkewError::NoRoomInVdso {
                    pid,
                    needed: SPACE,
                    found: elf.room_at_the_end(),
                });
            }
        };
        let head = |offset: usize| *image[offset..].first_chunk().expect("it is longer");
        let heads: Vec<[u8; JUMP_SIZE]> = functions.iter().map(|(_, at)| head(*at)).collect();
        let patched = functions
            .iter()
            .filter(|(entry, at)| blob.is_some() && head(*at) == entry.jump(*at, blob_at))
            .map(|(entry, _)| *entry)
            .collect();
        Ok(Target {
            pid,
            memory,
            range,
            functions,
            blob_at,
            blob,
            patched,
            heads,
        })
    }

    /// Checks that a held process has not become another program (exec) since it was
    /// opened, so that the data read then is still true.
    pub fn check_unchanged(&self) -> SkewResult {
        match process::vdso(self.pid)? == self.range {
            true => Ok(()),
            false => Err(SkewError::ReadBack {
                pid: self.pid,
                what: "a vDSO where it was".to_owned(),
                found: "another".to_owned(),
            }),
        }
    }

    /// Returns whether any function is patched. If a patch was cut short, others may not
    /// be.
    pub fn is_patched(&self) -> bool {
        !self.patched.is_empty()
    }

    pub fn is_patched_throughout(&self) -> bool {
        self.patched.len() == self.functions.len()
    }

    pub fn shifts(&self) -> Shifts {
        match &self.blob {
            Some(blob) if self.is_patched() => blob.shifts(),
            _ => Shifts::default(),
        }
    }

    /// Returns where no thread may be while the functions' first bytes change: inside of
    /// them, but not at the first byte.
    pub fn windows(&self) -> Vec<Range<u64>> {
        let functions = self.functions.iter();
        let window = |at: usize| {
            let at = self.range.start + at as u64;
            at + 1..at + JUMP_SIZE as u64
        };
        functions.map(|(_, at)| window(*at)).collect()
    }

    pub fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<usize> {
        self.memory.read(bytes, address)
    }

    /// Returns the blob for these shifts, with the original bytes of the functions.
    pub fn blob_for(&self, shifts: Shifts) -> Blob {
        let mut blob = self.blob.clone().unwrap_or_else(Blob::fresh);
        for ((entry, _), head) in self.functions.iter().zip(&self.heads) {
            if !self.patched.contains(entry) {
                blob.save(*entry, *head);
            }
        }
        blob.turn_to(shifts);
        blob
    }

    pub fn write_blob(&self, blob: &Blob) -> SkewResult {
        self.write(self.blob_at, blob.bytes())
    }

    /// Changes a blob that may be running.
    pub fn write_pieces(&self, pieces: &[Piece]) -> SkewResult {
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| self.write(self.blob_at + piece.at, &piece.bytes))
    }

    /// Turns every function into a jump. If one fails, all are restored.
    pub fn write_jumps(&self, blob: &Blob) -> SkewResult {
        for (entry, at) in &self.functions {
            if let Err(error) = self.write(*at, &entry.jump(*at, self.blob_at)) {
                let _ = self.restore_functions(blob);
                return Err(error);
            }
            #[cfg(debug_assertions)]
            super::mutant::die_half_way();
        }
        Ok(())
    }

    pub fn restore_functions(&self, blob: &Blob) -> SkewResult {
        let mut functions = self.functions.iter();
        functions.try_for_each(|(entry, at)| self.write(*at, &blob.saved(*entry)))
    }

    fn write(&self, at: usize, bytes: &[u8]) -> SkewResult {
        let written = self.memory.write(bytes, self.range.start + at as u64);
        written.map_err(|error| process::from_proc(self.pid, "write to its vDSO", error))
    }
}
