//! The questions about tasks and primitives, one generic function each.
//!
//! This text is compiled twice: in `blocking`, where a wait is a call that blocks, and in `awaiting`, where
//! it is an `await`. Their macros `wait`, `later`, `body`, `job` and `run` make the difference.
//!
//! | file | holds |
//! | --- | --- |
//! | `tasks.rs`, `timers.rs`, `balance.rs`, `memory.rs` | the questions about tasks |
//! | `crowd.rs` | the questions about what many tasks want |
//! | `pairs.rs` | the questions about what passes between two tasks, or from some to one |
//! | `spread.rs` | the questions about what one task sends and many receive |
//! | `meeting.rs` | the question about many tasks that meet |
//! | `alone.rs` | the question about what a task does with a primitive of its own |
//! | `library.rs` | which questions a library answers with what it has |

/// Joins all tasks.
macro_rules! join_all {
    ($tasks:ty, $handles:expr) => {
        for handle in $handles {
            wait!(<$tasks>::join(handle));
        }
    };
}

/// Times an operation that is done so many times; it knows its number.
macro_rules! timed {
    ($operations:expr, |$number:pat_param| $operation:expr) => {{
        let begin = std::time::Instant::now();
        for $number in 0..$operations {
            $operation;
        }
        begin.elapsed()
    }};
}

/// Deeds: the question, what each is done to, how that is made, and what is done. They are inlined, as where
/// a user writes them.
macro_rules! deeds {
    ($($question:ident: $thing:ty = $new:expr, |$it:pat_param| $deed:expr;)+) => {
        $(
            impl Deed for $thing {
                const ASKED: Question = Question::$question;

                fn new() -> Self {
                    $new
                }

                #[inline(always)]
                fn run(&self) -> later!(()) {
                    body!({
                        let $it = self;
                        _ = $deed;
                    })
                }
            }
        )+
    };
}

/// Implements `Channel` for channels: what each is, its two ends, how it is made, and how its ends send and
/// receive unless they do so by the methods `send` and `recv`.
macro_rules! channels {
    ($($channel:ident $([$slots:ident])? = $sender:ident, $receiver:ident, $open:expr;)+) => {
        channels! { $($channel $([$slots])? = $sender, $receiver, $open, |to, message| wait!(to.send(message)), |from| wait!(from.recv());)+ }
    };
    ($($channel:ident $([$slots:ident])? = $sender:ident, $receiver:ident, $open:expr, |$to:ident, $message:ident| $send:expr, |$from:ident| $receive:expr;)+) => {
        $(
            pub(super) struct $channel $(<const $slots: usize>)?;

            impl<M: Send + 'static $(, const $slots: usize)?> Channel<M> for $channel $(<$slots>)? {
                type Sender = $sender<M>;
                type Receiver = $receiver<M>;

                fn open() -> (Self::Sender, Self::Receiver) {
                    $open
                }

                #[inline(always)]
                fn send($to: &Self::Sender, $message: M) -> later!(()) {
                    body!({ assert!($send.is_ok(), "the receiver is there") })
                }

                #[inline(always)]
                fn receive($from: &mut Self::Receiver) -> later!(M) {
                    body!({ $receive.expect("the sender is there") })
                }
            }
        )+
    };
}

/// Implements `Oneshot`: what the channel is, its two ends, how it is made, and how its ends send and
/// receive.
macro_rules! oneshot {
    ($oneshot:ty = $sender:ty, $receiver:ty, $open:expr, |$to:ident, $message:ident| $send:expr, |$from:ident| $receive:expr) => {
        impl Oneshot for $oneshot {
            type Sender = $sender;
            type Receiver = $receiver;

            fn open() -> (Self::Sender, Self::Receiver) {
                $open
            }

            #[inline(always)]
            fn send($to: Self::Sender, $message: u64) {
                assert!($send.is_ok(), "the receiver is there");
            }

            #[inline(always)]
            fn receive($from: Self::Receiver) -> later!(u64) {
                body!({ $receive.expect("the sender replies") })
            }
        }
    };
}

/// Implements `Permits` for the `Semaphore` in scope: its permit, and how an acquisition gives that.
macro_rules! semaphores {
    ($permit:ident, $permit_of:expr) => {
        impl Permits for Semaphore {
            type Permit<'a> = $permit<'a>;

            fn new(permits: usize) -> Self {
                Semaphore::new(permits)
            }

            #[inline(always)]
            fn acquire(&self) -> later!(Self::Permit<'_>) {
                body!({ $permit_of(wait!(Semaphore::acquire(self))) })
            }
        }
    };
}

/// What is asked of a `Mutex` and a `RwLock` in scope with their guards: how a lock gives its guard. Needs
/// `deeds`.
macro_rules! locks {
    ($guard_of:expr) => {
        impl Lock for Mutex<u64> {
            type Guard<'a> = MutexGuard<'a, u64>;

            fn new() -> Self {
                Mutex::new(0)
            }

            #[inline(always)]
            fn lock(&self) -> later!(Self::Guard<'_>) {
                body!({ $guard_of(wait!(Mutex::lock(self))) })
            }

            #[inline(always)]
            fn count(guard: &mut Self::Guard<'_>) -> u64 {
                **guard += 1;
                **guard
            }
        }

        deeds! { LockedLook: Mutex<u64> = locked(Mutex::new(0)), |mutex| drop(mutex.try_lock()); }

        /// Locks the mutex for good.
        fn locked(mutex: Mutex<u64>) -> Mutex<u64> {
            std::mem::forget(mutex.try_lock());
            mutex
        }

        impl ReadLock for RwLock<u64> {
            type Read<'a> = RwLockReadGuard<'a, u64>;
            type Write<'a> = RwLockWriteGuard<'a, u64>;

            fn new() -> Self {
                RwLock::new(0)
            }

            #[inline(always)]
            fn read(&self) -> later!(Self::Read<'_>) {
                body!({ $guard_of(wait!(RwLock::read(self))) })
            }

            #[inline(always)]
            fn write(&self) -> later!(Self::Write<'_>) {
                body!({ $guard_of(wait!(RwLock::write(self))) })
            }
        }
    };
}

