//! Copies of this process's memory that cannot fault.
//!
//! The kernel copies. So a copy of what other threads write at the same time is no data race, only perhaps of no use.

/// Copies memory of this process, whatever has become of it. Returns `None` where there is none.
#[cfg(target_os = "linux")]
pub fn read(address: usize, into: &mut [u8]) -> Option<()> {
    match copy(&[piece(address, into.len())], into) {
        Some(copied) => (copied == into.len()).then_some(()),
        None => read_file(address, into),
    }
}

#[cfg(target_os = "linux")]
fn piece(address: usize, len: usize) -> libc::iovec {
    libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: len }
}

/// Copies pieces of memory, one behind the other. Returns how much, which ends before the first that is not there; `None` for
/// an error of the system.
#[cfg(target_os = "linux")]
fn copy(pieces: &[libc::iovec], into: &mut [u8]) -> Option<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // Not kept: a forked process has another.
    let own = rustix::process::getpid().as_raw_nonzero().get();
    // SAFETY: the call writes at most to `into`, which is borrowed for it; it fails where it cannot read.
    let copied = unsafe { libc::process_vm_readv(own, &local, 1, pieces.as_ptr(), pieces.len() as _, 0) };
    usize::try_from(copied).ok()
}

/// Copies memory where the system refuses the call, as filters of system calls do, or where there is none.
#[cfg(target_os = "linux")]
#[cold]
fn read_file(address: usize, into: &mut [u8]) -> Option<()> {
    use std::os::unix::fs::FileExt;

    if std::io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT) {
        return None;
    }
    let memory = std::fs::File::open("/proc/self/mem").ok()?;
    memory.read_exact_at(into, address as u64).ok()
}

/// Copies several pieces of memory, one behind the other, by one call. Returns how many of them, from the first on, it has
/// copied: it stops where there is none, or where the system refuses the call.
#[cfg(target_os = "linux")]
pub(crate) fn read_many(pieces: &[(usize, usize)], into: &mut [u8]) -> usize {
    let remote: Vec<_> = pieces.iter().map(|(address, len)| piece(*address, *len)).collect();
    let mut left = copy(&remote, into).unwrap_or(0);
    let is_whole = |(_, len): &&(usize, usize)| left.checked_sub(*len).inspect(|rest| left = *rest).is_some();
    pieces.iter().take_while(is_whole).count()
}

/// Returns `None`: there is no way to copy such memory here.
#[cfg(not(target_os = "linux"))]
pub fn read(_address: usize, _into: &mut [u8]) -> Option<()> {
    None
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_many(_pieces: &[(usize, usize)], _into: &mut [u8]) -> usize {
    0
}

/// Reads words of memory in ascending order, as a walk of a stack does, a page at a time.
///
/// So it reads no page that no word was asked of.
pub(crate) struct Words {
    page: Box<[u8; PAGE]>,
    /// Where the copy begins, and how long it is.
    start: usize,
    len: usize,
}

/// The size of the smallest pages.
const PAGE: usize = 4096;

/// Returns how many bytes the page of an address has from there on.
pub(crate) fn rest_of_page(address: usize) -> usize {
    PAGE - address % PAGE
}

const WORD: usize = size_of::<usize>();

impl Words {
    pub(crate) fn new() -> Self {
        Words { page: Box::new([0; PAGE]), start: 0, len: 0 }
    }

    /// Forgets what was read: the memory may have changed.
    pub(crate) fn forget(&mut self) {
        self.len = 0;
    }

    /// Keeps a copy of the memory from that address on, of a page at the most.
    pub(crate) fn keep(&mut self, address: usize, copy: &[u8]) {
        self.page[..copy.len()].copy_from_slice(copy);
        (self.start, self.len) = (address, copy.len());
    }

    /// Returns true if the word at that address needs no further reading.
    pub(crate) fn has(&self, address: usize) -> bool {
        self.kept(address, WORD).is_some()
    }

    /// Returns the word at that address.
    pub(crate) fn at(&mut self, address: usize) -> Option<usize> {
        if !self.has(address) {
            let len = rest_of_page(address).max(WORD);
            self.len = 0;
            read(address, &mut self.page[..len])?;
            (self.start, self.len) = (address, len);
        }
        self.kept(address, WORD)?.try_into().ok().map(usize::from_ne_bytes)
    }

    /// Copies memory, without keeping it for later.
    pub(crate) fn copy(&self, address: usize, into: &mut [u8]) -> Option<()> {
        match self.kept(address, into.len()) {
            Some(kept) => into.copy_from_slice(kept),
            None => read(address, into)?,
        }
        Some(())
    }

    fn kept(&self, address: usize, len: usize) -> Option<&[u8]> {
        let at = address.checked_sub(self.start)?;
        self.page[..self.len].get(at..at.checked_add(len)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_copied_and_none_is_none() {
        let words: Vec<usize> = (0..2000).collect();
        let mut reader = Words::new();
        for (index, word) in words.iter().enumerate() {
            assert_eq!(reader.at(&raw const words[index] as usize), Some(*word));
        }
        assert_eq!((reader.at(8), reader.at(usize::MAX)), (None, None));
        assert_eq!((read(16, &mut [0; 4]), read(usize::MAX - 1, &mut [0; 8])), (None, None));
        let pieces = [0, 3, 1].map(|index| (&raw const words[index] as usize, WORD));
        let mut bytes = [0; 3 * WORD];
        assert_eq!(read_many(&pieces, &mut bytes), 3);
        assert_eq!(bytes.as_chunks().0.iter().map(|word| usize::from_ne_bytes(*word)).sum::<usize>(), 4);
        assert_eq!(read_many(&[pieces[0], (8, WORD), pieces[1]], &mut bytes), 1);
    }
}
