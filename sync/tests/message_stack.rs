//! How much stack an operation takes whose message is large, in an optimised build: three messages' worth.
//!
//! One is the argument, one the result, and one lies with the waiter. An operation that takes more than that overflows the
//! stack, which ends the process.

#[path = "common/channels.rs"]
mod channels;
#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;
use std::thread;

use fibra_runtime::task;
use fibra_sync::channel::{Receiver, Sender, bounded};

use channels::{KEEPING, KINDS, LIMITED, make, ms};
use common::{beside_in_a_thread, guarded, pause, runtime};

const STACK: usize = 1024 * 1024;

/// Three of them and some frames fit on the stack; four do not.
const THIRD: usize = 320 * 1024;

/// A message that is moved by copying its bytes.
type Plain = [u8; THIRD];

/// A message that is also dropped.
struct Dropped([u8; THIRD]);

impl Drop for Dropped {
    fn drop(&mut self) {
        black_box(self.0[0]);
    }
}

static PLAIN: Plain = [1; THIRD];

trait Message: Send + Sized + 'static {
    fn new() -> Self;
}

impl Message for Plain {
    #[inline(always)]
    fn new() -> Self {
        PLAIN
    }
}

impl Message for Dropped {
    #[inline(always)]
    fn new() -> Self {
        Dropped([1; THIRD])
    }
}

/// Runs `operation` in a task that has room for as many messages.
fn on_little_stack(operation: impl FnOnce() -> bool + Send) {
    assert!(runtime(1).run(|| {
        fibra_runtime::scope(|scope| {
            scope.spawn_as(task::Builder::new().stack_size(STACK), operation).join().unwrap()
        })
    }));
}

/// Runs `operation` where a partner is about to come.
fn before<R: Send + 'static>(
    partner: impl FnOnce() -> R + Send + 'static,
    operation: impl FnOnce() -> bool + Send,
) {
    let partner = beside_in_a_thread(|| {
        thread::sleep(ms(5));
        partner()
    });
    on_little_stack(operation);
    partner.join();
}

/// Runs `operation` where a partner waits.
fn after(partner: impl FnOnce() -> bool + Send + 'static, operation: impl FnOnce() -> bool + Send) {
    let partner = beside_in_a_thread(partner);
    pause();
    on_little_stack(operation);
    assert!(partner.join());
}

macro_rules! operations {
    ($($name:ident($end:ident: $type:ident) $operation:expr;)*) => {
        $(#[inline(never)]
        fn $name<T: Message>($end: &$type<T>) -> bool {
            let result = $operation;
            black_box(&result).is_ok()
        })*
    };
}

operations! {
    send(sender: Sender) sender.send(T::new());
    try_send(sender: Sender) sender.try_send(T::new());
    send_in_time(sender: Sender) sender.send_timeout(T::new(), ms(60_000));
    force_send(sender: Sender) sender.force_send(T::new());
    send_reserved(sender: Sender) sender.reserve().unwrap().send(T::new());
    send_briefly(sender: Sender) sender.send_timeout(T::new(), ms(1));
    recv(receiver: Receiver) receiver.recv();
    try_recv(receiver: Receiver) receiver.try_recv();
    recv_in_time(receiver: Receiver) receiver.recv_timeout(ms(60_000));
    recv_briefly(receiver: Receiver) receiver.recv_timeout(ms(1));
}

fn sends<T: Message>() -> [fn(&Sender<T>) -> bool; 4] {
    [send, try_send, send_in_time, force_send]
}

fn receives<T: Message>() -> [fn(&Receiver<T>) -> bool; 3] {
    [recv, try_recv, recv_in_time]
}

fn without_a_wait<T: Message>() {
    for kind in KEEPING {
        for send in [send::<T>, try_send, send_in_time, force_send, send_reserved] {
            for recv in receives::<T>() {
                let (sender, receiver) = make(kind);
                on_little_stack(|| send(&sender) && recv(&receiver));
            }
        }
    }
}

fn where_a_partner_waits<T: Message>() {
    for kind in KINDS {
        for send in sends::<T>() {
            let (sender, receiver) = make::<T>(kind);
            after(move || recv(&receiver), || send(&sender));
        }
    }
    for capacity in LIMITED {
        for recv in receives::<T>() {
            let (sender, receiver) = bounded::<T>(capacity);
            after(move || (0..=capacity).all(|_| send(&sender)), || recv(&receiver));
        }
    }
}

fn with_a_wait<T: Message>() {
    for kind in KINDS {
        for recv in [recv::<T>, recv_in_time] {
            let (sender, receiver) = make::<T>(kind);
            before(move || send(&sender), || recv(&receiver));
        }
        let (_sender, receiver) = make::<T>(kind);
        on_little_stack(|| !recv_briefly(&receiver) && !try_recv(&receiver));
    }
    for capacity in LIMITED {
        let full = || {
            let (sender, receiver) = bounded::<T>(capacity);
            assert!((0..capacity).all(|_| send(&sender)));
            (sender, receiver)
        };
        for send in [send::<T>, send_in_time] {
            let (sender, receiver) = full();
            before(move || recv(&receiver), || send(&sender));
        }
        let (sender, receiver) = full();
        on_little_stack(|| !send_briefly(&sender) && !try_send(&sender));
        before(move || drop(receiver), || !send(&sender) && !try_send(&sender));
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn an_operation_that_need_not_wait_takes_the_stack_of_three_messages() {
    guarded(|| {
        without_a_wait::<Plain>();
        without_a_wait::<Dropped>();
        where_a_partner_waits::<Plain>();
        where_a_partner_waits::<Dropped>();
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn an_operation_that_waits_takes_the_stack_of_three_messages() {
    guarded(|| {
        with_a_wait::<Plain>();
        with_a_wait::<Dropped>();
    });
}
