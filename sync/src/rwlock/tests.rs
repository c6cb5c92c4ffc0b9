//! What cannot be reached from outside: so many readers that their count is at its end.

#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use lock_api::{RawRwLock as _, RawRwLockTimed as _};

use super::RawRwLock;

#[test]
fn a_reader_too_many_is_refused_aloud_and_the_count_does_not_wrap() {
    let lock = RawRwLock::INIT;
    lock.leave_one_reader();
    let _last = lock.lock_shared();
    for _ in 0..2 {
        assert!(lock.try_lock_shared().is_none());
        let refused = catch_unwind(AssertUnwindSafe(|| lock.lock_shared())).err().expect("a panic");
        assert!(refused.downcast_ref::<&str>().unwrap().contains("too many readers"));
        let timed = AssertUnwindSafe(|| lock.try_lock_shared_for(Duration::ZERO));
        assert!(catch_unwind(timed).is_err());
        assert!(lock.try_read_recursive().is_none());
        for deadline in [None, Some(Instant::now())] {
            let again = AssertUnwindSafe(|| lock.read_recursive_to(|| deadline));
            let refused = catch_unwind(again).err().expect("a panic");
            assert!(refused.downcast_ref::<&str>().unwrap().contains("too many readers"));
        }
    }
    assert!(lock.is_locked() && !lock.is_locked_exclusive());
    assert!(lock.try_lock_exclusive().is_none());
}
