//! How much stack an operation takes whose message is large, in an optimised build: three messages' worth.
//!
//! One is the argument, one the result, and one lies with the waiter. An operation that takes more than that overflows the
//! stack, which ends the process. An arm of a select keeps one more, and a future lies on the stack itself.

#[path = "common/channels.rs"]
mod channels;
#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;
use std::thread;

use fibra_runtime::{block_on, scope, task};
use fibra_sync::channel::{Receiver, Select, Sender, bounded, never};
use fibra_sync::{broadcast, oneshot, select, watch};

use channels::{KEEPING, KINDS, LIMITED, make, ms};
use common::{beside_in_a_thread, guarded, pause, runtime};

/// The size of a message.
const SIZE: usize = 320 * 1024;

/// Room for frames beside the messages; not enough for one more.
const FRAMES: usize = 64 * 1024;

/// A message that is moved by copying its bytes.
type Plain = [u8; SIZE];

/// A message that is also dropped.
#[derive(Clone)]
struct Dropped([u8; SIZE]);

impl Drop for Dropped {
    fn drop(&mut self) {
        black_box(self.0[0]);
    }
}

static PLAIN: Plain = [1; SIZE];

trait Message: Clone + Send + Sync + Sized + 'static {
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
        Dropped([1; SIZE])
    }
}

/// Runs `operation` in a task that has room for three messages.
fn on_little_stack(operation: impl FnOnce() -> bool + Send) {
    on_a_stack_of(3, operation);
}

/// Runs `operation` in a task that has room for as many messages.
fn on_a_stack_of(messages: usize, operation: impl FnOnce() -> bool + Send) {
    let builder = task::Builder::new().stack_size(messages * SIZE + FRAMES);
    assert!(runtime(1).run(|| scope(|scope| scope.spawn_as(builder, operation).join().unwrap())));
}

/// Runs `operation` where a partner is about to come.
fn before<R: Send + 'static>(
    partner: impl FnOnce() -> R + Send + 'static,
    operation: impl FnOnce() -> bool + Send,
) {
    before_on(3, partner, operation);
}

fn before_on<R: Send + 'static>(
    messages: usize,
    partner: impl FnOnce() -> R + Send + 'static,
    operation: impl FnOnce() -> bool + Send,
) {
    let partner = beside_in_a_thread(|| {
        thread::sleep(ms(5));
        partner()
    });
    on_a_stack_of(messages, operation);
    partner.join();
}

/// Runs `operation` where a partner waits.
fn after(partner: impl FnOnce() -> bool + Send + 'static, operation: impl FnOnce() -> bool + Send) {
    after_on(3, partner, operation);
}

fn after_on(
    messages: usize,
    partner: impl FnOnce() -> bool + Send + 'static,
    operation: impl FnOnce() -> bool + Send,
) {
    let partner = beside_in_a_thread(partner);
    pause();
    on_a_stack_of(messages, operation);
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
    recv_async(receiver: Receiver) block_on(receiver.recv_async());
    send_reserved_async(sender: Sender) block_on(sender.reserve_async()).unwrap().send(T::new());
    send_async(sender: Sender) block_on(sender.send_async(T::new()));
}

#[inline(never)]
fn select_recv<T: Message>(receiver: &Receiver<T>) -> bool {
    select! { recv(receiver) -> message => black_box(&message).is_ok() }
}

#[inline(never)]
fn select_recv_of_two<T: Message>(receiver: &Receiver<T>) -> bool {
    let never = never::<u8>();
    select! {
        recv(receiver) -> message => black_box(&message).is_ok(),
        recv(never) -> _ => unreachable!(),
    }
}

#[inline(never)]
fn select_recv_in_time<T: Message>(receiver: &Receiver<T>) -> bool {
    select! {
        recv(receiver) -> message => black_box(&message).is_ok(),
        default(ms(60_000)) => unreachable!(),
    }
}

#[inline(never)]
fn select_send<T: Message>(sender: &Sender<T>) -> bool {
    select! { send(sender, T::new()) -> sent => black_box(&sent).is_ok() }
}

#[inline(never)]
fn select_send_of_two<T: Message>(sender: &Sender<T>) -> bool {
    let never = never::<u8>();
    select! {
        send(sender, T::new()) -> sent => black_box(&sent).is_ok(),
        recv(never) -> _ => unreachable!(),
    }
}

#[inline(never)]
fn select_send_in_time<T: Message>(sender: &Sender<T>) -> bool {
    select! {
        send(sender, T::new()) -> sent => black_box(&sent).is_ok(),
        default(ms(60_000)) => unreachable!(),
    }
}

