//! tokio, in both flavours: the questions of `crowd.rs` and `pairs.rs`, asked of tasks that wait by `await`.
//!
//! It has no channel without slots and no condition variable: a mutex and a `Notify` stand for the latter.

use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Notify, RwLock, Semaphore, mpsc, oneshot};
use tokio::task::yield_now;

use super::crowd::shared;
use super::question::{PERMITS, Place, Question, SLOTS};
use super::threads;
use crate::comparison::{Answer, Rival};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What is asked of a runtime.
pub(super) enum Asked {
    /// Of one task, which may spawn others.
    Task(Boxed<Answer>),
    /// Of two; the answer is the first one's.
    Pair(Boxed<Duration>, Boxed<()>),
}

/// A way to ask.
pub(super) type Way = fn(operations: u64) -> Asked;

/// A runtime for all tasks that are together; pairs that are apart have one on a thread of its own each.
pub(super) struct Tokio {
    pub(super) together: Runtime,
    pub(super) way: fn(Question) -> Option<Way>,
}

pub(super) fn start_current(_workers: usize) -> Box<dyn Rival<Question>> {
    Box::new(Tokio { together: current(), way })
}

pub(super) fn start_multi(workers: usize) -> Box<dyn Rival<Question>> {
    let runtime = Builder::new_multi_thread().worker_threads(workers).build();
    Box::new(Tokio { together: runtime.expect("threads for the workers"), way })
}

pub(super) fn current() -> Runtime {
    Builder::new_current_thread().build().expect("a runtime on this thread")
}

pub(super) fn current_enters(question: Question, workers: usize) -> bool {
    (workers == 1 || question.place() == Place::Apart) && way(question).is_some()
}

pub(super) fn multi_enters(question: Question, _workers: usize) -> bool {
    question.place() == Place::Together && way(question).is_some()
}

impl Rival<Question> for Tokio {
    fn answer(&self, question: Question, operations: u64) -> Answer {
        let way = (self.way)(question).expect("it has entered for no other");
        match (way(operations), question.place()) {
            (Asked::Pair(first, second), Place::Apart) => {
                threads::apart(|| current().block_on(first), || current().block_on(second)).into()
            }
            (Asked::Pair(first, second), Place::Together) => self.run(both(first, second)).into(),
            (Asked::Task(task), _) => self.run(task),
        }
    }
}

impl Tokio {
    /// In a task, as with the others: what `block_on` itself runs is no task and, with several threads, on none of them.
    fn run<T: Send + 'static>(&self, asked: impl Future<Output = T> + Send + 'static) -> T {
        let asked = self.together.spawn(asked);
        self.together.block_on(asked).expect("no task panics")
    }
}

async fn both(first: Boxed<Duration>, second: Boxed<()>) -> Duration {
    let second = tokio::spawn(second);
    let elapsed = first.await;
    second.await.expect("no task panics");
    elapsed
}

fn way(question: Question) -> Option<Way> {
    Some(match question {
        Question::MutexFree => |n| Asked::Task(Box::pin(lock_freely(n))),
        Question::MutexOverYield(2) => |n| Asked::Task(Box::pin(lock_over_yields(2, n))),
        Question::MutexOverYield(64) => |n| Asked::Task(Box::pin(lock_over_yields(64, n))),
        Question::MutexOverYield(1000) => |n| Asked::Task(Box::pin(lock_over_yields(1000, n))),
        Question::MutexTiny(2) => |n| Asked::Task(Box::pin(lock_briefly(2, n))),
        Question::MutexTiny(8) => |n| Asked::Task(Box::pin(lock_briefly(8, n))),
        Question::MutexTiny(64) => |n| Asked::Task(Box::pin(lock_briefly(64, n))),
        Question::ReadFree => |n| Asked::Task(Box::pin(read_freely(n))),
        Question::PingPong(_) => ping_pong,
        Question::Event(_) => set_to_and_fro,
        Question::Condition(_) => take_turns,
        Question::Call(_) => call,
        Question::Bounded(_) => stream,
        Question::BoundedEight => |n| Asked::Task(Box::pin(stream_from_eight(n))),
        Question::Unbounded(_) => stream_unbounded,
        Question::Semaphore => |n| Asked::Task(Box::pin(acquire_over_yields(n))),
        _ => return None,
    })
}

/// A pair of futures, as [`Asked`] has them.
pub(super) fn pair(
    first: impl Future<Output = Duration> + Send + 'static,
    second: impl Future<Output = ()> + Send + 'static,
) -> Asked {
    Asked::Pair(Box::pin(first), Box::pin(second))
}

async fn lock_freely(operations: u64) -> Answer {
    let lock = Mutex::new(0);
    let begin = Instant::now();
    for _ in 0..operations {
        *black_box(&lock).lock().await += 1;
    }
    begin.elapsed().into()
}

async fn read_freely(operations: u64) -> Answer {
    let lock = RwLock::new(0);
    let begin = Instant::now();
    for _ in 0..operations {
        black_box(*black_box(&lock).read().await);
    }
    begin.elapsed().into()
}

