//! A waker may do anything, also wait; so it is not called by a sleeper that is on its way into its sleep.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use fibra_runtime::{self as fibra, Runtime};
use fibra_sync::{AutoResetEvent, channel, select};

struct Waits(AtomicUsize);

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        fibra::sleep(Duration::from_micros(1));
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A receiver finds a select that waits to send, and behind it a future. The select was claimed for another arm just now, so its
/// message is the future's, whose waker waits.
fn receives_from_a_future_behind_a_select() {
    // From its second sleep on the task counts as asleep before it has left its stack.
    fibra::sleep(Duration::from_micros(1));
    let (sender, receiver) = channel::bounded(0);
    let event = Arc::new(AutoResetEvent::new(false));
    let chooser = {
        let (sender, event) = (sender.clone(), Arc::clone(&event));
        fibra::spawn_local(move || {
            select! {
                send(sender, 1) -> _ => unreachable!("no receiver is there while it waits"),
                wait(event) => {}
            }
        })
    };
    fibra::yield_now();
    let waits = Arc::new(Waits(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&waits));
    let mut sending = pin!(sender.send_async(2));
    assert!(sending.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    event.set();
    assert_eq!(receiver.try_recv(), Ok(2));
    assert_eq!(waits.0.load(Ordering::SeqCst), 1);
    assert_eq!(sending.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(Ok(())));
    chooser.join().expect("it has chosen the event");
}

#[test]
fn a_waker_that_waits_holds_up_a_receiver_and_does_not_stop_it() {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        for workers in [1, 2] {
            let runtime = Runtime::builder().workers(workers).build().expect("a runtime");
            runtime.run(receives_from_a_future_behind_a_select);
        }
        done.send(()).expect("the test waits");
    });
    ended.recv_timeout(Duration::from_secs(20)).expect("it ends, and without a panic");
}
