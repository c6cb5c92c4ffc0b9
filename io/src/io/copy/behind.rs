//! What stands behind a reader or a writer of whatever type: our files, sockets and pipes, their references, and these in std's
//! adapters.
//!
//! Stable Rust lets no function be another one for certain types. So the type is told by its number, which [`typeid`] has
//! of any type, whatever it borrows.

use std::any::TypeId;
use std::io::{BufReader, BufWriter, Read, Take, Write};

use super::kernel::End;
use crate::fs::File;
use crate::io::{PipeReader, PipeWriter};
use crate::net::{TcpStream, UnixStream};
use crate::process::{ChildStderr, ChildStdin, ChildStdout};

/// A reader or a writer that has one of our descriptors behind it.
pub(super) trait Front {
    fn end(&self) -> &dyn End;

    /// So many bytes have been read from the descriptor that nobody has asked for yet.
    fn ahead(&self) -> usize {
        0
    }

    /// So many bytes may be read from the descriptor.
    fn left(&self) -> u64 {
        u64::MAX
    }

    /// Notes that so many bytes were read from the descriptor.
    fn pass(&mut self, _bytes: u64) {}
}

impl<F: Front + ?Sized> Front for &mut F {
    fn end(&self) -> &dyn End {
        (**self).end()
    }

    fn ahead(&self) -> usize {
        (**self).ahead()
    }

    fn left(&self) -> u64 {
        (**self).left()
    }

    fn pass(&mut self, bytes: u64) {
        (**self).pass(bytes);
    }
}

impl<F: Front> Front for Take<F> {
    fn end(&self) -> &dyn End {
        self.get_ref().end()
    }

    fn ahead(&self) -> usize {
        let limit = usize::try_from(self.limit()).unwrap_or(usize::MAX);
        self.get_ref().ahead().min(limit)
    }

    fn left(&self) -> u64 {
        self.get_ref().left().min(self.limit())
    }

    fn pass(&mut self, bytes: u64) {
        self.set_limit(self.limit().saturating_sub(bytes));
        self.get_mut().pass(bytes);
    }
}

/// What is in the buffer of a reader in its turn is not looked for: there is none among the `readers!`.
impl<F: Front> Front for BufReader<F> {
    fn end(&self) -> &dyn End {
        self.get_ref().end()
    }

    fn ahead(&self) -> usize {
        self.buffer().len()
    }

    fn left(&self) -> u64 {
        self.get_ref().left()
    }

    fn pass(&mut self, bytes: u64) {
        self.get_mut().pass(bytes);
    }
}

impl<F: Front + Write> Front for BufWriter<F> {
    fn end(&self) -> &dyn End {
        self.get_ref().end()
    }
}

macro_rules! fronts {
    ($it:ident => $end:expr; $($ours:ident)+) => {$(
        impl Front for $ours {
            fn end(&self) -> &dyn End {
                let $it = self;
                $end
            }
        }

        impl Front for &$ours {
            fn end(&self) -> &dyn End {
                (**self).end()
            }
        }
    )+};
}

fronts!(file => file.channel(); File);
fronts!(socket => &socket.0; TcpStream UnixStream);
fronts!(pipe => &pipe.0; PipeReader PipeWriter ChildStdin ChildStdout ChildStderr);

/// Gives `at` as what the number says that it points to, if it is the number of one of the types.
macro_rules! tell {
    ($id:ident, $at:ident: $($front:ty),+ $(,)?) => {$(
        if $id == typeid::of::<$front>() {
            return Some($at.cast::<$front>());
        }
    )+};
}

macro_rules! readers {
    ($id:ident, $at:ident: $($ours:ty),+) => {$(
        tell!($id, $at: $ours, BufReader<$ours>, &'a mut BufReader<$ours>, Take<$ours>, &'a mut Take<$ours>);
        tell!($id, $at: BufReader<Take<$ours>>, BufReader<&'a mut Take<$ours>>);
        tell!($id, $at: &'a mut BufReader<Take<$ours>>, &'a mut BufReader<&'a mut Take<$ours>>);
        tell!($id, $at: Take<BufReader<$ours>>, Take<&'a mut BufReader<$ours>>);
        tell!($id, $at: &'a mut Take<BufReader<$ours>>, &'a mut Take<&'a mut BufReader<$ours>>);
    )+};
}

macro_rules! writers {
    ($id:ident, $at:ident: $($ours:ty),+) => {$(
        tell!($id, $at: $ours, BufWriter<$ours>, &'a mut BufWriter<$ours>);
    )+};
}

/// The reader of that number.
fn reader<'a>(id: TypeId, at: *mut ()) -> Option<*mut (dyn Front + 'a)> {
    readers!(id, at: File, &'a File, &'a mut File);
    readers!(id, at: TcpStream, &'a TcpStream, &'a mut TcpStream);
    readers!(id, at: UnixStream, &'a UnixStream, &'a mut UnixStream);
    readers!(id, at: PipeReader, &'a PipeReader, &'a mut PipeReader);
    readers!(id, at: ChildStdout, &'a ChildStdout, &'a mut ChildStdout);
    readers!(id, at: ChildStderr, &'a ChildStderr, &'a mut ChildStderr);
    None
}

/// The writer of that number.
fn writer<'a>(id: TypeId, at: *mut ()) -> Option<*mut (dyn Front + 'a)> {
    writers!(id, at: File, &'a File, &'a mut File);
    writers!(id, at: TcpStream, &'a TcpStream, &'a mut TcpStream);
    writers!(id, at: UnixStream, &'a UnixStream, &'a mut UnixStream);
    writers!(id, at: PipeWriter, &'a PipeWriter, &'a mut PipeWriter);
    writers!(id, at: ChildStdin, &'a ChildStdin, &'a mut ChildStdin);
    None
}

/// Gives what stands behind a reader, if we know it.
pub(super) fn behind_reader<R: Read + ?Sized>(it: &R) -> Option<&(dyn Front + '_)> {
    let front = reader(typeid::of::<R>(), std::ptr::from_ref(it).cast_mut().cast())?;
    // SAFETY: `front` points to `it`, as the type that has the same number as `R`. Types of one number differ in nothing but
    // lifetimes, so it is laid out as that. Those that are made up here are the one of the borrow of `it`, which `R` outlives
    // with all that it borrows; and since `Front` gives nothing longer away and puts nothing in, it makes no difference that
    // they were longer. It is borrowed for as long as the result, and only shared.
    Some(unsafe { &*front })
}

/// Gives what stands behind a writer, if we know it.
pub(super) fn behind_writer<W: Write + ?Sized>(it: &W) -> Option<&(dyn Front + '_)> {
    let front = writer(typeid::of::<W>(), std::ptr::from_ref(it).cast_mut().cast())?;
    // SAFETY: as in `behind_reader`.
    Some(unsafe { &*front })
}

/// Notes that so many bytes were read from what stands behind a reader.
pub(super) fn pass_reader<R: Read + ?Sized>(it: &mut R, bytes: u64) {
    if let Some(front) = reader(typeid::of::<R>(), std::ptr::from_mut(it).cast()) {
        // SAFETY: as in `behind_reader`; it is borrowed for this call, by nobody else.
        unsafe { &mut *front }.pass(bytes);
    }
}
