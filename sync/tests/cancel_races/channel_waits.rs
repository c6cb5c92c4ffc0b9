//! As `cancel_races`, for channels and their relatives, and for selects.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::at_once::Row;
use crate::channels::make;
use crate::common::guarded;
use fibra_runtime::{CancelToken, JoinHandle, Task, spawn, task};
use fibra_sync::channel::{Receiver, RecvTimeoutError, Select, SendTimeoutError, Sender};
use fibra_sync::{AutoResetEvent, CountdownEvent, Semaphore, broadcast, oneshot, select, watch};

fn play<T: Send + Sync + 'static, H: 'static>(row: Row<T, H>) {
    let _alone = crate::at_once::alone();
    guarded(|| crate::at_once::play(row, |builder| builder));
}

/// A message that is missed if it is lost: a block of memory.
type Message = Box<usize>;

type Channel = (Sender<Message>, Receiver<Message>);

fn send((sender, _): &Channel, until: Option<Instant>) -> bool {
    match until {
        None => sender.send(Box::new(1)).is_ok(),
        Some(until) => sender.send_deadline(Box::new(1), until).is_ok(),
    }
}

fn receive((_, receiver): &Channel, until: Option<Instant>) -> bool {
    match until {
        None => receiver.recv().is_ok(),
        Some(until) => receiver.recv_deadline(until).is_ok(),
    }
}

/// Receivers that are served by a send.
fn receivers(make: fn() -> Channel) -> Row<Channel> {
    Row::new(
        make,
        receive,
        |(sender, _), ()| sender.send(Box::new(2)).unwrap(),
        |(_, receiver), left| assert_eq!(receiver.try_iter().count(), left),
    )
}

#[test]
fn a_message_of_a_rendezvous() {
    play(Row { always_in_company: true, ..receivers(|| make(Some(0))) });
}

#[test]
fn a_message_of_a_channel_with_one_slot() {
    play(receivers(|| make(Some(1))));
}

#[test]
fn a_message_of_a_channel_with_several_slots() {
    play(receivers(|| make(Some(5))));
}

#[test]
fn a_message_of_a_channel_without_a_bound() {
    play(receivers(|| make(None)));
}

/// A full one.
fn full(capacity: usize) -> Channel {
    let channel = make(Some(capacity));
    fill(&channel);
    channel
}

/// How many messages it takes.
fn fill((sender, _): &Channel) -> usize {
    std::iter::from_fn(|| sender.try_send(Box::new(0)).ok()).count()
}

/// Senders that are served by a receive.
fn senders(make: fn() -> Channel) -> Row<Channel> {
    Row::new(
        make,
        send,
        |(_, receiver), ()| drop(receiver.recv().unwrap()),
        |channel, left| assert_eq!(fill(channel), left),
    )
}

#[test]
fn a_receiver_at_a_rendezvous() {
    play(Row { always_in_company: true, ..senders(|| full(0)) });
}

#[test]
fn the_slot_of_a_channel() {
    play(senders(|| full(1)));
}

#[test]
fn one_of_several_slots_of_a_channel() {
    play(senders(|| full(5)));
}

#[test]
fn a_send_that_never_waits() {
    let row = Row::new(
        || make(None),
        send,
        |_, ()| (),
        |(_, receiver), left| assert_eq!(receiver.try_iter().count(), 1 - left),
    );
    play(Row { both_win: false, ..row.alone() });
}

/// What one side of a channel is until it goes.
struct Goes<S>(Mutex<Option<S>>);

impl<S> Goes<S> {
    fn new(side: S) -> Self {
        Goes(Mutex::new(Some(side)))
    }

    fn go(&self) {
        drop(self.take());
    }

    fn take(&self) -> Option<S> {
        self.0.lock().unwrap().take()
    }
}

fn with_a_sender_that_goes(capacity: Option<usize>) -> (Goes<Sender<Message>>, Receiver<Message>) {
    let (sender, receiver) = make(capacity);
    (Goes::new(sender), receiver)
}