async fn lock_over_yields(tasks: u64, operations: u64) -> Answer {
    let lock = Arc::new(Mutex::new(0));
    serve(tasks, operations, move || {
        let lock = Arc::clone(&lock);
        async move {
            for share in 0.. {
                let mut count = lock.lock().await;
                *count += 1;
                yield_now().await;
                if *count > operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    })
    .await
}

async fn lock_briefly(tasks: u64, operations: u64) -> Answer {
    let lock = Arc::new(Mutex::new(0));
    serve(tasks, operations, move || {
        let lock = Arc::clone(&lock);
        async move {
            for share in 0.. {
                let mut count = lock.lock().await;
                *count += 1;
                if *count > operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    })
    .await
}

async fn acquire_over_yields(operations: u64) -> Answer {
    let shared = Arc::new((Semaphore::new(PERMITS), AtomicU64::new(0)));
    serve(1000, operations, move || {
        let shared = Arc::clone(&shared);
        async move {
            let (semaphore, count) = &*shared;
            for share in 0.. {
                let _permit = semaphore.acquire().await.expect("nobody closes it");
                yield_now().await;
                if count.fetch_add(1, Relaxed) >= operations {
                    return share;
                }
            }
            unreachable!("one of these is the last")
        }
    })
    .await
}

/// Starts so many tasks, and has each ask to be served until it ends with its share.
async fn serve<F: Future<Output = u64> + Send + 'static>(
    tasks: u64,
    operations: u64,
    asking: impl Fn() -> F,
) -> Answer {
    let shares: Arc<[AtomicU64]> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
    let task = |number: usize| {
        let (shares, asking) = (Arc::clone(&shares), asking());
        async move { shares[number].store(asking.await, Relaxed) }
    };
    let handles: Vec<_> = (0..tasks as usize).map(|number| tokio::spawn(task(number))).collect();
    let begin = Instant::now();
    for handle in handles {
        handle.await.expect("no task panics");
    }
    shared(begin.elapsed(), &shares, operations)
}

fn ping_pong(operations: u64) -> Asked {
    let (there, mut arrived) = mpsc::channel(1);
    let (back, mut returned) = mpsc::channel(1);
    let asking = async move {
        let begin = Instant::now();
        for number in 0..operations {
            there.send(number).await.expect("the receiver is there");
            assert_eq!(returned.recv().await, Some(number));
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            let number = arrived.recv().await.expect("the sender is there");
            back.send(number).await.expect("the receiver is there");
        }
    })
}

fn set_to_and_fro(operations: u64) -> Asked {
    let (there, back) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (arrived, returned) = (Arc::clone(&there), Arc::clone(&back));
    let asking = async move {
        let begin = Instant::now();
        for _ in 0..operations {
            there.notify_one();
            returned.notified().await;
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            arrived.notified().await;
            back.notify_one();
        }
    })
}

/// Whose turn it is, and where each of the two waits for its own: who passes the turn must not take its own notification.
#[derive(Default)]
struct Turns {
    turn: Mutex<bool>,
    passed: [Notify; 2],
}

fn take_turns(operations: u64) -> Asked {
    let ours = Arc::new(Turns::default());
    let theirs = Arc::clone(&ours);
    let asking = async move {
        let begin = Instant::now();
        for _ in 0..operations {
            ours.pass(false).await;
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            theirs.pass(true).await;
        }
    })
}

impl Turns {
    /// Waits until it is `mine`, then makes it the other's.
    async fn pass(&self, mine: bool) {
        let mut turn = self.turn.lock().await;
        while *turn != mine {
            drop(turn);
            self.passed[usize::from(mine)].notified().await;
            turn = self.turn.lock().await;
        }
        *turn = !mine;
        self.passed[usize::from(!mine)].notify_one();
    }
}

fn call(operations: u64) -> Asked {
    let (there, mut arrived) = mpsc::channel(SLOTS);
    let asking = async move {
        let begin = Instant::now();
        for number in 0..operations {
            let (reply, returned) = oneshot::channel();
            assert!(there.send((number, reply)).await.is_ok(), "the receiver is there");
            assert_eq!(returned.await, Ok(number));
        }
        begin.elapsed()
    };
    pair(asking, async move {
        for _ in 0..operations {
            let (number, reply) = arrived.recv().await.expect("the sender is there");
            assert_eq!(reply.send(number), Ok(()));
        }
    })
}

fn stream(operations: u64) -> Asked {
    let (sender, mut receiver) = mpsc::channel(SLOTS);
    let consuming = async move {
        let begin = Instant::now();
        for number in 0..operations {
            assert_eq!(receiver.recv().await, Some(number));
        }
        begin.elapsed()
    };
    pair(consuming, async move {
        for number in 0..operations {
            sender.send(number).await.expect("the receiver is there");
        }
    })
}

fn stream_unbounded(operations: u64) -> Asked {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let consuming = async move {
        let begin = Instant::now();
        for number in 0..operations {
            assert_eq!(receiver.recv().await, Some(number));
        }
        begin.elapsed()
    };
    pair(consuming, async move {
        for number in 0..operations {
            sender.send(number).expect("the receiver is there");
        }
    })
}

async fn stream_from_eight(operations: u64) -> Answer {
    let (sender, mut receiver) = mpsc::channel(SLOTS);
    let begin = Instant::now();
    let producer = |number| {
        let share = operations / 8 + u64::from(number < operations % 8);
        let sender = sender.clone();
        async move {
            for number in 0..share {
                sender.send(number).await.expect("the receiver is there");
            }
        }
    };
    let handles: Vec<_> = (0..8).map(|number| tokio::spawn(producer(number))).collect();
    for _ in 0..operations {
        receiver.recv().await.expect("the sender is there");
    }
    let elapsed = begin.elapsed();
    for handle in handles {
        handle.await.expect("no task panics");
    }
    elapsed.into()
}
