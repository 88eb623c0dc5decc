//! The memory of another process.

use super::ptrace;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;
const WORD: usize = 8;

pub enum Memory {
    /// If the process calls exec in the meantime, this is still the memory of the old
    /// program.
    File(File),
    /// Used if the user may trace the process but not open the file, which belongs to the
    /// user of the process. It reads by address, and writes through the process's first
    /// thread, which has to be stopped.
    OfThread(i32),
}

impl Memory {
    pub fn open(pid: i32) -> io::Result<Memory> {
        let path = format!("/proc/{pid}/mem");
        match File::options().read(true).write(true).open(path) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let memory = Memory::OfThread(pid);
                // Nothing is mapped at address 0, but a missing permission is reported
                // before that.
                match memory.read(&mut [0], 0) {
                    Err(refused) if refused.kind() == ErrorKind::PermissionDenied => Err(error),
                    _ => Ok(memory),
                }
            }
            opened => opened.map(Memory::File),
        }
    }

    /// Reads as many bytes as are mapped.
    pub fn read(&self, bytes: &mut [u8], address: u64) -> io::Result<usize> {
        match self {
            Memory::File(file) => file.read_at(bytes, address),
            Memory::OfThread(tid) => {
                // Read page by page: otherwise a missing page hides those before it.
                let pages = pages(address as usize, bytes.len());
                let mut local = [IoSliceMut::new(bytes)];
                let read = process_vm_readv(Pid::from_raw(*tid), &mut local, &pages);
                read.map_err(io::Error::from)
            }
        }
    }

    pub fn write(&self, bytes: &[u8], address: u64) -> io::Result<()> {
        match self {
            Memory::File(file) => file.write_all_at(bytes, address),
            Memory::OfThread(tid) => {
                let (words, rest) = bytes.as_chunks::<WORD>();
                let mut at = address;
                for word in words {
                    ptrace::poke(*tid, at, *word)?;
                    at += WORD as u64;
                }
                if rest.is_empty() {
                    return Ok(());
                }
                // The last word begins with the bytes before it: behind it nothing may be
                // mapped.
                let begins = at + rest.len() as u64 - WORD as u64;
                let mut word = [0; WORD];
                if self.read(&mut word, begins)? < WORD {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                word[WORD - rest.len()..].copy_from_slice(rest);
                ptrace::poke(*tid, begins, word)
            }
        }
    }
}

fn pages(address: usize, length: usize) -> Vec<RemoteIoVec> {
    let end = address.saturating_add(length);
    let mut pages = Vec::new();
    let mut base = address;
    while base < end {
        let next = (base / PAGE + 1).saturating_mul(PAGE).min(end);
        pages.push(RemoteIoVec {
            base,
            len: next - base,
        });
        base = next;
    }
    pages
}

#[cfg(test)]
mod tests {
    use super::super::process;
    use super::super::threads::Stopped;
    use super::*;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_written_by_way_of_a_thread_is_in_the_file() {
        let mut cat = Command::new("cat");
        let cat = cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = cat.spawn().unwrap();
        let pid = child.id() as i32;
        // A process that answers has its vDSO.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let range = process::vdso(pid).unwrap();
        let file = Memory::open(pid).unwrap();
        assert!(matches!(file, Memory::File(_)));
        let thread = Memory::OfThread(pid);
        let look = |memory: &Memory| {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            assert_eq!(memory.read(&mut bytes, range.start).unwrap(), bytes.len());
            bytes
        };
        assert_eq!(look(&file), look(&thread));

        let (text, at) = (b"thirteen byte", range.end - 13);
        assert!(thread.write(text, at).is_err(), "nobody holds it");
        let held = Stopped::all_of(pid).unwrap();
        thread.write(text, at).unwrap();
        drop(held);
        let written = look(&file);
        assert!(written.ends_with(text));
        assert_eq!(written, look(&thread));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