#[test]
fn the_end_of_the_last_sender() {
    let channels: [fn() -> _; 3] = [
        || with_a_sender_that_goes(Some(0)),
        || with_a_sender_that_goes(Some(3)),
        || with_a_sender_that_goes(None),
    ];
    for make in channels {
        let row = Row::new(
            make,
            |(_, receiver), until| match until {
                None => receiver.recv().is_err(),
                Some(until) => receiver.recv_deadline(until) == Err(RecvTimeoutError::Disconnected),
            },
            |(sender, _), ()| sender.go(),
            |(_, receiver), _| assert!(receiver.recv().is_err()),
        );
        play(Row { rounds: 300, ..row.once_for_all() });
    }
}

#[test]
fn the_end_of_the_last_receiver() {
    let row = Row::new(
        || {
            let (sender, receiver) = full(1);
            (sender, Goes::new(receiver))
        },
        |(sender, _), until| match until {
            None => sender.send(Box::new(1)).is_err(),
            Some(until) => {
                matches!(sender.send_deadline(Box::new(1), until), Err(SendTimeoutError::Disconnected(_)))
            }
        },
        |(_, receiver), ()| receiver.go(),
        |(sender, _), _| assert!(sender.send(Box::new(1)).is_err()),
    );
    play(row.once_for_all());
}

/// What one borrows for a wait and gives back, however it ends.
struct Lent<S>(Mutex<Option<S>>);

struct Borrowed<'a, S>(&'a Lent<S>, Option<S>);

impl<S> Lent<S> {
    fn new(thing: S) -> Self {
        Lent(Mutex::new(Some(thing)))
    }

    fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        let thing = self.0.lock().unwrap().take();
        let mut borrowed = Borrowed(self, thing);
        f(borrowed.1.as_mut().expect("one borrows it at a time"))
    }
}

impl<S> Drop for Borrowed<'_, S> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() = self.1.take();
    }
}

#[test]
fn the_value_of_a_oneshot() {
    let row = Row::new(
        || {
            let (sender, receiver) = oneshot::channel::<Message>();
            (Goes::new(sender), Goes::new(receiver))
        },
        // The victim drops its receiver, with what it has been sent.
        |(_, receiver), until| {
            let mut receiver = receiver.take().expect("it is taken once");
            match until {
                None => receiver.recv().is_ok(),
                Some(until) => receiver.recv_deadline(until).is_ok(),
            }
        },
        |(sender, _), ()| _ = sender.take().expect("it sends once").send(Box::new(1)),
        |_, _| (),
    );
    play(Row { lasts: 1, ..row.alone() });
}

#[test]
fn the_value_of_a_oneshot_with_a_receiver_that_stays() {
    let row = Row::new(
        || {
            let (sender, receiver) = oneshot::channel::<Message>();
            (Goes::new(sender), Lent::new(receiver))
        },
        |(_, receiver), until| {
            let until = until.unwrap_or_else(|| Instant::now() + crate::channels::ms(60_000));
            receiver.with(|receiver| receiver.recv_deadline(until).is_ok())
        },
        |(sender, _), ()| sender.take().expect("it sends once").send(Box::new(1)).unwrap(),
        |(_, receiver), left| receiver.with(|receiver| assert_eq!(receiver.try_recv().is_ok(), left == 1)),
    );
    play(Row { lasts: 1, ..row.alone() });
}

#[test]
fn the_end_of_a_oneshot_s_receiver() {
    let row = Row::new(
        || {
            let (sender, receiver) = oneshot::channel::<Message>();
            (Lent::new(sender), Goes::new(receiver))
        },
        |(sender, _), until| {
            sender.with(|sender| match until {
                None => {
                    sender.closed();
                    true
                }
                Some(until) => sender.closed_deadline(until),
            })
        },
        |(_, receiver), ()| receiver.go(),
        |(sender, _), _| sender.with(|sender| assert!(sender.is_closed())),
    );
    play(row.once_for_all().alone());
}

