//! Channels free their buffers, whatever the drop of a message does.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::allocations::bytes_in_use;
use crate::channels::{KEEPING, make};

struct Bomb(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0 == 1 {
            resume_unwind(Box::new(()));
        }
    }
}

#[test]
fn a_channel_whose_message_panics_on_drop_frees_its_buffer() {
    for kind in KEEPING {
        let round = || {
            let (sender, receiver) = make(kind);
            let count = kind.unwrap_or(100);
            // The last but one panics, or the only one.
            (1..=count).rev().for_each(|number| sender.send(Bomb(number)).unwrap());
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(receiver)));
            assert!(dropped.is_err());
        };
        // The first panic makes what stays.
        round();
        let before = bytes_in_use();
        round();
        assert_eq!(bytes_in_use(), before, "{kind:?}");
    }
}
