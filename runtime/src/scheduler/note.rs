//! The note in the binary that leads debuggers, and readers of core files, to all started tasks.
//!
//! ```text
//!  .note.fibra ──▶ Root ──newest──▶ Chunk ──older──▶ Chunk ──older──▶ … ──▶ null
//!                   │                │ slots: odd = vacant, else the address of a Header
//!                   └ layout: where the fields of a Header lie
//! ```
//!
//! The note has the name `fibra`, and its type is the version of the layout. Its 8 bytes are the distance from themselves to the
//! [`Root`]. So the loader has nothing to relocate, and the note lies with the headers that every core file has. Linkers
//! keep notes where they drop other data that no code uses, and a stripped binary has them still.
//!
//! Rejected: a note that is the root itself. GNU's linker puts notes beside the headers, and makes those writable then.

use std::ptr;
use std::sync::atomic::AtomicPtr;

use crate::tasks::header::{Header, Layout};

/// Slots of one chunk.
pub(crate) const SLOTS: usize = 512;

/// Changes with the meaning of anything that the root leads to, and with the order of its fields.
pub const VERSION: u32 = 1;

/// Leads a reader of the process's memory to all started tasks.
#[repr(C)]
pub(crate) struct Root {
    /// The chunk that was made last.
    pub(crate) newest: AtomicPtr<()>,
    /// How many slots follow the pointer to the older chunk.
    pub(crate) slots: u32,
    pub(crate) layout: Layout,
}

// Kept whole: no code of the process reads the fields that readers of its memory need.
#[used]
pub(crate) static ROOT: Root =
    Root { newest: AtomicPtr::new(ptr::null_mut()), slots: SLOTS as u32, layout: Header::LAYOUT };

// In the module of the root: what links the one links the other.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
std::arch::global_asm!(
    ".pushsection .note.fibra, \"a\", %note",
    ".balign 8",
    ".long 6, 8, {version}",
    ".asciz \"fibra\"",
    ".balign 8",
    ".quad {root} - .",
    ".popsection",
    version = const VERSION,
    root = sym ROOT,
);
