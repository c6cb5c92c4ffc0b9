//! Arithmetic of sizes: what a class, a guard and a region measure. No memory is touched here.

#![forbid(unsafe_code)]

use std::io;

/// The smallest class in bytes.
pub(super) const SMALLEST: usize = 32 * 1024;

/// Requests up to this size get twice as much, so that the guard does not take half of what little they have.
const SMALL: usize = 32 * 1024;

/// The guard of a stack. Wider than a page, since C code is compiled without probes and may step over one.
const GUARD: usize = 16 * 1024;

/// The colours of stacks: how many different starts there are, and how far they lie apart (a cache line).
pub(super) const COLOURS: usize = 16;
pub(super) const COLOUR_STEP: usize = 64;

// Every colour lies in the topmost part of its stack.
const _: () = assert!(COLOURS * COLOUR_STEP <= SMALLEST / 2);

/// The first region of a class has at most so many stacks, and each further one twice as many as the last.
const FIRST_STACKS: usize = 64;
const MOST_STACKS: usize = 16 * 1024;

/// The most address space that the first and any later region may take, unless a single stack is larger.
const FIRST_BYTES: usize = 32 * 1024 * 1024;
#[cfg(target_pointer_width = "64")]
const MOST_BYTES: usize = 8 * 1024 * 1024 * 1024;
#[cfg(not(target_pointer_width = "64"))]
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// The largest stack: the largest power of two of which a region, with room to align it, fits into
/// the address space.
const LARGEST: usize = 1 << (usize::BITS - 3);

/// Refuses sizes that no stack can have.
///
/// # Errors
///
/// `InvalidInput` where a stack of `bytes` does not fit into the address space.
pub(crate) fn check_fits(bytes: usize) -> io::Result<()> {
    match bytes <= LARGEST {
        true => Ok(()),
        false => {
            let text = format!("a stack of {bytes} bytes does not fit into the address space");
            Err(io::Error::new(io::ErrorKind::InvalidInput, text))
        }
    }
}

/// Returns the size of the class that serves a request for `bytes`: the next power of two, at least [`SMALLEST`] and four pages.
/// Small requests get the power after that.
///
/// Powers of two keep the classes few; what they waste is address space, not memory.
///
/// # Errors
///
/// `InvalidInput` where no such stack fits into the address space.
pub(super) fn class_of(bytes: usize, page: usize) -> io::Result<usize> {
    check_fits(bytes)?;
    let bytes = if bytes <= SMALL { 2 * bytes } else { bytes };
    Ok(bytes.max(SMALLEST).max(4 * page).next_power_of_two())
}

/// Returns the size of the guard at the low end of a stack of `size` bytes.
///
/// Rust code touches every page of its frames in order, and is caught by one page. A frame of foreign code that is larger than
/// the guard could step over it.
pub(super) fn guard_of(size: usize, page: usize) -> usize {
    GUARD.min(size / 2).next_multiple_of(page)
}

/// Returns how many stacks of `size` bytes the next region has, when earlier regions have `so_far`.
pub(super) fn stacks_in_region(size: usize, so_far: usize) -> usize {
    match so_far {
        0 => FIRST_STACKS.min(FIRST_BYTES / size).max(1),
        // The regions so far have 1 + 2 + 4 + ... of the first; one more doubling is about as many again.
        _ => so_far.min(MOST_STACKS).min(MOST_BYTES / size).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_and_bounded() {
        assert_eq!(class_of(0, 4096).unwrap(), SMALLEST);
        assert_eq!(class_of(16 * 1024, 4096).unwrap(), 32 * 1024);
        assert_eq!(class_of(16 * 1024 + 1, 4096).unwrap(), 64 * 1024);
        assert_eq!(class_of(32 * 1024, 4096).unwrap(), 64 * 1024);
        assert_eq!(class_of(32 * 1024 + 1, 4096).unwrap(), 64 * 1024);
        assert_eq!(class_of(256 * 1024, 4096).unwrap(), 256 * 1024);
        assert_eq!(class_of(0, 65536).unwrap(), 256 * 1024);
        assert_eq!(class_of(LARGEST, 4096).unwrap(), LARGEST);
        for bytes in [usize::MAX, isize::MAX as usize, usize::MAX / 2 + 2, LARGEST + 1] {
            assert_eq!(class_of(bytes, 4096).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn a_guard_is_wide_and_leaves_what_was_asked_for() {
        assert_eq!(guard_of(32 * 1024, 4096), 16 * 1024);
        assert_eq!(guard_of(64 * 1024, 4096), 16 * 1024);
        assert_eq!(guard_of(1 << 30, 4096), 16 * 1024);
        assert_eq!(guard_of(256 * 1024, 65536), 65536);
    }

    #[test]
    fn a_million_stacks_are_few_regions() {
        let (mut so_far, mut regions) = (0, 0);
        while so_far < 1_000_000 {
            so_far += stacks_in_region(64 * 1024, so_far);
            regions += 1;
        }
        assert!(regions < 80, "{regions}");
    }

    #[test]
    fn a_region_of_huge_stacks_has_one() {
        assert_eq!(stacks_in_region(1 << 40, 0), 1);
        assert_eq!(stacks_in_region(1 << 40, 5), 1);
        assert_eq!(stacks_in_region(isize::MAX as usize / 2 + 1, 1), 1);
    }
}