#[test]
fn a_message_of_a_broadcast() {
    play(
        Row::new(
            || {
                let (sender, receiver) = broadcast::channel::<Message>(2);
                (sender, Lent::new(receiver))
            },
            |(_, receiver), until| {
                receiver.with(|receiver| match until {
                    None => receiver.recv().is_ok(),
                    Some(until) => receiver.recv_deadline(until).is_ok(),
                })
            },
            |(sender, _), ()| assert_eq!(sender.send(Box::new(1)).unwrap(), 1),
            |(_, receiver), left| {
                receiver.with(|receiver| assert_eq!(receiver.try_recv().is_ok(), left == 1))
            },
        )
        .alone(),
    );
}

#[test]
fn the_end_of_the_last_receiver_of_a_broadcast() {
    let row = Row::new(
        || {
            let (sender, receiver) = broadcast::channel::<Message>(2);
            (sender, Goes::new(receiver))
        },
        |(sender, _), until| match until {
            None => {
                sender.closed();
                true
            }
            Some(until) => sender.closed_deadline(until),
        },
        |(_, receiver), ()| receiver.go(),
        |(sender, _), _| assert_eq!(sender.receiver_count(), 0),
    );
    play(row.once_for_all());
}

#[test]
fn a_change_of_a_watched_value() {
    play(
        Row::new(
            || {
                let (sender, receiver) = watch::channel(Message::default());
                (sender, Lent::new(receiver))
            },
            |(_, receiver), until| {
                receiver.with(|receiver| match until {
                    None => receiver.changed().is_ok(),
                    Some(until) => receiver.changed_deadline(until).is_ok(),
                })
            },
            |(sender, _), ()| sender.send(Box::new(1)).unwrap(),
            |(_, receiver), left| {
                receiver.with(|receiver| {
                    assert_eq!(receiver.has_changed().unwrap(), left == 1, "a change that was not seen");
                    receiver.mark_unchanged();
                });
            },
        )
        .alone(),
    );
}

#[test]
fn the_wanted_one_of_watched_values() {
    let row = Row::new(
        || {
            let (sender, receiver) = watch::channel(Message::default());
            (sender, Lent::new((receiver, 0)))
        },
        |(_, watcher), until| {
            watcher.with(|(receiver, seen)| {
                let wanted = |value: &Message| **value > *seen;
                let value = match until {
                    None => receiver.wait_for(wanted).ok().map(|value| **value),
                    Some(until) => receiver.wait_for_deadline(wanted, until).ok().map(|value| **value),
                };
                value.inspect(|value| *seen = *value).is_some()
            })
        },
        |(sender, _), ()| {
            sender.send_modify(|_| ());
            sender.send_modify(|value| **value += 1);
        },
        |(_, watcher), left| {
            watcher.with(|(receiver, seen)| {
                let value = **receiver.borrow_and_update();
                assert_eq!(value - *seen, left, "values that were wanted and not seen");
                *seen = value;
            });
        },
    );
    play(row.alone());
}

#[test]
fn the_end_of_the_last_receiver_of_a_watched_value() {
    let row = Row::new(
        || {
            let (sender, receiver) = watch::channel(Message::default());
            (sender, Goes::new(receiver))
        },
        |(sender, _), until| match until {
            None => {
                sender.closed();
                true
            }
            Some(until) => sender.closed_deadline(until),
        },
        |(_, receiver), ()| receiver.go(),
        |(sender, _), _| assert!(sender.is_closed()),
    );
    play(row.once_for_all());
}

/// Things of which a notification takes them by turns.
struct Turns<S> {
    things: S,
    turn: AtomicUsize,
}

impl<S> Turns<S> {
    fn of(things: S) -> Self {
        Turns { things, turn: AtomicUsize::new(0) }
    }

    fn next(&self, count: usize) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % count
    }
}

type Channels = Turns<[Channel; 2]>;

fn select_receives(channels: &Channels, until: Option<Instant>) -> bool {
    let [(_, first), (_, second)] = &channels.things;
    match until {
        None => select! {
            recv(first) -> message => message.is_ok(),
            recv(second) -> message => message.is_ok(),
        },
        Some(until) => select! {
            recv(first) -> message => message.is_ok(),
            recv(second) -> message => message.is_ok(),
            default(until.saturating_duration_since(Instant::now())) => false,
        },
    }
}