#[inline(never)]
fn dynamic_recv<T: Message>(receiver: &Receiver<T>) -> bool {
    let mut select = Select::new();
    select.recv(receiver);
    let message = select.select().recv(receiver);
    black_box(&message).is_ok()
}

#[inline(never)]
fn dynamic_send<T: Message>(sender: &Sender<T>) -> bool {
    let mut select = Select::new();
    select.send(sender);
    let sent = select.select().send(sender, T::new());
    black_box(&sent).is_ok()
}

fn sends<T: Message>() -> [fn(&Sender<T>) -> bool; 3] {
    [send, try_send, send_in_time]
}

fn receives<T: Message>() -> [fn(&Receiver<T>) -> bool; 4] {
    [recv, try_recv, recv_in_time, select_recv]
}

/// The sends that take the stack of four messages.
fn other_sends<T: Message>() -> [fn(&Sender<T>) -> bool; 4] {
    [select_send, select_send_of_two, select_send_in_time, dynamic_send]
}

/// The receives that take the stack of four messages.
fn other_receives<T: Message>() -> [fn(&Receiver<T>) -> bool; 4] {
    [select_recv_of_two, select_recv_in_time, dynamic_recv, recv_async]
}

fn without_a_wait<T: Message>() {
    for kind in KEEPING {
        for send in [send::<T>, try_send, send_in_time, send_reserved, send_reserved_async] {
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
        for recv in [recv::<T>, recv_in_time, select_recv] {
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

/// On stacks with room for so many messages.
fn sends_on<T: Message>(messages: usize, sends: &[fn(&Sender<T>) -> bool]) {
    for &send_so in sends {
        for kind in KEEPING {
            let (sender, _receiver) = make(kind);
            on_a_stack_of(messages, || send_so(&sender));
        }
        for kind in KINDS {
            let (sender, receiver) = make::<T>(kind);
            after_on(messages, move || recv(&receiver), || send_so(&sender));
        }
        for capacity in LIMITED {
            let (sender, receiver) = bounded::<T>(capacity);
            assert!((0..capacity).all(|_| send(&sender)));
            before_on(messages, move || (0..=capacity).all(|_| recv(&receiver)), || send_so(&sender));
        }
    }
}

/// On stacks with room for so many messages.
fn receives_on<T: Message>(messages: usize, receives: &[fn(&Receiver<T>) -> bool]) {
    for &recv_so in receives {
        for kind in KEEPING {
            let (sender, receiver) = make::<T>(kind);
            assert!(send(&sender));
            on_a_stack_of(messages, || recv_so(&receiver));
        }
        for kind in KINDS {
            let (sender, receiver) = make::<T>(kind);
            before_on(messages, move || send(&sender), || recv_so(&receiver));
        }
        for capacity in LIMITED {
            let (sender, receiver) = bounded::<T>(capacity);
            after_on(messages, move || (0..=capacity).all(|_| send(&sender)), || recv_so(&receiver));
        }
    }
}

#[inline(never)]
fn oneshot_send<T: Message>(sender: oneshot::Sender<T>) -> bool {
    let sent = sender.send(T::new());
    black_box(&sent).is_ok()
}

#[inline(never)]
fn oneshot_recv<T: Message>(receiver: oneshot::Receiver<T>) -> bool {
    let message = receiver.recv();
    black_box(&message).is_ok()
}

#[inline(never)]
fn oneshot_recv_in_time<T: Message>(mut receiver: oneshot::Receiver<T>) -> bool {
    let message = receiver.recv_timeout(ms(60_000));
    black_box(&message).is_ok()
}

#[inline(never)]
fn oneshot_await<T: Message>(receiver: oneshot::Receiver<T>) -> bool {
    let message = block_on(receiver);
    black_box(&message).is_ok()
}

#[inline(never)]
fn oneshot_select<T: Message>(mut receiver: oneshot::Receiver<T>) -> bool {
    select! { wait(receiver) => () }
    let message = receiver.try_recv();
    black_box(&message).is_ok()
}

fn oneshots<T: Message>() {
    for recv in [oneshot_recv::<T>, oneshot_recv_in_time, oneshot_await, oneshot_select] {
        let (sender, receiver) = oneshot::channel();
        assert!(oneshot_send(sender));
        on_little_stack(|| recv(receiver));
        let (sender, receiver) = oneshot::channel();
        before(|| oneshot_send(sender), || recv(receiver));
        let (sender, receiver) = oneshot::channel();
        after(move || recv(receiver), || oneshot_send(sender));
    }
    let (sender, receiver) = oneshot::channel::<T>();
    on_little_stack(|| oneshot_send(sender));
    drop(receiver);
    let (sender, _) = oneshot::channel::<T>();
    on_little_stack(|| !oneshot_send(sender));
}

#[inline(never)]
fn broadcast_send<T: Message>(sender: &broadcast::Sender<T>) -> bool {
    let sent = sender.send(T::new());
    black_box(&sent).is_ok()
}

macro_rules! broadcast_receives {
    ($($name:ident($receiver:ident) $operation:expr;)*) => {
        $(#[inline(never)]
        fn $name<T: Message>($receiver: &mut broadcast::Receiver<T>) -> bool {
            let result = $operation;
            black_box(&result).is_ok()
        })*
    };
}

broadcast_receives! {
    broadcast_recv(receiver) receiver.recv();
    broadcast_try_recv(receiver) receiver.try_recv();
    broadcast_recv_in_time(receiver) receiver.recv_timeout(ms(60_000));
    broadcast_recv_async(receiver) block_on(receiver.recv_async());
}

fn broadcasts<T: Message>() {
    for recv in [broadcast_recv::<T>, broadcast_try_recv, broadcast_recv_in_time, broadcast_recv_async] {
        let (sender, mut first) = broadcast::channel(1);
        let mut last = first.resubscribe();
        on_little_stack(|| broadcast_send(&sender) && recv(&mut first) && recv(&mut last));
    }
    for recv in [broadcast_recv::<T>, broadcast_recv_in_time, broadcast_recv_async] {
        let (sender, mut receiver) = broadcast::channel(1);
        before(move || broadcast_send(&sender), || recv(&mut receiver));
    }
    let (sender, receiver) = broadcast::channel::<T>(1);
    on_little_stack(|| broadcast_send(&sender) && broadcast_send(&sender));
    drop(receiver);
    on_little_stack(|| !broadcast_send(&sender));
}

#[inline(never)]
fn watched<T: Message>() -> (watch::Sender<T>, watch::Receiver<T>) {
    watch::channel(T::new())
}

fn watches<T: Message>() {
    let (sender, mut receiver) = watched::<T>();
    on_little_stack(|| {
        let sent = sender.send(T::new());
        black_box(&sent).is_ok()
    });
    on_little_stack(|| {
        black_box(&sender.send_replace(T::new()));
        true
    });
    on_little_stack(|| receiver.changed().is_ok() && receiver.wait_for(|_| true).is_ok());
    drop(receiver);
    on_little_stack(|| {
        let refused = sender.send(T::new());
        black_box(&refused).is_err()
    });
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

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn oneshot_broadcast_and_watch_take_the_stack_of_three_messages() {
    guarded(|| {
        oneshots::<Plain>();
        oneshots::<Dropped>();
        broadcasts::<Plain>();
        broadcasts::<Dropped>();
        watches::<Plain>();
        watches::<Dropped>();
    });
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn an_arm_of_a_select_and_a_receive_as_a_future_take_the_stack_of_four_messages() {
    guarded(|| {
        sends_on::<Plain>(4, &other_sends());
        sends_on::<Dropped>(4, &other_sends());
        receives_on::<Plain>(4, &other_receives());
        receives_on::<Dropped>(4, &other_receives());
    });
}

/// The message that it replaces lies beside its own, and beside the result.
#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn a_forced_send_takes_the_stack_of_four_messages() {
    fn forced<T: Message>() {
        for kind in KINDS {
            let (sender, receiver) = make::<T>(kind);
            after_on(4, move || recv(&receiver), || force_send(&sender));
        }
        for kind in KEEPING {
            let (sender, _receiver) = make::<T>(kind);
            on_a_stack_of(4, || (0..6).all(|_| force_send(&sender)));
        }
    }
    guarded(|| {
        forced::<Plain>();
        forced::<Dropped>();
    });
}

/// The future is made in the caller's frame, moved into that of `block_on`, and lends its message to a try.
#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn a_send_as_a_future_takes_the_stack_of_seven_messages() {
    guarded(|| {
        sends_on::<Plain>(7, &[send_async]);
        sends_on::<Dropped>(7, &[send_async]);
    });
}

fn size_of_made<F>(_make: impl FnOnce() -> F) -> usize {
    size_of::<F>()
}

/// One lies with the waiter, and one is what a send tries again with.
#[test]
fn a_future_of_a_receive_has_room_for_one_message_and_that_of_a_send_for_two() {
    let (sender, receiver) = bounded::<Plain>(1);
    let (receives, reserves) =
        (size_of_made(|| receiver.recv_async()), size_of_made(|| sender.reserve_async()));
    let sends = size_of_made(|| sender.send_async(PLAIN));
    assert!(receives.max(reserves) < SIZE + 1024, "{receives} {reserves}");
    assert!(sends < 2 * SIZE + 1024, "{sends}");
}
