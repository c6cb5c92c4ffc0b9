//! The lock that costs its owner nothing. That others take turns is the work of the spin lock, which has a model of its own.

use std::sync::Arc;

use loom::thread;

use crate::biased::Biased;
use crate::primitive::check_bounded;

fn fresh() -> Arc<Biased<[u32; 2]>> {
    let value = Arc::new(Biased::new([0, 0]));
    value.borrow(|_| ());
    // SAFETY: no other thread has access yet.
    unsafe { value.own(|_| ()) };
    value
}

/// Finds: the owner and another thread inside at once, or a change that is not seen. Loom is told of every access to the value.
#[test]
fn one_is_inside_at_a_time() {
    check_bounded(3, || {
        let value = fresh();
        let other = {
            let value = Arc::clone(&value);
            thread::spawn(move || value.borrow(|value| value[1] += 1))
        };
        for _ in 0..2 {
            // SAFETY: this thread is the owner.
            unsafe { value.own(|value| value[0] += 1) };
        }
        other.join().unwrap();
        assert_eq!(value.borrow(|value| *value), [2, 1]);
    });
}
