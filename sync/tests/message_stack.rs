//! How much stack an operation takes whose message is large, in an optimised build: a table in messages' worth, which must not grow.
//!
//! The caller's own message and the result are part of it. Operations that block take three at most. Beyond that:
//!
//! * An arm of a select has room for a message among the waiters. A receive arm also puts there what it finds without a wait.
//! * A future lies on the stack itself, and its poll makes the result apart from the place that it returns it in. That of a send
//!   has room for two messages, since it keeps one while it waits. Where it is made, moved or boxed is up to its caller.

#[path = "common/channels.rs"]
mod channels;
#[path = "common/mod.rs"]
mod common;

use std::hint::black_box;
use std::ptr;
use std::thread;

use fibra_runtime::{block_on, scope, task};
use fibra_sync::channel::{Receiver, Select, Sender, bounded, never};
use fibra_sync::{broadcast, oneshot, select, watch};

use channels::{KEEPING, KINDS, LIMITED, make, ms};
use common::{beside_in_a_thread, guarded, pause, runtime};

/// The size of a message. Frames beside the messages take less.
const SIZE: usize = 64 * 1024;

/// The part of the stack that is painted.
const PAINTED: usize = 24 * SIZE;

/// The colour, which no message has.
const COLOUR: u8 = 0x5a;

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

/// The places to paint and to look at: below the frames of the functions that do so.
fn places(top: *const u8) -> impl DoubleEndedIterator<Item = *mut u8> {
    (4096..PAINTED).step_by(128).map(move |depth| top.wrapping_sub(depth).cast_mut())
}

#[inline(never)]
fn paint(top: *const u8) {
    // SAFETY: they lie on this stack, below all frames that are in use.
    places(top).for_each(|place| unsafe { place.write_volatile(COLOUR) });
}

/// Counts the messages that have found room below `top` since it was painted.
#[inline(never)]
fn taken(top: *const u8) -> usize {
    // SAFETY: as in `paint`.
    let deepest = places(top).rev().find(|place| unsafe { place.read_volatile() } != COLOUR);
    deepest.map_or(0, |deepest| top.addr() - deepest.addr()) / SIZE
}

/// Measures the stack of an operation that returns `expected`, in a task.
fn depth(expected: bool, operation: impl FnOnce() -> bool + Send) -> usize {
    let builder = task::Builder::new().stack_size(PAINTED + 128 * 1024);
    let measured = || {
        let top = 0_u8;
        let top = black_box(ptr::from_ref(&top));
        paint(top);
        assert_eq!(operation(), expected);
        taken(top)
    };
    runtime(1).run(|| scope(|scope| scope.spawn_as(builder, measured).join().unwrap()))
}

/// Measures an operation where a partner is about to come.
fn before<R: Send + 'static>(
    partner: impl FnOnce() -> R + Send + 'static,
    operation: impl FnOnce() -> bool + Send,
) -> usize {
    let partner = beside_in_a_thread(|| {
        thread::sleep(ms(5));
        partner()
    });
    let depth = depth(true, operation);
    partner.join();
    depth
}

/// Measures an operation where a partner waits.
fn after(partner: impl FnOnce() -> bool + Send + 'static, operation: impl FnOnce() -> bool + Send) -> usize {
    let partner = beside_in_a_thread(partner);
    pause();
    let depth = depth(true, operation);
    assert!(partner.join());
    depth
}

macro_rules! operations {
    ($($name:ident($end:ident: $type:ty) $operation:expr;)*) => {
        $(#[inline(never)]
        fn $name<T: Message>($end: $type) -> bool {
            let result = $operation;
            black_box(&result).is_ok()
        })*
    };
}

