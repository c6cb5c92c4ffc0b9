//! fibra, with tasks that stay at home.

use std::sync::mpsc;
use std::time::Duration;

use fibra::sync::channel::{Receiver, Sender, bounded, unbounded};
use fibra::sync::{AutoResetEvent, Condvar, Mutex, RwLock, Semaphore, oneshot};
use fibra::{JoinHandle, Runtime};

use super::channels::channel_kinds;
use super::crowd::{self, Lock, Permits, ReadLock};
use super::pairs::{self, Channel, Event, Oneshot, Turns};
use super::question::{PERMITS, Question, SLOTS};
use super::tasks::{Library, Pair, Tasks, Way, way};
use crate::comparison::{Answer, Rival};

pub(super) struct Fibra;

/// Tasks that may start on any worker.
struct Spread;

/// Two tasks on one worker.
struct Beside;

/// Two tasks on two workers.
struct Apart;

/// Where such tasks run.
struct Workers(Runtime);

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    let runtime = Runtime::builder().workers(workers).pin_workers(workers > 1).build();
    Box::new(Workers(runtime.expect("threads for the workers")))
}

pub(super) fn enters(question: Question, _workers: usize) -> bool {
    way_of(question).is_some()
}

fn way_of(question: Question) -> Option<Way> {
    way::<Fibra, Spread, Beside, Apart>(question)
}

impl Rival<Question> for Workers {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let way = way_of(question).expect("it has entered for no other");
        self.0.run(|| way(operations))
    }
}

impl Library for Fibra {
    fn way<T: Tasks, P: Pair>(question: Question) -> Option<Way> {
        Some(match question {
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
            Question::Semaphore => |n| crowd::acquire_over_yields::<T, Semaphore>(PERMITS, 1000, n),
            _ => return None,
        })
    }
}

impl Tasks for Spread {
    type JoinHandle = JoinHandle<()>;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        fibra::spawn(f)
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no task panics");
    }

    fn yield_now() {
        fibra::yield_now();
    }
}

impl Pair for Beside {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        let second = fibra::spawn_local(second);
        let elapsed = first();
        Spread::join(second);
        elapsed
    }
}

impl Pair for Apart {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        let (started, starts) = mpsc::channel();
        let second = fibra::spawn(move || {
            started.send(()).expect("the first waits for it");
            second();
        });
        // Stops this worker, so that it is another one that starts the second.
        starts.recv().expect("the second starts");
        let elapsed = first();
        Spread::join(second);
        elapsed
    }
}

impl Lock for Mutex<u64> {
    fn new() -> Self {
        Mutex::new(0)
    }

    fn with<R>(&self, f: impl FnOnce(&mut u64) -> R) -> R {
        f(&mut self.lock())
    }
}

impl ReadLock for RwLock<u64> {
    fn new() -> Self {
        RwLock::new(0)
    }

    fn read<R>(&self, f: impl FnOnce(&u64) -> R) -> R {
        f(&RwLock::read(self))
    }
}

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

    fn set(&self) {
        AutoResetEvent::set(self);
    }

    fn wait(&self) {
        AutoResetEvent::wait(self);
    }
}

impl Turns for (Mutex<bool>, Condvar) {
    fn new() -> Self {
        (Mutex::new(false), Condvar::new())
    }

    fn pass(&self, mine: bool) {
        let (turn, passed) = self;
        let mut turn = turn.lock();
        while *turn != mine {
            passed.wait(&mut turn);
        }
        *turn = !mine;
        passed.notify_one();
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

    fn send(sender: oneshot::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    fn receive(receiver: oneshot::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}
