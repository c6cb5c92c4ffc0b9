//! Reads, writes and seeks of a `File`, by std's traits, also through a shared reference.

#![forbid(unsafe_code)]

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use fibra_runtime::unblock;

use super::File;
use crate::sys::file::Place;
use crate::waiting::convert::{reads_through, writes_by_reference};

impl FileExt for File {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        match self.0.read_in_place(&mut [IoSliceMut::new(buf)], Place::Offset(offset)) {
            Some(outcome) => outcome,
            None => unblock(|| self.std().read_at(buf, offset)),
        }
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        unblock(|| self.std().write_at(buf, offset))
    }

    /// Once on the pool for all of it.
    fn write_all_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        unblock(|| self.std().write_all_at(buf, offset))
    }
}

impl Read for &File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.read(&mut [IoSliceMut::new(buf)])
    }

    fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read(bufs)
    }

    /// Once on the pool for all of it, with what is in the file as a hint.
    fn read_to_end(&mut self, buf: &mut Vec<u8>) -> io::Result<usize> {
        match self.0.is_endless() {
            // `Take` has no `read_to_end` of its own, so this calls `read`.
            true => Read::take(self, u64::MAX).read_to_end(buf),
            false => self.0.at_position(|| self.std().read_to_end(buf)),
        }
    }

    fn read_to_string(&mut self, buf: &mut String) -> io::Result<usize> {
        match self.0.is_endless() {
            true => Read::take(self, u64::MAX).read_to_string(buf),
            false => self.0.at_position(|| self.std().read_to_string(buf)),
        }
    }
}

impl Write for &File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.write(&[IoSlice::new(buf)])
    }

    fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write(bufs)
    }

    /// Nothing: what was written has gone to the system.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    /// In place, where it needs no disk.
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        match (pos, self.0.is_busy()) {
            (SeekFrom::Start(_) | SeekFrom::Current(_), false) => self.std().seek(pos),
            _ => self.0.at_position(|| self.std().seek(pos)),
        }
    }
}

reads_through!(File: file => &*file);
writes_by_reference!(File);

impl Seek for File {
    fn seek(&mut self, pos: SeekFrom) -> io::Result<u64> {
        (&*self).seek(pos)
    }
}
