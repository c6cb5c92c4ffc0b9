//! Random numbers that are equal in each run.

/// SplitMix64, of G. L. Steele, D. Lea and C. H. Flood.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        Random(1)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Exponentially distributed around that mean.
    pub(crate) fn exponential(&mut self, mean: u64) -> u64 {
        let even = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - even).ln() * mean as f64) as u64
    }
}
