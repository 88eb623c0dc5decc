//! The blob that is put into a target's vDSO: code that asks the kernel for the time and
//! shifts the answer, and a header with the numbers to shift it by.
//!
//! The blob is at the very end of the mapping, so any later call finds it again. The
//! header contains the bytes that the jumps replaced: nothing has to be kept elsewhere to
//! undo everything.

use crate::Clock;
use std::arch::global_asm;

/// The room at the end of the vDSO that the blob takes. Later versions have to find it at
/// the same place, so this must not change.
pub const SPACE: usize = 512;
/// The version of the layout follows.
const MAGIC: &[u8; 7] = b"fpclock";
const GENERATION_AT: usize = 8;
const SAVED_AT: usize = 16;
const SLOTS_AT: usize = 40;
const SHIFT_SIZE: usize = 24;
const SLOT_SIZE: usize = 2 * SHIFT_SIZE;
const CODE_AT: usize = SLOTS_AT + 2 * SLOT_SIZE;
pub const JUMP_SIZE: usize = 5;

// The header's layout is repeated in the constants above; a test runs the code
// on numbers written by them.
//
// Every register used here may be changed by a C function. `syscall` changes
// rax, rcx and r11.
global_asm!(
    r#"
    .pushsection .rodata.fencepost_clock_blob, "a", @progbits
    .balign 16
    .globl fencepost_clock_blob
    .hidden fencepost_clock_blob
fencepost_clock_blob:
    .ascii "fpclock1"
.Lgeneration:
    # The generation: a single byte, so that no write of it can be seen half
    # done. Its lowest bit says which slot is in use.
    .byte 0
    .balign 8
    # The first five bytes of the three functions, each padded to eight.
    .zero 24
.Lslots:
    # Two slots, each with base, offset and rate of realtime and monotonic.
    .zero 96

    .globl fencepost_clock_blob_clock_gettime
    .hidden fencepost_clock_blob_clock_gettime
fencepost_clock_blob_clock_gettime:    # edi: clock id, rsi: timespec
    mov eax, 228
    syscall
    test rax, rax
    jnz .Lreturn                       # an error is the caller's
    cmp edi, 11                        # unsigned: negative ids are CPU clocks
    ja .Lreturn
    xor r8d, r8d                       # the realtime family comes first in a slot
    mov ecx, 0x921                     # REALTIME, its COARSE and ALARM, TAI
    bt ecx, edi
    jc .Lshift
    mov r8d, 24
    mov ecx, 0x2d2                     # MONOTONIC, its RAW and COARSE, BOOTTIME, its ALARM
    bt ecx, edi
    jc .Lshift
    ret                                # CPU time stays as it is; rax is 0

.Lshift:
    # Shifts the timespec at rsi by the slot's part at r8, which is 0 or 24.
    # Leaves the nanoseconds in rdx and 0 in rax.
    imul r9, [rsi], 1000000000
    add r9, [rsi + 8]                  # r9: the true time
.Lread_slot:
    movzx r10d, byte ptr [rip + .Lgeneration]
    mov ecx, r10d
    and ecx, 1
    imul ecx, ecx, 48
    add ecx, r8d
    lea rax, [rip + .Lslots]
    add rcx, rax
    mov rax, r9
    sub rax, [rcx]                     # since the base
    mov r11, [rcx + 8]                 # the offset
    mov rdi, [rcx + 16]                # the rate in ppm
    movzx edx, byte ptr [rip + .Lgeneration]
    cmp edx, r10d                      # the slot was rewritten meanwhile: again
    jne .Lread_slot
    imul rdi                           # rdx:rax, which idiv takes: no overflow, |rate| <= 10^6
    mov ecx, 1000000
    idiv rcx
    add rax, r11
    add rax, r9
    cqo
    mov ecx, 1000000000
    idiv rcx
    test rdx, rdx
    jns .Lstore
    add rdx, rcx                       # nanoseconds are never negative
    dec rax
.Lstore:
    mov [rsi], rax
    mov [rsi + 8], rdx
    xor eax, eax
.Lreturn:
    ret

    .globl fencepost_clock_blob_gettimeofday
    .hidden fencepost_clock_blob_gettimeofday
fencepost_clock_blob_gettimeofday:     # rdi: timeval or null, rsi: timezone or null
    mov eax, 96
    syscall
    test rax, rax
    jnz .Lreturn
    test rdi, rdi
    jz .Lreturn
    mov rsi, rdi
    imul rax, [rsi + 8], 1000
    mov [rsi + 8], rax
    xor r8d, r8d
    call .Lshift
    mov rax, rdx
    xor edx, edx
    mov ecx, 1000
    div rcx
    mov [rsi + 8], rax
    xor eax, eax
    ret

    .globl fencepost_clock_blob_time
    .hidden fencepost_clock_blob_time
fencepost_clock_blob_time:             # rdi: time_t or null
    push rdi
    sub rsp, 16
    mov edi, 5                         # REALTIME_COARSE, which time() is made of
    mov rsi, rsp
    mov eax, 228
    syscall
    xor r8d, r8d
    call .Lshift
    mov rax, [rsp]
    add rsp, 16
    pop rdi
    test rdi, rdi
    jz .Lreturn
    mov [rdi], rax
    ret

    .globl fencepost_clock_blob_end
    .hidden fencepost_clock_blob_end
fencepost_clock_blob_end:
    .popsection
"#
);

/// The functions of a vDSO that return the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    ClockGettime,
    Gettimeofday,
    Time,
}

impl Entry {
    pub const ALL: [Entry; 3] = [Entry::ClockGettime, Entry::Gettimeofday, Entry::Time];

