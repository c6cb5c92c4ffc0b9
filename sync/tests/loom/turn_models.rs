//! Turns of futures that are dropped in their sleep.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;

use crate::choice_models::event;
use crate::primitive::check_bounded;
use crate::turn::Queue;
use crate::wait::Sleeper;
use crate::wait::list::Node;

fn poll_once(future: Pin<&mut impl Future<Output = ()>>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

/// Hunts: a set that was given to a future which goes away with it; a future that is given one after it has gone.
#[test]
fn a_set_for_a_future_that_goes_away_is_the_next_ones() {
    check_bounded(3, || {
        let event = event();
        let sets = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.set())
        };
        let passed = {
            let mut wait = pin!(event.wait_async());
            poll_once(wait.as_mut())
        };
        sets.join().unwrap();
        assert!(passed != event.try_wait());
    });
}

/// Hunts: one behind it in the queue that is passed over, and sleeps on.
#[test]
fn who_stands_behind_a_future_that_goes_away_is_woken() {
    check_bounded(3, || {
        let event = event();
        let mut wait = Box::pin(event.wait_async());
        assert!(!poll_once(wait.as_mut()));
        let (node, sleeper) = (Node::with(1), Sleeper::new());
        let _ = sleeper.word.begin(true);
        // SAFETY: the node is in no list, and stays until its wake has landed.
        assert!(unsafe { event.enlist(&node, sleeper.raw()) });
        let sets = {
            let event = Arc::clone(&event);
            thread::spawn(move || event.set())
        };
        drop(wait);
        sleeper.leave_stack();
        sets.join().unwrap();
        assert!(!event.is_set());
    });
}
