//! What std has.

use std::hint::black_box;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock};

use super::alone::{self, Deed, deeds};
use super::crowd::{self, Lock, ReadLock};
use super::library::{Library, Pair, Way};
use super::meeting::{self, Party, barrier};
use super::pairs::{self, Channel, Oneshot, Turns};
use super::question::{CONTENDERS, CROWD, Call, Meeting, Question, SLOTS};
use super::waking::{self, Board, Then};
use crate::compare::worlds::Blocking;

pub(super) struct Standard;

struct Bounded<const SLOTS: usize>;

struct Unbounded;

impl Library for Standard {
    fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
            Question::WriteFree => |n| crowd::write_freely::<RwLock<u64>>(n).into(),
            Question::ChannelFree => |n| pairs::pass_freely::<Bounded<SLOTS>>(n).into(),
            Question::MutexFree => |n| crowd::lock_freely::<Mutex<u64>>(n).into(),
            Question::MutexTiny(2) => |n| crowd::lock_briefly::<T, Mutex<u64>>(2, n),
            Question::MutexTiny(8) => |n| crowd::lock_briefly::<T, Mutex<u64>>(8, n),
            Question::MutexTiny(64) => |n| crowd::lock_briefly::<T, Mutex<u64>>(64, n),
            Question::ReadFree => |n| crowd::read_freely::<RwLock<u64>>(n).into(),
            Question::PingPong(_) => |n| pairs::ping_pong::<P, Bounded<1>>(n).into(),
            Question::Rendezvous(_) => |n| pairs::ping_pong::<P, Bounded<0>>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::Call(_) => |n| pairs::call::<P, Bounded<SLOTS>, Bounded<1>>(n).into(),
            Question::Bounded(_) => |n| pairs::stream::<P, Bounded<SLOTS>>(n).into(),
            Question::BoundedEight => |n| pairs::stream_from_eight::<T, Bounded<SLOTS>>(n).into(),
            Question::Unbounded(_) => |n| pairs::stream::<P, Unbounded>(n).into(),
            Question::ReadWriteTiny => |n| crowd::share_briefly::<T, RwLock<u64>>(CONTENDERS, n),
            Question::NotifyFree => |n| alone::repeat::<Condvar>(n).into(),
            Question::OnceFree => |n| alone::repeat::<Once>(n).into(),
            Question::CellFree => |n| alone::repeat::<OnceLock<u64>>(n).into(),
            Question::OneshotFree => |n| pairs::reply_freely::<Bounded<1>>(n).into(),
            Question::BarrierFree => |n| alone::repeat::<Barrier>(n).into(),
            Question::MutexApart => crowd::lock_as_a_pair::<P, Mutex<u64>>,
            Question::Meet(Meeting::Barrier) => |n| meeting::meet::<T, Arc<Barrier>>(CROWD, n).into(),
            Question::Wake(Call::NotifyOne) => {
                |n| waking::notify_one::<T, (Mutex<u64>, [Condvar; 2])>(CROWD, n)
            }
            Question::Wake(Call::NotifyAll) => {
                |n| waking::notify_all::<T, (Mutex<u64>, [Condvar; 2])>(CROWD, n).into()
            }
            _ => return None,
        })
    }
}

/// What is asked of whoever has `Mutex`, `RwLock`, `Condvar` and `Barrier` in scope that are std's or like them: a panic poisons them.
macro_rules! poisonable_guards {
    () => {
        impl Lock for Mutex<u64> {
            fn new() -> Self {
                Mutex::new(0)
            }

            fn with<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
                f(&mut self.lock().expect("nobody panics with it"))
            }
        }

        impl ReadLock for RwLock<u64> {
            fn new() -> Self {
                RwLock::new(0)
            }

            fn read<R>(&self, f: impl FnOnce(&u64) -> R) -> R {
                f(&RwLock::read(self).expect("nobody panics with it"))
            }

            fn write<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
                f(&mut RwLock::write(self).expect("nobody panics with it"))
            }
        }

        impl Turns for (Mutex<bool>, Condvar) {
            fn new() -> Self {
                Default::default()
            }

            #[inline(always)]
            fn pass(&self, mine: bool) {
                let (turn, passed) = self;
                let mut turn = turn.lock().expect("nobody panics with it");
                while *turn != mine {
                    turn = passed.wait(turn).expect("nobody panics with it");
                }
                *turn = !mine;
                passed.notify_one();
            }
        }

        impl Board for (Mutex<u64>, [Condvar; 2]) {
            fn new() -> Self {
                Default::default()
            }

            fn pass(&self, at: usize, mut look: impl FnMut(&mut u64) -> Then) {
                let (number, conditions) = self;
                let mut number = number.lock().expect("nobody panics with it");
                let mut then = look(&mut number);
                while then == Then::Wait {
                    number = conditions[at].wait(number).expect("nobody panics with it");
                    then = look(&mut number);
                }
                match then {
                    Then::NotifyOne => conditions[1 - at].notify_one(),
                    Then::NotifyAll => conditions[1 - at].notify_all(),
                    Then::Wait | Then::Go => {}
                }
            }
        }

        deeds! {
            Condvar = Condvar::new(), |condition| condition.notify_one();
            Barrier = Barrier::new(1), |barrier| barrier.wait();
        }

        barrier!(Barrier);
    };
}

pub(super) use poisonable_guards;

poisonable_guards!();

deeds! {
    Once = Once::new(), |once| once.call_once(|| ());
    OnceLock<u64> = OnceLock::from(1), |cell| black_box(cell.get_or_init(|| 0));
}

impl<M: Send + 'static, const SLOTS: usize> Channel<M> for Bounded<SLOTS> {
    type Sender = SyncSender<M>;
    type Receiver = Receiver<M>;

    fn open() -> (SyncSender<M>, Receiver<M>) {
        mpsc::sync_channel(SLOTS)
    }

    #[inline(always)]
    fn send(sender: &SyncSender<M>, message: M) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: &Receiver<M>) -> M {
        receiver.recv().expect("the sender is there")
    }
}

impl<M: Send + 'static> Channel<M> for Unbounded {
    type Sender = Sender<M>;
    type Receiver = Receiver<M>;

    fn open() -> (Sender<M>, Receiver<M>) {
        mpsc::channel()
    }

    #[inline(always)]
    fn send(sender: &Sender<M>, message: M) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: &Receiver<M>) -> M {
        receiver.recv().expect("the sender is there")
    }
}

impl Oneshot for Bounded<1> {
    type Sender = SyncSender<u64>;
    type Receiver = Receiver<u64>;

    fn open() -> (SyncSender<u64>, Receiver<u64>) {
        mpsc::sync_channel(1)
    }

    #[inline(always)]
    fn send(sender: SyncSender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    #[inline(always)]
    fn receive(receiver: Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}
