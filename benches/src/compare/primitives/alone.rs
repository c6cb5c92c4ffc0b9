//! What one task does with a primitive that nobody else wants.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What can be done over and over without a wait. What it is the question says; of each library there is one for it.
pub(super) trait Deed {
    fn new() -> Self;
    fn run(&self);
}

pub(super) fn repeat<D: Deed>(operations: u64) -> Duration {
    let thing = D::new();
    let begin = Instant::now();
    (0..operations).for_each(|_| black_box(&thing).run());
    begin.elapsed()
}

/// Deeds: what each is done to, how that is made, and what is done. They are inlined, as where a user writes them.
macro_rules! deeds {
    ($($thing:ty = $new:expr, |$it:pat_param| $deed:expr;)+) => {
        $(
            impl Deed for $thing {
                fn new() -> Self {
                    $new
                }

                #[inline(always)]
                fn run(&self) {
                    let $it = self;
                    $deed;
                }
            }
        )+
    };
}

pub(super) use deeds;