/// What is asked of the modules `broadcast` and `watch` in scope.
macro_rules! spreads {
    () => {
        pub(super) struct Broadcast;

        pub(super) struct Watch;

        impl Spread for Broadcast {
            type Sender = broadcast::Sender<u64>;
            type Receiver = broadcast::Receiver<u64>;

            const BATCH: u64 = SLOTS as u64;

            fn open() -> Self::Sender {
                broadcast::Sender::new(SLOTS)
            }

            fn subscribe(sender: &Self::Sender) -> Self::Receiver {
                sender.subscribe()
            }

            #[inline(always)]
            fn send(sender: &Self::Sender, message: u64) {
                sender.send(message).expect("the receivers are there");
            }

            #[inline(always)]
            fn receive(receiver: &mut Self::Receiver) -> later!(u64) {
                body!({ wait!(receiver.recv()).expect("the sender waits for all") })
            }
        }

        impl Spread for Watch {
            type Sender = watch::Sender<u64>;
            type Receiver = watch::Receiver<u64>;

            const BATCH: u64 = 1;

            fn open() -> Self::Sender {
                watch::Sender::new(0)
            }

            fn subscribe(sender: &Self::Sender) -> Self::Receiver {
                sender.subscribe()
            }

            #[inline(always)]
            fn send(sender: &Self::Sender, message: u64) {
                sender.send(message).expect("the receivers are there");
            }

            #[inline(always)]
            fn receive(receiver: &mut Self::Receiver) -> later!(u64) {
                body!({
                    wait!(receiver.changed()).expect("the sender waits for all");
                    *receiver.borrow_and_update()
                })
            }
        }
    };
}

/// What is asked of a type named `Barrier` in scope.
macro_rules! barriers {
    () => {
        deeds! { BarrierFree: std::sync::Arc<Barrier> = std::sync::Arc::new(Barrier::new(1)), |barrier| wait!(barrier.wait()); }

        impl Party for std::sync::Arc<Barrier> {
            const MEETING: Meeting = Meeting::Barrier;

            fn of_all(tasks: usize, _rounds: usize) -> Vec<Self> {
                vec![std::sync::Arc::new(Barrier::new(tasks)); tasks]
            }

            fn meet(&mut self) -> later!(()) {
                body!({ _ = wait!(self.wait()) })
            }
        }
    };
}

pub(in crate::compare) mod alone;
mod balance;
pub(in crate::compare) mod crowd;
pub(in crate::compare) mod library;
pub(in crate::compare) mod meeting;
mod memory;
pub(in crate::compare) mod pairs;
pub(in crate::compare) mod spread;
mod tasks;
mod timers;

use std::marker::PhantomData;
use std::time::Duration;

use super::{Boxed, Job, boxed};
use crate::compare::question::Answer;

/// A library with tasks of kind `T`, started.
pub(in crate::compare) struct Host<T, E> {
    pub(in crate::compare) entrance: E,
    workers: usize,
    tasks: PhantomData<T>,
}

/// Functions that start a library with so many workers: the kind of its tasks, and how they are entered.
macro_rules! starts {
    ($($(#[$about:meta])* $name:ident = $tasks:ty, $entrance:ty, |$workers:pat_param| $start:expr;)+) => {
        $(
            $(#[$about])*
            pub(in crate::compare) fn $name<Q>(workers: usize) -> Box<dyn $crate::compare::entrant::Rival<Q>>
            where
                Host<$tasks, $entrance>: $crate::compare::entrant::Rival<Q>,
            {
                let $workers = workers;
                Box::new(Host::<$tasks, $entrance>::new($start, workers))
            }
        )+
    };
}

pub(in crate::compare) use starts;

impl<T, E> Host<T, E> {
    pub(in crate::compare) fn new(entrance: E, workers: usize) -> Self {
        Host { entrance, workers, tasks: PhantomData }
    }
}

/// The questions to a library.
pub(in crate::compare) enum Asked {
    /// Of one task, which may spawn others.
    Task(Boxed<Answer>),
    /// Of two, of which the first tells the time.
    Pair(Boxed<Duration>, Boxed<()>, Finish),
}

/// Makes an answer of the time that a pair took.
type Finish = Box<dyn FnOnce(Duration) -> Answer>;

/// Asks one task, which times itself.
pub(super) fn task<A: Into<Answer> + 'static>(job: impl Job<A>) -> Asked {
    Asked::Task(boxed(job!({ run!(job).into() })))
}

/// Asks a pair.
pub(super) fn pair(first: impl Job<Duration>, second: impl Job<()>) -> Asked {
    Asked::Pair(boxed(first), boxed(second), Box::new(Answer::from))
}
