//! Input that is nearly right.

/// Numbers without a pattern, the same in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    /// The next number, which is less than `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % limit as u64) as usize
    }

    /// Changes, removes and adds a few bytes, or cuts off all that follows; those that are added are some of `alien`.
    pub(crate) fn garble(&mut self, bytes: &mut Vec<u8>, alien: &[u8]) {
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len() - 1);
            match self.below(4) {
                0 => bytes[at] = self.below(256) as u8,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, alien[self.below(alien.len())]),
                _ => bytes.truncate(at.max(20)),
            }
        }
    }
}
