//! may. Its runtime belongs to the process, with as many workers as were asked for first. It has no channels with bounds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst, fence};
use std::time::Duration;

use may::coroutine::{self, Coroutine, JoinHandle};
use may::sync::{Condvar, Mutex, RwLock, Semphore, mpsc, spsc};

use super::crowd::{self, Lock, Permits, ReadLock};
use super::pairs::{self, Channel, Event, Oneshot, Turns};
use super::question::{PERMITS, Place, Question};
use super::tasks::{Library, Pair, Tasks, Way};
use crate::comparison::{Answer, Rival};

struct May;

/// The way in from a plain thread.
struct Process;

pub(super) fn start(workers: usize) -> Box<dyn Rival<Question>> {
    may::config().set_workers(workers).set_pool_capacity(2_000);
    Box::new(Process)
}

/// Its coroutines go where they please, so none is asked to stay apart. And on more than one worker two of them that park
/// and unpark each other now and then do so for ever, in may 0.3.51.
pub(super) fn enters(question: Question, workers: usize) -> bool {
    let ends = workers == 1 || !matches!(question, Question::Event(_));
    ends && question.place() == Place::Together && May::way::<May, May>(question).is_some()
}

impl Rival<Question> for Process {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let way = May::way::<May, May>(question).expect("it has entered for no other");
        // SAFETY: the questions keep nothing that is tied to a thread over a suspension, and need little stack.
        unsafe { coroutine::spawn(move || way(operations)) }.join().expect("no coroutine panics")
    }
}

impl Library for May {
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
            Question::Event(_) => |n| pairs::set_to_and_fro::<P, Parked>(n).into(),
            Question::Condition(_) => |n| pairs::take_turns::<P, (Mutex<bool>, Condvar)>(n).into(),
            Question::Call(_) => |n| pairs::call::<P, Mpsc, Spsc>(n).into(),
            Question::Unbounded(_) => |n| pairs::stream::<P, Mpsc>(n).into(),
            Question::Semaphore => |n| crowd::acquire_over_yields::<T, Semphore>(PERMITS, 1000, n),
            _ => return None,
        })
    }
}

impl Tasks for May {
    type JoinHandle = JoinHandle<()>;

    unsafe fn spawn<F: FnOnce() + Send + 'static>(f: F) -> JoinHandle<()> {
        // SAFETY: by this function's contract.
        unsafe { coroutine::spawn(f) }
    }

    fn join(handle: JoinHandle<()>) {
        handle.join().expect("no coroutine panics");
    }

    fn yield_now() {
        coroutine::yield_now();
    }
}

impl Pair for May {
    unsafe fn run(
        first: impl FnOnce() -> Duration + Send + 'static,
        second: impl FnOnce() + Send + 'static,
    ) -> Duration {
        // SAFETY: by this function's contract.
        let second = unsafe { coroutine::spawn(second) };
        let elapsed = first();
        May::join(second);
        elapsed
    }
}

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
}

impl Permits for Semphore {
    fn new(permits: usize) -> Self {
        Semphore::new(permits)
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        self.wait();
        let value = f();
        self.post();
        value
    }
}

/// Stands for an event, of which may has only one that fires once: a flag, and the coroutine that parks until it is set.
struct Parked {
    set: AtomicBool,
    waiter: OnceLock<Coroutine>,
}

impl Event for Parked {
    fn new() -> Self {
        Parked { set: AtomicBool::new(false), waiter: OnceLock::new() }
    }

    fn set(&self) {
        self.set.store(true, SeqCst);
        // Who waits has left its name or sees the flag: it fences between the two, in the other order.
        fence(SeqCst);
        if let Some(waiter) = self.waiter.get() {
            waiter.unpark();
        }
    }

    fn wait(&self) {
        if self.waiter.get().is_none() {
            self.waiter.get_or_init(coroutine::current);
            fence(SeqCst);
        }
        while !self.set.swap(false, SeqCst) {
            coroutine::park();
        }
    }
}

impl Turns for (Mutex<bool>, Condvar) {
    fn new() -> Self {
        Default::default()
    }

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

/// For several producers.
struct Mpsc;

/// For one.
struct Spsc;

impl<M: Send + 'static> Channel<M> for Mpsc {
    type Sender = mpsc::Sender<M>;
    type Receiver = mpsc::Receiver<M>;

    fn open() -> (mpsc::Sender<M>, mpsc::Receiver<M>) {
        mpsc::channel()
    }

    fn send(sender: &mpsc::Sender<M>, message: M) {
        assert!(sender.send(message).is_ok(), "the receiver is there");
    }

    fn receive(receiver: &mpsc::Receiver<M>) -> M {
        receiver.recv().expect("the sender is there")
    }
}

impl Oneshot for Spsc {
    type Sender = spsc::Sender<u64>;
    type Receiver = spsc::Receiver<u64>;

    fn open() -> (spsc::Sender<u64>, spsc::Receiver<u64>) {
        spsc::channel()
    }

    fn send(sender: spsc::Sender<u64>, message: u64) {
        sender.send(message).expect("the receiver is there");
    }

    fn receive(receiver: spsc::Receiver<u64>) -> u64 {
        receiver.recv().expect("the sender replies")
    }
}