operations! {
    send(sender: &Sender<T>) sender.send(T::new());
    try_send(sender: &Sender<T>) sender.try_send(T::new());
    send_in_time(sender: &Sender<T>) sender.send_timeout(T::new(), ms(60_000));
    send_briefly(sender: &Sender<T>) sender.send_timeout(T::new(), ms(1));
    force_send(sender: &Sender<T>) sender.force_send(T::new());
    send_reserved(sender: &Sender<T>) sender.reserve().unwrap().send(T::new());
    send_reserved_async(sender: &Sender<T>) block_on(sender.reserve_async()).unwrap().send(T::new());
    send_async(sender: &Sender<T>) block_on(sender.send_async(T::new()));
    recv(receiver: &Receiver<T>) receiver.recv();
    try_recv(receiver: &Receiver<T>) receiver.try_recv();
    recv_in_time(receiver: &Receiver<T>) receiver.recv_timeout(ms(60_000));
    recv_briefly(receiver: &Receiver<T>) receiver.recv_timeout(ms(1));
    recv_async(receiver: &Receiver<T>) block_on(receiver.recv_async());
    oneshot_send(sender: oneshot::Sender<T>) sender.send(T::new());
    oneshot_recv(receiver: oneshot::Receiver<T>) receiver.recv();
    oneshot_recv_in_time(receiver: oneshot::Receiver<T>) { let mut receiver = receiver; receiver.recv_timeout(ms(60_000)) };
    oneshot_await(receiver: oneshot::Receiver<T>) block_on(receiver);
    broadcast_send(sender: &broadcast::Sender<T>) sender.send(T::new());
    broadcast_recv(receiver: &mut broadcast::Receiver<T>) receiver.recv();
    broadcast_try_recv(receiver: &mut broadcast::Receiver<T>) receiver.try_recv();
    broadcast_recv_in_time(receiver: &mut broadcast::Receiver<T>) receiver.recv_timeout(ms(60_000));
    broadcast_recv_async(receiver: &mut broadcast::Receiver<T>) block_on(receiver.recv_async());
    watch_send(sender: &watch::Sender<T>) sender.send(T::new());
    watch_replace(sender: &watch::Sender<T>) Ok::<_, ()>(sender.send_replace(T::new()));
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

#[inline(never)]
fn oneshot_select<T: Message>(mut receiver: oneshot::Receiver<T>) -> bool {
    select! { wait(receiver) => () }
    let message = receiver.try_recv();
    black_box(&message).is_ok()
}

/// Sends that may wait.
fn sends<T: Message>(operation: fn(&Sender<T>) -> bool) -> usize {
    let there_is_no_room = LIMITED.map(|capacity| {
        let (sender, receiver) = full::<T>(capacity);
        before(move || (0..=capacity).all(|_| recv(&receiver)), || operation(&sender))
    });
    sends_at_once(operation).max(most(there_is_no_room))
}

/// Sends by a reservation, which a rendezvous has none of.
fn sends_into_places<T: Message>(operation: fn(&Sender<T>) -> bool) -> usize {
    most(KEEPING.map(|kind| {
        let (sender, receiver) = make::<T>(kind);
        let at_once = depth(true, || operation(&sender));
        drop(receiver);
        let (sender, receiver) = make::<T>(kind);
        at_once.max(after(move || recv(&receiver), || operation(&sender)))
    }))
}

/// Sends that need not wait, or are refused.
fn sends_at_once<T: Message>(operation: fn(&Sender<T>) -> bool) -> usize {
    let there_is_room = KEEPING.map(|kind| {
        let (sender, _receiver) = make::<T>(kind);
        depth(true, || operation(&sender))
    });
    let a_receiver_waits = KINDS.map(|kind| {
        let (sender, receiver) = make::<T>(kind);
        after(move || recv(&receiver), || operation(&sender))
    });
    let there_is_no_receiver = KINDS.map(|kind| {
        let (sender, _) = make::<T>(kind);
        depth(false, || operation(&sender))
    });
    most(there_is_room).max(most(a_receiver_waits)).max(most(there_is_no_receiver))
}

/// Sends that are refused, since there is no room.
fn sends_in_vain<T: Message>(operation: fn(&Sender<T>) -> bool) -> usize {
    most(LIMITED.map(|capacity| {
        let (sender, _receiver) = full::<T>(capacity);
        depth(false, || operation(&sender))
    }))
}

/// Sends in place of the oldest message.
fn replaces<T: Message>(operation: fn(&Sender<T>) -> bool) -> usize {
    most([1, 5].map(|capacity| {
        let (sender, _receiver) = full::<T>(capacity);
        depth(true, || operation(&sender))
    }))
}

/// Receives that may wait.
fn receives<T: Message>(operation: fn(&Receiver<T>) -> bool) -> usize {
    let there_is_none = KINDS.map(|kind| {
        let (sender, receiver) = make::<T>(kind);
        before(move || send(&sender), || operation(&receiver))
    });
    receives_at_once(operation).max(most(there_is_none))
}

/// Receives that need not wait, or fail.
fn receives_at_once<T: Message>(operation: fn(&Receiver<T>) -> bool) -> usize {
    let there_is_one = KEEPING.map(|kind| {
        let (sender, receiver) = make::<T>(kind);
        assert!(send(&sender));
        depth(true, || operation(&receiver))
    });
    let a_sender_waits = LIMITED.map(|capacity| {
        let (sender, receiver) = full::<T>(capacity);
        after(move || send(&sender), || operation(&receiver))
    });
    let there_is_no_sender = KINDS.map(|kind| {
        let (_, receiver) = make::<T>(kind);
        depth(false, || operation(&receiver))
    });
    most(there_is_one).max(most(a_sender_waits)).max(most(there_is_no_sender))
}

/// Receives that fail, since there is no message.
fn receives_in_vain<T: Message>(operation: fn(&Receiver<T>) -> bool) -> usize {
    most(KINDS.map(|kind| {
        let (_sender, receiver) = make::<T>(kind);
        depth(false, || operation(&receiver))
    }))
}

fn full<T: Message>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = bounded::<T>(capacity);
    assert!((0..capacity).all(|_| send(&sender)));
    (sender, receiver)
}

fn sends_oneshot<T: Message>(operation: fn(oneshot::Sender<T>) -> bool) -> usize {
    let (sender, _receiver) = oneshot::channel();
    let unawaited = depth(true, || operation(sender));
    let (sender, receiver) = oneshot::channel();
    let awaited = after(move || oneshot_recv(receiver), || operation(sender));
    let (sender, _) = oneshot::channel();
    most([unawaited, awaited, depth(false, || operation(sender))])
}

