//! fibra.

use fibra::sync::channel::{Receiver, Sender, bounded, unbounded};
use fibra::sync::{AutoResetEvent, Condvar, Mutex, RwLock, Semaphore, oneshot};

use super::channels::channel_kinds;
use super::crowd::{self, Lock, Permits, ReadLock};
use super::library::{Library, Pair, Way};
use super::pairs::{self, Channel, Choice, Event, Oneshot, Turns};
use super::parking_lot::guards;
use super::question::{ACQUIRERS, PERMITS, Question, READERS, SLOTS};
use crate::compare::worlds::Blocking;

/// What it has.
pub(super) struct Fibra;

impl Library for Fibra {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::WriteFree => |n| crowd::write_freely::<RwLock<u64>>(n).into(),
            Question::ReadWrite => |n| crowd::share_over_yields::<T, RwLock<u64>>(READERS, n),
            Question::SemaphoreFree => |n| crowd::acquire_freely::<Semaphore>(n).into(),
            Question::EventFree => |n| pairs::set_freely::<AutoResetEvent>(n).into(),
            Question::ChannelFree => |n| pairs::pass_freely::<Bounded<SLOTS>>(n).into(),
            Question::Select => |n| pairs::choose::<T, Bounded<SLOTS>>(n).into(),
            Question::MutexFree => |n| crowd::lock_freely::<Mutex<u64>>(n).into(),
            Question::MutexOverYield(2) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(2, n),
            Question::MutexOverYield(64) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(64, n),
            Question::MutexOverYield(1000) => |n| crowd::lock_over_yields::<T, Mutex<u64>>(1000, n),
            Question::MutexTiny(2) => |n| crowd::lock_briefly::<T, Mutex<u64>>(2, n),
            Question::MutexTiny(8) => |n| crowd::lock_briefly::<T, Mutex<u64>>(8, n),
            Question::MutexTiny(64) => |n| crowd::lock_briefly::<T, Mutex<u64>>(64, n),
            Question::ReadFree => |n| crowd::read_freely::<RwLock<u64>>(n).into(),
            Question::PingPong(_) => |n| pairs::ping_pong::<P, Bounded<1>>(n).into(),
            Question::Rendezvous(_) => |n| pairs::ping_pong::<P, Bounded<0>>(n).into(),
            Question::Event(_) => |n| pairs::set_to_and_fro::<P, AutoResetEvent>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::Call(_) => |n| pairs::call::<P, Bounded<SLOTS>, Once>(n).into(),
            Question::Bounded(_) => |n| pairs::stream::<P, Bounded<SLOTS>>(n).into(),
            Question::BoundedEight => |n| pairs::stream_from_eight::<T, Bounded<SLOTS>>(n).into(),
            Question::Unbounded(_) => |n| pairs::stream::<P, Unbounded>(n).into(),
            Question::Semaphore => |n| crowd::acquire_over_yields::<T, Semaphore>(PERMITS, ACQUIRERS, n),
            _ => return None,
        })
    }
}

guards!();

impl Permits for Semaphore {
    fn new(permits: usize) -> Self {
        Semaphore::new(permits)
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _permit = self.acquire();
        f()
    }
}

impl Event for AutoResetEvent {
    fn new() -> Self {
        AutoResetEvent::new(false)
    }

    #[inline(always)]
    fn set(&self) {
        AutoResetEvent::set(self);
    }

    #[inline(always)]
    fn wait(&self) {
        AutoResetEvent::wait(self);
    }
}

channel_kinds!();

struct Once;

impl Oneshot for Once {
    type Sender = oneshot::Sender<u64>;
    type Receiver = oneshot::Receiver<u64>;

    fn open() -> (oneshot::Sender<u64>, oneshot::Receiver<u64>) {
        oneshot::channel()
    }

    #[inline(always)]
    fn send(sender: oneshot::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: oneshot::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}

impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
    #[inline(always)]
    fn receive_either(one: &Receiver<u64>, other: &Receiver<u64>) -> u64 {
        fibra::select! {
            recv(one) -> message => message.expect("the sender is there"),
            recv(other) -> message => message.expect("the sender is there"),
        }
    }
}