fn selected_receives(make: fn() -> Channels) -> Row<Channels> {
    Row::new(
        make,
        select_receives,
        |channels, ()| channels.things[channels.next(2)].0.send(Box::new(1)).unwrap(),
        |channels, left| {
            let count = |(_, receiver): &Channel| receiver.try_iter().count();
            assert_eq!(channels.things.iter().map(count).sum::<usize>(), left);
        },
    )
}

#[test]
fn a_message_for_one_arm_of_a_select() {
    play(selected_receives(|| Turns::of([make(Some(3)), make(None)])));
}

#[test]
fn a_message_of_a_rendezvous_for_one_arm_of_a_select() {
    let row = selected_receives(|| Turns::of([make(Some(0)), make(Some(0))]));
    play(Row { always_in_company: true, ..row });
}

fn select_sends(channels: &Channels, until: Option<Instant>) -> bool {
    let [(first, _), (second, _)] = &channels.things;
    match until {
        None => select! {
            send(first, Box::new(1)) -> sent => sent.is_ok(),
            send(second, Box::new(2)) -> sent => sent.is_ok(),
        },
        Some(until) => select! {
            send(first, Box::new(1)) -> sent => sent.is_ok(),
            send(second, Box::new(2)) -> sent => sent.is_ok(),
            default(until.saturating_duration_since(Instant::now())) => false,
        },
    }
}

fn selected_sends(make: fn() -> Channels) -> Row<Channels> {
    Row::new(
        make,
        select_sends,
        |channels, ()| drop(channels.things[channels.next(2)].1.recv().unwrap()),
        |channels, left| assert_eq!(channels.things.iter().map(fill).sum::<usize>(), left),
    )
}

#[test]
fn a_slot_for_one_arm_of_a_select() {
    play(selected_sends(|| Turns::of([full(1), full(2)])));
}

#[test]
fn a_receiver_at_a_rendezvous_for_one_arm_of_a_select() {
    play(Row { always_in_company: true, ..selected_sends(|| Turns::of([full(0), full(0)])) });
}

#[test]
fn two_selects_that_are_for_each_other() {
    let row = Row::new(
        || Turns::of([full(0), full(0)]),
        select_sends,
        |channels, ()| {
            let [(_, first), (_, second)] = &channels.things;
            select! {
                recv(first) -> message => drop(message.unwrap()),
                recv(second) -> message => drop(message.unwrap()),
            }
        },
        |channels, left| assert_eq!(channels.things.iter().map(fill).sum::<usize>(), left),
    );
    play(Row { always_in_company: true, ..row });
}

#[test]
fn a_message_for_an_operation_of_a_dynamic_select() {
    let row = selected_receives(|| Turns::of([make(Some(3)), make(None)]));
    play(Row {
        wait: |channels: &Channels, until| {
            let [(_, first), (_, second)] = &channels.things;
            let mut select = Select::new();
            let receivers = [first, second].map(|receiver| (select.recv(receiver), receiver));
            let selected = match until {
                None => select.select(),
                Some(until) => match select.select_deadline(until) {
                    Ok(selected) => selected,
                    Err(_) => return false,
                },
            };
            let (_, receiver) = receivers[selected.index()];
            selected.recv(receiver).is_ok()
        },
        ..row
    });
}

#[test]
fn events_that_make_an_operation_of_a_dynamic_select_ready() {
    let row = selected_receives(|| Turns::of([make(Some(3)), make(None)]));
    let receives = Row {
        wait: |channels: &Channels, until| {
            let receivers = channels.things.each_ref().map(|(_, receiver)| receiver);
            let mut select = Select::new();
            receivers.iter().for_each(|receiver| _ = select.recv(receiver));
            let ready = match until {
                None => Ok(select.ready()),
                Some(until) => select.ready_deadline(until),
            };
            ready.is_ok_and(|ready| receivers[ready].try_recv().is_ok())
        },
        ..row
    };
    play(receives.alone());
    let row = selected_sends(|| Turns::of([full(1), full(2)]));
    let sends = Row {
        wait: |channels: &Channels, until| {
            let senders = channels.things.each_ref().map(|(sender, _)| sender);
            let mut select = Select::new();
            senders.iter().for_each(|sender| _ = select.send(sender));
            let ready = match until {
                None => Ok(select.ready()),
                Some(until) => select.ready_timeout(until.saturating_duration_since(Instant::now())),
            };
            ready.is_ok_and(|ready| senders[ready].try_send(Box::new(1)).is_ok())
        },
        ..row
    };
    play(sends.alone());
}