fn receives_oneshot<T: Message>(operation: fn(oneshot::Receiver<T>) -> bool) -> usize {
    let (sender, receiver) = oneshot::channel();
    assert!(oneshot_send(sender));
    let at_once = depth(true, || operation(receiver));
    let (sender, receiver) = oneshot::channel();
    let waits = before(|| oneshot_send(sender), || operation(receiver));
    let (_, receiver) = oneshot::channel();
    most([at_once, waits, depth(false, || operation(receiver))])
}

fn drops_oneshot<T: Message>(operation: fn(oneshot::Receiver<T>)) -> usize {
    let (sender, receiver) = oneshot::channel();
    assert!(oneshot_send(sender));
    depth(true, || {
        operation(receiver);
        true
    })
}

fn sends_broadcast<T: Message>(operation: fn(&broadcast::Sender<T>) -> bool) -> usize {
    let (sender, receiver) = broadcast::channel(1);
    let (first, second) = (depth(true, || operation(&sender)), depth(true, || operation(&sender)));
    drop(receiver);
    most([first, second, depth(false, || operation(&sender))])
}

/// Receives that may wait, of a message that another receiver has not received yet, and as the last one.
fn receives_broadcast<T: Message>(operation: fn(&mut broadcast::Receiver<T>) -> bool) -> usize {
    let (sender, mut receiver) = broadcast::channel(1);
    let waits = before(move || broadcast_send(&sender), || operation(&mut receiver));
    receives_broadcast_at_once(operation).max(waits)
}

fn receives_broadcast_at_once<T: Message>(operation: fn(&mut broadcast::Receiver<T>) -> bool) -> usize {
    let (sender, mut first) = broadcast::channel(1);
    let mut last = first.resubscribe();
    assert!(broadcast_send(&sender));
    depth(true, || operation(&mut first)).max(depth(true, || operation(&mut last)))
}

#[inline(never)]
fn watched<T: Message>() -> (watch::Sender<T>, watch::Receiver<T>) {
    watch::channel(T::new())
}

fn sends_watch<T: Message>(operation: fn(&watch::Sender<T>) -> bool) -> usize {
    let (sender, _receiver) = watched();
    depth(true, || operation(&sender))
}

fn sends_unwatched<T: Message>(operation: fn(&watch::Sender<T>) -> bool) -> usize {
    let (sender, _) = watched();
    depth(false, || operation(&sender))
}

fn most<const N: usize>(depths: [usize; N]) -> usize {
    depths.into_iter().max().unwrap_or(0)
}

/// Compares what each operation takes with what it may take.
macro_rules! check {
    ($($allowed:literal $measure:ident($operation:ident);)*) => {
        guarded(|| {
            let mut too_much = Vec::new();
            $(
                let taken = $measure::<Plain>($operation).max($measure::<Dropped>($operation));
                if taken > $allowed {
                    too_much.push((stringify!($measure), stringify!($operation), taken, $allowed));
                }
            )*
            assert!(too_much.is_empty(), "messages taken and allowed: {too_much:?}");
        })
    };
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn operations_of_channels_take_the_stack_of_few_messages() {
    check! {
        3 sends(send);
        2 sends_at_once(try_send);
        2 sends_in_vain(try_send);
        3 sends(send_in_time);
        3 sends_in_vain(send_briefly);
        3 sends_into_places(send_reserved);
        3 sends_into_places(send_reserved_async);
        3 sends_at_once(force_send);
        3 replaces(force_send);
        9 sends(send_async);
        2 receives(recv);
        1 receives_at_once(try_recv);
        1 receives_in_vain(try_recv);
        2 receives(recv_in_time);
        2 receives_in_vain(recv_briefly);
        5 receives(recv_async);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn arms_of_selects_take_the_stack_of_few_messages() {
    check! {
        4 sends(select_send);
        4 sends(select_send_of_two);
        4 sends(select_send_in_time);
        4 sends(dynamic_send);
        2 receives(select_recv);
        4 receives(select_recv_of_two);
        4 receives(select_recv_in_time);
        3 receives(dynamic_recv);
        1 receives_oneshot(oneshot_select);
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "without optimisation a message is moved more often")]
fn other_channels_take_the_stack_of_few_messages() {
    check! {
        3 sends_oneshot(oneshot_send);
        1 receives_oneshot(oneshot_recv);
        1 receives_oneshot(oneshot_recv_in_time);
        3 receives_oneshot(oneshot_await);
        0 drops_oneshot(drop);
        3 sends_broadcast(broadcast_send);
        2 receives_broadcast(broadcast_recv);
        3 receives_broadcast_at_once(broadcast_try_recv);
        3 receives_broadcast(broadcast_recv_in_time);
        4 receives_broadcast(broadcast_recv_async);
        3 sends_watch(watch_send);
        2 sends_unwatched(watch_send);
        2 sends_watch(watch_replace);
    }
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
