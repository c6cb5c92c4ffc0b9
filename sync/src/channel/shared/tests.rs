//! A back-off before a wait does not change its outcome, and each watcher is notified once. Both
//! depend on timing that no test from outside can bring about.

#![forbid(unsafe_code)]

use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use super::super::error::SendTimeoutError;
use super::super::{Select, bounded};
use super::*;

const CAPACITIES: [Option<usize>; 5] = [Some(0), Some(1), Some(3), Some(MANY), None];
const ROUNDS: usize = 300;

/// Makes a channel whose lock was contended.
fn contended<T>(capacity: Option<usize>) -> Arc<Shared<T>> {
    let shared = Shared::new(capacity);
    shared.contended.store(true, Ordering::Relaxed);
    Arc::new(shared)
}

fn send<T>(shared: &Shared<T>, message: T) -> Result<(), SendTimeoutError<T>> {
    shared.send(message, || None, SendTimeoutError::Timeout, SendTimeoutError::Disconnected)
}

#[test]
fn messages_come_in_order_and_all_of_them() {
    for capacity in CAPACITIES {
        let shared = contended(capacity);
        let sender = Arc::clone(&shared);
        let sends = thread::spawn(move || {
            for n in 0..ROUNDS {
                sender.contended.store(true, Ordering::Relaxed);
                send(&sender, n).unwrap();
            }
            sender.close();
        });
        for n in 0..ROUNDS {
            shared.contended.store(true, Ordering::Relaxed);
            assert_eq!(shared.recv_slow(None, |why| why).unwrap(), n);
        }
        assert!(matches!(shared.recv_slow(None, |why| why), Err(RecvTimeoutError::Disconnected)));
        sends.join().unwrap();
    }
}

#[test]
fn the_end_is_heard_on_both_sides() {
    for _ in 0..ROUNDS {
        let shared = contended::<usize>(Some(1));
        let receiver = Arc::clone(&shared);
        let receives = thread::spawn(move || receiver.recv_slow(None, |why| why));
        shared.close();
        assert!(matches!(receives.join().unwrap(), Err(RecvTimeoutError::Disconnected)));

        let shared = contended(Some(1));
        send(&shared, 1).unwrap();
        let sender = Arc::clone(&shared);
        let sends = thread::spawn(move || send(&sender, 2));
        shared.close_and_clear();
        assert!(matches!(sends.join().unwrap(), Err(SendTimeoutError::Disconnected(2))));
    }
}

#[test]
fn time_runs_out_and_the_message_comes_back() {
    for capacity in CAPACITIES {
        let shared = contended::<usize>(capacity);
        let soon = || Some(Instant::now() + Duration::from_micros(50));
        assert!(matches!(shared.recv_slow(soon(), |why| why), Err(RecvTimeoutError::Timeout)));
        (0..capacity.unwrap_or(0)).for_each(|n| send(&shared, n).unwrap());
        if capacity.is_some() {
            shared.contended.store(true, Ordering::Relaxed);
            assert!(matches!(
                shared.send_slow(9, soon(), SendTimeoutError::Timeout, SendTimeoutError::Disconnected),
                Err(SendTimeoutError::Timeout(9))
            ));
        }
    }
}

#[test]
fn the_result_of_the_last_wait_is_not_that_of_the_next() {
    let shared = contended(None);
    send(&shared, 1).unwrap();
    assert_eq!(shared.recv_slow(None, |why| why).unwrap(), 1);
    assert!(!shared.contended.load(Ordering::Relaxed));
}

#[test]
fn contention_is_noted_only_in_a_channel_with_room_for_many_messages() {
    let met_after = |capacity, messages: usize| {
        let shared = Shared::new(capacity);
        assert!(matches!(shared.try_recv(None), Err(TryRecvError::Empty)));
        (0..messages).for_each(|n| send(&shared, n).unwrap());
        shared.back_off();
        shared.contended.load(Ordering::Relaxed)
    };
    assert!(met_after(None, 1) && met_after(Some(MANY), 1));
    assert!(!met_after(None, 0) && !met_after(Some(MANY), 0));
    assert!(!met_after(Some(MANY - 1), 1));
}

/// Futures that watch for messages, each of which is followed by another one as soon as it is told.
struct Watchers {
    shared: Arc<Shared<()>>,
    watching: Mutex<Vec<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    told: AtomicUsize,
}

impl Watchers {
    fn watch(self: &Arc<Self>) {
        let shared = Arc::clone(&self.shared);
        let mut watching = Box::pin(async move {
            let waits = |_: &mut State<()>, _: &mut Place<()>, _: &mut Waiting<'_, ()>| Admit::<()>::Back;
            shared
                .queue
                .wait_async_then(WATCHERS, Place::EMPTY, waits, || (), |_, _, _, _| (), |_, _| ())
                .await;
        });
        let waker = Waker::from(Arc::clone(self));
        assert!(watching.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        self.watching.lock().unwrap().push(watching);
    }
}

impl Wake for Watchers {
    fn wake(self: Arc<Self>) {
        // Without an end of its own the test would have none where it fails.
        if self.told.fetch_add(1, Ordering::Relaxed) < 10 * COUNT {
            self.watch();
        }
    }
}

const COUNT: usize = 100;

#[test]
fn a_message_notifies_watchers_once_when_it_comes() {
    let shared = Arc::new(Shared::new(None));
    let watching = Mutex::default();
    let watchers = Arc::new(Watchers { shared: Arc::clone(&shared), watching, told: AtomicUsize::new(0) });
    (0..COUNT).for_each(|_| watchers.watch());
    for messages in 1..=2 {
        assert!(shared.try_send(()).is_ok());
        assert_eq!(watchers.told.load(Ordering::Relaxed), messages * COUNT);
    }
    watchers.watching.lock().unwrap().clear();
}

#[test]
fn a_sender_notified_late_of_room_looks_again() {
    let (sender, receiver) = bounded(1);
    sender.send(1).unwrap();
    let watching = {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut select = Select::new();
            select.send(&sender);
            select.ready();
            sender.try_send(2)
        })
    };
    let is_watched = || sender.channel().look(|_, waiting| !waiting.is_empty(WATCHERS));
    while !is_watched() {
        thread::yield_now();
    }
    // As by a receiver whose room another sender has filled since.
    tell_watchers(&sender.channel().queue);
    while !is_watched() && !watching.is_finished() {
        thread::yield_now();
    }
    assert_eq!(receiver.recv(), Ok(1));
    assert_eq!(watching.join().unwrap(), Ok(()));
}