struct Several {
    event: AutoResetEvent,
    semaphore: Semaphore,
    channel: Channel,
}

impl Several {
    fn new() -> Turns<Self> {
        Turns::of(Several {
            event: AutoResetEvent::new(false),
            semaphore: Semaphore::new(0),
            channel: make(Some(3)),
        })
    }

    fn select(&self, until: Option<Instant>) -> bool {
        match until {
            None => select! {
                wait(self.event) => {},
                wait(self.semaphore) -> permit => permit.unwrap().forget(),
                recv(self.channel.1) -> message => drop(message.unwrap()),
            },
            Some(until) => select! {
                wait(self.event) => {},
                wait(self.semaphore) -> permit => permit.unwrap().forget(),
                recv(self.channel.1) -> message => drop(message.unwrap()),
                default(until.saturating_duration_since(Instant::now())) => return false,
            },
        }
        true
    }

    fn notify(&self, which: usize) {
        match which {
            0 => self.event.set(),
            1 => self.semaphore.add_permits(1),
            _ => self.channel.0.send(Box::new(1)).unwrap(),
        }
    }

    fn settle(&self) -> usize {
        usize::from(self.event.try_wait())
            + self.semaphore.forget_permits(9)
            + self.channel.1.try_iter().count()
    }
}

#[test]
fn a_notification_for_one_arm_of_a_select_of_several_kinds() {
    play(Row::new(
        Several::new,
        |several, until| several.things.select(until),
        |several, ()| several.things.notify(several.next(3)),
        |several, left| assert_eq!(several.things.settle(), left),
    ));
}

#[test]
fn notifications_for_all_arms_of_a_select_at_once() {
    let row = Row::new(
        Several::new,
        |several, until| several.things.select(until),
        |several, ()| (0..3).for_each(|which| several.things.notify(which)),
        |several, left| assert_eq!(several.things.settle(), 2 + left, "one of the three is taken, or none"),
    );
    play(row.alone());
}

#[test]
fn events_that_serve_all_for_arms_of_a_select() {
    let row = Row::new(
        || Turns::of((CountdownEvent::new(1), CancelToken::new())),
        |both, until| {
            let (event, token) = &both.things;
            match until {
                None => select! {
                    wait(event) => true,
                    wait(token) => true,
                },
                Some(until) => select! {
                    wait(event) => true,
                    wait(token) => true,
                    default(until.saturating_duration_since(Instant::now())) => false,
                },
            }
        },
        |both, ()| {
            both.things.0.signal();
            both.things.1.cancel();
        },
        |both, _| assert!(both.things.0.is_set() && both.things.1.is_cancelled()),
    );
    play(row.once_for_all());
}

#[test]
fn the_end_of_a_task_for_an_arm_of_a_select() {
    let row = Row::new(
        || {
            let parked = spawn(task::park);
            (parked.task().clone(), Lent::new(parked), make(Some(0)))
        },
        |(_, task, (_kept, quiet)): &(Task, Lent<JoinHandle<()>>, Channel), until| {
            task.with(|task| match until {
                None => select! {
                    join(*task) => true,
                    recv(quiet) -> _ => false,
                },
                Some(until) => select! {
                    join(*task) => true,
                    recv(quiet) -> _ => false,
                    default(until.saturating_duration_since(Instant::now())) => false,
                },
            })
        },
        |(parked, ..), ()| parked.unpark(),
        |(parked, ..), _| crate::at_once::pinned::until(|| parked.is_finished()),
    );
    play(Row { is_for_tasks: true, ..row.once_for_all().alone() });
}