    pub fn symbol(self) -> &'static str {
        match self {
            Entry::ClockGettime => "__vdso_clock_gettime",
            Entry::Gettimeofday => "__vdso_gettimeofday",
            Entry::Time => "__vdso_time",
        }
    }

    /// Returns where its replacement begins in the blob.
    fn code_at(self) -> usize {
        super::blob_bytes::offset_of(self)
    }

    fn saved_at(self) -> usize {
        SAVED_AT + 8 * self as usize
    }

    /// Returns the jump from a function to its replacement, both as offsets into the
    /// vDSO.
    pub fn jump(self, function: usize, blob: usize) -> [u8; JUMP_SIZE] {
        let from = (function + JUMP_SIZE) as i64;
        let distance = (blob + self.code_at()) as i64 - from;
        let distance = i32::try_from(distance).expect("a vDSO is a few pages long");
        let mut jump = [0xe9; JUMP_SIZE];
        jump[1..].copy_from_slice(&distance.to_le_bytes());
        jump
    }
}

/// The shift of one clock: at the true time t, by `offset + (t − base) · rate`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    pub base_ns: i64,
    pub offset_ns: i64,
    pub rate_ppm: i64,
}

impl Shift {
    /// Returns how far the clock is ahead at this true time; the blob computes the same.
    pub fn at(&self, true_ns: i64) -> i64 {
        let elapsed = i128::from(true_ns - self.base_ns);
        let drift = elapsed * i128::from(self.rate_ppm) / 1_000_000;
        self.offset_ns + drift as i64
    }
}

/// The shifts of both clocks: the contents of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shifts {
    pub realtime: Shift,
    pub monotonic: Shift,
}

impl Shifts {
    pub fn of(&mut self, clock: Clock) -> &mut Shift {
        match clock {
            Clock::Realtime => &mut self.realtime,
            Clock::Monotonic => &mut self.monotonic,
        }
    }

    fn to_bytes(self) -> [u8; SLOT_SIZE] {
        let [r, m] = [self.realtime, self.monotonic];
        let numbers = [r, m].map(|shift| [shift.base_ns, shift.offset_ns, shift.rate_ppm]);
        let bytes = numbers.as_flattened().iter().flat_map(|n| n.to_le_bytes());
        let bytes: Vec<u8> = bytes.collect();
        bytes.try_into().expect("six numbers of eight bytes")
    }

    fn from_bytes(bytes: &[u8]) -> Shifts {
        let (numbers, _) = bytes.as_chunks::<8>();
        let shift = |at: usize| Shift {
            base_ns: i64::from_le_bytes(numbers[at]),
            offset_ns: i64::from_le_bytes(numbers[at + 1]),
            rate_ppm: i64::from_le_bytes(numbers[at + 2]),
        };
        Shifts {
            realtime: shift(0),
            monotonic: shift(3),
        }
    }
}

/// The blob as it is in a target, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    bytes: [u8; SPACE],
}

/// The content found at the blob's place.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    Nothing,
    Ours(Box<Blob>),
    OtherVersion,
    SomethingElse,
}

/// A few bytes to write at an offset into the blob.
pub struct Piece {
    pub at: usize,
    pub bytes: Vec<u8>,
}

impl Blob {
    pub fn fresh() -> Blob {
        let code = super::blob_bytes::all();
        let mut bytes = [0; SPACE];
        bytes[..code.len()].copy_from_slice(code);
        Blob { bytes }
    }

    pub fn recognise(bytes: &[u8; SPACE]) -> Found {
        let fresh = Blob::fresh();
        let same_code = bytes[CODE_AT..] == fresh.bytes[CODE_AT..];
        if bytes.iter().all(|byte| *byte == 0) {
            Found::Nothing
        } else if !bytes.starts_with(MAGIC) {
            Found::SomethingElse
        } else if bytes[..8] == fresh.bytes[..8] && same_code {
            Found::Ours(Box::new(Blob { bytes: *bytes }))
        } else {
            Found::OtherVersion
        }
    }

    pub fn bytes(&self) -> &[u8; SPACE] {
        &self.bytes
    }

    pub fn saved(&self, entry: Entry) -> [u8; JUMP_SIZE] {
        let at = entry.saved_at();
        *self.bytes[at..].first_chunk().expect("inside the header")
    }

    pub fn save(&mut self, entry: Entry, original: [u8; JUMP_SIZE]) {
        let at = entry.saved_at();
        self.bytes[at..at + JUMP_SIZE].copy_from_slice(&original);
    }

    pub fn shifts(&self) -> Shifts {
        let at = slot_at(self.bytes[GENERATION_AT]);
        Shifts::from_bytes(&self.bytes[at..at + SLOT_SIZE])
    }

    /// Fills the slot that is not in use and switches to it. Returns the pieces to write
    /// into a running blob, in this order: a reader sees the old numbers or the new ones,
    /// never half of each.
    pub fn turn_to(&mut self, shifts: Shifts) -> [Piece; 2] {
        let generation = self.bytes[GENERATION_AT].wrapping_add(1);
        let at = slot_at(generation);
        let slot = shifts.to_bytes();
        self.bytes[at..at + SLOT_SIZE].copy_from_slice(&slot);
        self.bytes[GENERATION_AT] = generation;
        [
            Piece {
                at,
                bytes: slot.to_vec(),
            },
            Piece {
                at: GENERATION_AT,
                bytes: vec![generation],
            },
        ]
    }
}

fn slot_at(generation: u8) -> usize {
    SLOTS_AT + SLOT_SIZE * usize::from(generation & 1)
}

#[cfg(test)]
#[path = "blob_tests.rs"]
mod tests;
