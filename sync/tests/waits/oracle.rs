//! One suite for all primitives: each serves its waiters as a queue under one lock would, whether these are tasks, threads or
//! futures, and however they leave: by a timeout, a cancel or a drop.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use fibra_runtime::{JoinHandle, spawn, yield_now};
use fibra_sync::{
    AutoResetEvent, Condvar, CountdownEvent, ManualResetEvent, Notify, Once, OnceCell, RwLock, Semaphore,
    WaitGroup, broadcast, channel, oneshot, watch,
};

use crate::common::{Dice, Side, beside_in_a_thread, guarded, pause, runtime, until};
use crate::future::Woken;

/// How a primitive serves what is given.
#[derive(Clone, Copy, PartialEq)]
enum Serves {
    /// The longest waiter. Without one, up to so many gifts are kept for arrivals.
    One { kept: usize },
    /// Every waiter that is present.
    All,
    /// Every waiter that is present or arrives later.
    AllFromNowOn,
}

/// A primitive, as the suite sees it.
#[derive(Clone)]
struct Subject {
    name: &'static str,
    serves: Serves,
    /// Waits, up to the timeout if there is one. True if it was served.
    wait: Arc<dyn Fn(Option<Duration>) -> bool + Send + Sync>,
    /// Waits as a future, if there is such a form.
    wait_async: Option<MakeFuture>,
    give: Arc<dyn Fn() + Send + Sync>,
    /// The kinds of waiters that take part together, for each script.
    scripts: Vec<&'static [Kind]>,
}

const BLOCKING: &[Kind] = &[Kind::Task, Kind::Thread];
/// For locks: a cancel does not end the wait of a task.
const THREADS: &[Kind] = &[Kind::Thread];
const FUTURES: &[Kind] = &[Kind::Future];
const MIXED: &[Kind] = &[Kind::Task, Kind::Thread, Kind::Future];

type Pinned = Pin<Box<dyn Future<Output = ()> + Send>>;
type MakeFuture = Arc<dyn Fn() -> Pinned + Send + Sync>;

impl Subject {
    fn new<T: Send + Sync + 'static>(
        name: &'static str,
        serves: Serves,
        primitive: T,
        wait: impl Fn(&T, Option<Duration>) -> bool + Send + Sync + 'static,
        give: fn(&T),
    ) -> (Self, Arc<T>) {
        let primitive = Arc::new(primitive);
        let (waits, gives) = (Arc::clone(&primitive), Arc::clone(&primitive));
        let subject = Subject {
            name,
            serves,
            wait: Arc::new(move |timeout| wait(&waits, timeout)),
            wait_async: None,
            give: Arc::new(move || give(&gives)),
            scripts: vec![BLOCKING],
        };
        (subject, primitive)
    }

    fn with_future<T: Send + Sync + 'static, F>(self, primitive: Arc<T>, wait: fn(Arc<T>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let make: MakeFuture = Arc::new(move || Box::pin(wait(Arc::clone(&primitive))));
        Subject { wait_async: Some(make), scripts: vec![MIXED], ..self }
    }
}

/// A lock that a thread holds until the first gift. From then on each waiter locks and unlocks.
struct Held<L> {
    lock: Arc<L>,
    /// The thread, and what it waits for while it holds the lock.
    holder: Mutex<Option<(mpsc::Sender<()>, thread::JoinHandle<()>)>>,
}

impl<L: Default + Send + Sync + 'static> Held<L> {
    /// `hold` calls a function while it has the lock.
    fn by(hold: fn(&L, &dyn Fn())) -> Self {
        let (lock, (release, released), (has_locked, locked)) =
            (Arc::new(L::default()), mpsc::channel(), mpsc::channel());
        let ours = Arc::clone(&lock);
        let holder = thread::spawn(move || {
            hold(&ours, &|| {
                has_locked.send(()).expect("its maker waits");
                // An error, once the sender is dropped.
                _ = released.recv();
            });
        });
        locked.recv().expect("the holder sends");
        Held { lock, holder: Mutex::new(Some((release, holder))) }
    }

    fn release(&self) {
        if let Some((release, holder)) = self.holder.lock().unwrap().take() {
            drop(release);
            holder.join().expect("no panic");
        }
    }

    fn subject(name: &'static str, hold: fn(&L, &dyn Fn()), wait: fn(&L, Duration) -> bool) -> Subject {
        let wait = move |held: &Self, timeout| wait(&held.lock, limit(timeout));
        let (subject, _) = Subject::new(name, Serves::AllFromNowOn, Self::by(hold), wait, Self::release);
        Subject { scripts: vec![THREADS], ..subject }
    }
}

/// A wait with a far deadline in place of none: a test that hangs is ended by its guard.
fn limit(timeout: Option<Duration>) -> Duration {
    timeout.unwrap_or(Duration::from_secs(3600))
}

fn subjects() -> Vec<Subject> {
    let (semaphore, own) = Subject::new(
        "semaphore",
        Serves::One { kept: usize::MAX },
        Semaphore::new(0),
        |semaphore, timeout| {
            semaphore.acquire_timeout(limit(timeout)).map(|permit| permit.forget()).is_some()
        },
        |semaphore| semaphore.add_permits(1),
    );
    let semaphore = semaphore.with_future(own, |own| async move { own.acquire_async().await.forget() });

    let (auto_reset, own) = Subject::new(
        "auto-reset event",
        Serves::One { kept: 1 },
        AutoResetEvent::new(false),
        |event, timeout| event.wait_timeout(limit(timeout)),
        AutoResetEvent::set,
    );
    let auto_reset = auto_reset.with_future(own, |own| async move { own.wait_async().await });

    let (notification, own) = Subject::new(
        "notification",
        Serves::One { kept: 1 },
        Notify::new(),
        |notify, timeout| notify.notified_timeout(limit(timeout)),
        Notify::notify_one,
    );
    let notification = notification.with_future(own, |own| async move { own.notified_async().await });

    let (notification_of_all, own) = Subject::new(
        "notification of all",
        Serves::All,
        Notify::new(),
        |notify, timeout| notify.notified_timeout(limit(timeout)),
        Notify::notify_waiters,
    );
    let notification_of_all =
        notification_of_all.with_future(own, |own| async move { own.notified_async().await });

    let (manual_reset, own) = Subject::new(
        "manual-reset event",
        Serves::AllFromNowOn,
        ManualResetEvent::new(false),
        |event, timeout| event.wait_timeout(limit(timeout)),
        ManualResetEvent::set,
    );
    let manual_reset = manual_reset.with_future(own, |own| async move { own.wait_async().await });

    let (pulse, own) = Subject::new(
        "manual-reset event, reset at once",
        Serves::All,
        ManualResetEvent::new(false),
        |event, timeout| event.wait_timeout(limit(timeout)),
        |event| {
            event.set();
            event.reset();
        },
    );
    let pulse = pulse.with_future(own, |own| async move { own.wait_async().await });

    let (countdown, own) = Subject::new(
        "countdown event",
        Serves::AllFromNowOn,
        CountdownEvent::new(1),
        |event, timeout| event.wait_timeout(limit(timeout)),
        |event| {
            if !event.is_set() {
                event.signal();
            }
        },
    );
    let countdown = countdown.with_future(own, |own| async move { own.wait_async().await });

    let group = WaitGroup::new();
    group.add(1);
    let (wait_group, own) = Subject::new(
        "wait group",
        Serves::AllFromNowOn,
        group,
        |group, timeout| group.wait_timeout(limit(timeout)),
        |group| {
            if group.count() > 0 {
                group.done();
            }
        },
    );
    let wait_group = wait_group.with_future(own, |own| async move { own.wait_async().await });

    let (once_cell, own) = Subject::new(
        "once cell",
        Serves::AllFromNowOn,
        OnceCell::new(),
        |cell, timeout| cell.wait_timeout(limit(timeout)).is_some(),
        |cell| _ = cell.set(()),
    );
    let once_cell = once_cell.with_future(own, |own| async move { _ = own.wait_async().await });

    let (once, _) = Subject::new(
        "once",
        Serves::AllFromNowOn,
        Once::new(),
        |once, timeout| once.wait_timeout(limit(timeout)),
        |once| once.call_once(|| ()),
    );

    // A waiter is the receiver of a channel of its own.
    let (oneshot, _) = Subject::new(
        "oneshot",
        Serves::One { kept: 0 },
        Mutex::new(VecDeque::new()),
        |senders, timeout| {
            let (sender, mut receiver) = oneshot::channel();
            senders.lock().unwrap().push_back(sender);
            receiver.recv_timeout(limit(timeout)).is_ok()
        },
        |senders| {
            let next = || senders.lock().unwrap().pop_front();
            while next().is_some_and(|sender| sender.send(()).is_err()) {}
        },
    );

    let mutex = Held::<fibra_sync::Mutex<()>>::subject(
        "mutex",
        |mutex, meanwhile| {
            let _guard = mutex.lock();
            meanwhile();
        },
        |mutex, timeout| mutex.try_lock_for(timeout).is_some(),
    );
    let hold: fn(&RwLock<()>, &dyn Fn()) = |lock, meanwhile| {
        let _guard = lock.write();
        meanwhile();
    };
    let readers =
        Held::subject("rwlock, readers", hold, |lock, timeout| lock.try_read_for(timeout).is_some());
    let writers =
        Held::subject("rwlock, writers", hold, |lock, timeout| lock.try_write_for(timeout).is_some());

    let condition = || (fibra_sync::Mutex::new(()), Condvar::new());
    type Condition = (fibra_sync::Mutex<()>, Condvar);
    let wait: fn(&Condition, Option<Duration>) -> bool =
        |(mutex, condvar), timeout| !condvar.wait_for(&mut mutex.lock(), limit(timeout)).timed_out();
    let one: fn(&Condition) = |(_, condvar)| _ = condvar.notify_one();
    let all: fn(&Condition) = |(_, condvar)| _ = condvar.notify_all();
    let (notify_one, _) = Subject::new("condition, one", Serves::One { kept: 0 }, condition(), wait, one);
    let (notify_all, _) = Subject::new("condition, all", Serves::All, condition(), wait, all);

    let (changed, own) = Subject::new(
        "watch",
        Serves::All,
        watch::channel(()).0,
        |sender, timeout| sender.subscribe().changed_timeout(limit(timeout)).is_ok(),
        |sender| sender.send_replace(()),
    );
    let changed = changed.with_future(own, |own| {
        let mut receiver = own.subscribe();
        async move { receiver.changed_async().await.expect("there is a sender") }
    });

    let (broadcast, own) = Subject::new(
        "broadcast",
        Serves::All,
        broadcast::channel(4).0,
        |sender, timeout| sender.subscribe().recv_timeout(limit(timeout)).is_ok(),
        |sender: &broadcast::Sender<()>| _ = sender.send(()),
    );
    let broadcast = broadcast.with_future(own, |own| {
        let mut receiver = own.subscribe();
        async move { receiver.recv_async().await.expect("there is a sender") }
    });

    let mut subjects = vec![
        semaphore,
        auto_reset,
        notification,
        notification_of_all,
        manual_reset,
        pulse,
        countdown,
        wait_group,
        once_cell,
        once,
        oneshot,
        mutex,
        readers,
        writers,
        notify_one,
        notify_all,
        changed,
        broadcast,
    ];
    type Ends = (channel::Sender<()>, channel::Receiver<()>);
    let receive: fn(&Ends, Option<Duration>) -> bool =
        |ends, timeout| ends.1.recv_timeout(limit(timeout)).is_ok();
    let give: fn(&Ends) = |ends| _ = ends.0.try_send(());
    for (name, kept, ends) in [
        ("unbounded channel, receivers", usize::MAX, channel::unbounded()),
        ("channel of 3, receivers", 3, channel::bounded(3)),
        ("rendezvous, receivers", 0, channel::bounded(0)),
    ] {
        let (subject, own) = Subject::new(name, Serves::One { kept }, ends, receive, give);
        // A waiting future is no partner for `try_send` at a rendezvous, and elsewhere has a queue of its own.
        subjects.push(match kept {
            0 => subject,
            _ => Subject {
                scripts: vec![BLOCKING, FUTURES],
                ..subject.with_future(own, |own| async move { own.1.recv_async().await.expect("connected") })
            },
        });
    }
    let send: fn(&Ends, Option<Duration>) -> bool =
        |ends, timeout| ends.0.send_timeout((), limit(timeout)).is_ok();
    let take: fn(&Ends) = |ends| _ = ends.1.try_recv();
    for (name, kept) in [("channel of 2, senders", 2), ("rendezvous, senders", 0)] {
        let ends = channel::bounded(kept);
        (0..kept).for_each(|_| ends.0.send(()).expect("connected"));
        subjects.push(Subject::new(name, Serves::One { kept }, ends, send, take).0);
    }
    subjects
}

/// The oracle: what a queue under one lock does.
struct Model {
    serves: Serves,
    kept: usize,
    is_open: bool,
    queue: VecDeque<usize>,
    outcomes: Vec<u8>,
}

const WAITS: u8 = 0;
const SERVED: u8 = 1;
const LEFT: u8 = 2;

impl Model {
    fn new(serves: Serves) -> Self {
        Model { serves, kept: 0, is_open: false, queue: VecDeque::new(), outcomes: Vec::new() }
    }

    fn arrive(&mut self) -> usize {
        let number = self.outcomes.len();
        let is_served = self.is_open || self.kept > 0;
        self.kept -= usize::from(self.kept > 0);
        self.outcomes.push(if is_served { SERVED } else { WAITS });
        if !is_served {
            self.queue.push_back(number);
        }
        number
    }

    fn give(&mut self) {
        match self.serves {
            Serves::One { kept } => match self.queue.pop_front() {
                Some(first) => self.outcomes[first] = SERVED,
                None => self.kept = self.kept.saturating_add(1).min(kept),
            },
            Serves::All | Serves::AllFromNowOn => {
                self.queue.drain(..).for_each(|number| self.outcomes[number] = SERVED);
                self.is_open = self.serves == Serves::AllFromNowOn;
            }
        }
    }

    fn leave(&mut self, number: usize) {
        self.queue.retain(|&other| other != number);
        self.outcomes[number] = LEFT;
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Task,
    Thread,
    Future,
}

enum Waiter {
    Task(JoinHandle<()>),
    Thread(Side<()>),
    Future(Option<Pinned>),
}

/// A primitive beside its oracle.
struct Trial {
    subject: Subject,
    model: Model,
    waiters: Vec<Waiter>,
    outcomes: Arc<Mutex<Vec<Arc<AtomicU8>>>>,
}

/// Notes that a waiter has left, unless it was served.
struct Note(Arc<AtomicU8>);

impl Drop for Note {
    fn drop(&mut self) {
        _ = self.0.compare_exchange(WAITS, LEFT, Ordering::SeqCst, Ordering::SeqCst);
    }
}

impl Trial {
    fn new(subject: Subject) -> Self {
        let model = Model::new(subject.serves);
        Trial { subject, model, waiters: Vec::new(), outcomes: Arc::default() }
    }

    /// Starts a waiter, and lets it come as far as it goes.
    fn arrive(&mut self, kind: Kind, timeout: Option<Duration>) -> usize {
        let outcome = Arc::new(AtomicU8::new(WAITS));
        self.outcomes.lock().unwrap().push(Arc::clone(&outcome));
        let wait = Arc::clone(&self.subject.wait);
        let waits = move || {
            let note = Note(outcome);
            if wait(timeout) {
                note.0.store(SERVED, Ordering::SeqCst);
            }
        };
        self.waiters.push(match kind {
            Kind::Task => Waiter::Task(spawn(waits)),
            Kind::Thread => Waiter::Thread(beside_in_a_thread(waits)),
            Kind::Future => Waiter::Future(self.subject.wait_async.as_ref().map(|make| make())),
        });
        self.poll();
        pause();
        self.model.arrive()
    }

    /// Polls each future that waits.
    fn poll(&mut self) {
        for (number, waiter) in self.waiters.iter_mut().enumerate() {
            if let Waiter::Future(waits) = waiter
                && let Some(future) = waits
                && future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
            {
                *waits = None;
                self.outcomes.lock().unwrap()[number].store(SERVED, Ordering::SeqCst);
            }
        }
    }

    /// Waits until the primitive has done what the oracle says.
    fn settle(&mut self, what: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = Vec::new();
        until(|| {
            self.poll();
            seen = self.outcomes.lock().unwrap().iter().map(|seen| seen.load(Ordering::SeqCst)).collect();
            seen == self.model.outcomes || Instant::now() > end
        });
        assert_eq!(seen, self.model.outcomes, "{}: {what}", self.subject.name);
    }

    fn give(&mut self) {
        (self.subject.give)();
        self.model.give();
        self.settle("a gift");
    }

    /// A waiter with a timeout that runs out, and another one behind it.
    fn time_out(&mut self, kind: Kind, behind: Kind) {
        let number = self.arrive(kind, Some(Duration::from_millis(5)));
        self.arrive(behind, None);
        if self.model.outcomes[number] == WAITS {
            self.model.leave(number);
        }
        self.settle("a timeout");
    }

    /// Ends the wait of a task by a cancel, or of a future by its drop, if `number` is one.
    fn leave(&mut self, number: usize) {
        match &mut self.waiters[number] {
            Waiter::Task(task) => task.cancel(),
            Waiter::Future(future) => drop(future.take()),
            Waiter::Thread(_) => return,
        }
        if let Waiter::Future(_) = self.waiters[number] {
            self.outcomes.lock().unwrap()[number].store(LEFT, Ordering::SeqCst);
        }
        self.model.leave(number);
        self.settle("a departure");
    }

    /// Gives to a future that is dropped before its next poll: the gift goes to the next waiter.
    fn give_to_dropped(&mut self, number: usize) {
        let Waiter::Future(future) = &mut self.waiters[number] else { return };
        if self.model.queue.front() != Some(&number) {
            return;
        }
        (self.subject.give)();
        self.model.give();
        drop(future.take());
        self.outcomes.lock().unwrap()[number].store(LEFT, Ordering::SeqCst);
        self.model.outcomes[number] = LEFT;
        if let Serves::One { .. } = self.model.serves {
            self.model.give();
        }
        self.settle("a drop after the gift");
    }

    fn end(mut self) {
        for number in 0..self.waiters.len() {
            if self.model.outcomes[number] == WAITS {
                self.leave(number);
            }
        }
        // Threads leave by nothing but a gift.
        while self.model.outcomes.contains(&WAITS) {
            self.give();
        }
        for waiter in self.waiters {
            match waiter {
                Waiter::Task(task) => _ = task.join(),
                Waiter::Thread(thread) => thread.join(),
                Waiter::Future(_) => {}
            }
        }
    }
}

/// Runs a script of random steps over a primitive and its oracle.
fn run_script(subject: Subject, kinds: &[Kind], seed: u64) {
    let mut dice = Dice::new(seed);
    let mut trial = Trial::new(subject);
    let mut pick = {
        let mut dice = Dice::new(seed + 1);
        move || kinds[dice.throw(kinds.len() as u64) as usize]
    };
    for _ in 0..24 {
        match dice.throw(8) {
            0..=2 => _ = trial.arrive(pick(), None),
            3 => {
                // A future has no timeout of its own.
                let timed = std::iter::repeat_with(&mut pick).take(16).find(|kind| *kind != Kind::Future);
                if let Some(kind) = timed {
                    trial.time_out(kind, pick());
                }
            }
            4 | 5 => trial.give(),
            6 if !trial.model.queue.is_empty() => {
                let place = dice.throw(trial.model.queue.len() as u64) as usize;
                trial.leave(trial.model.queue[place]);
            }
            7 if !trial.model.queue.is_empty() => trial.give_to_dropped(trial.model.queue[0]),
            _ => {}
        }
        trial.settle("a step");
    }
    trial.end();
}

#[test]
fn each_primitive_serves_its_waiters_as_a_queue_under_one_lock_would() {
    let all = |workers, seed| {
        let each = move |index: usize| {
            for kinds in subjects().swap_remove(index).scripts {
                run_script(subjects().swap_remove(index), kinds, seed);
            }
        };
        for index in 0..subjects().len() {
            guarded(|| runtime(workers).run(|| each(index)));
        }
    };
    // At once, since a script mostly waits until its threads are seen asleep.
    thread::scope(|threads| {
        for (workers, seed) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
            threads.spawn(move || all(workers, seed));
        }
    });
}

/// Tasks, threads and futures that come, time out, are cancelled and dropped while gifts come in: none is lost, none is made.
#[test]
fn no_gift_is_lost_or_made_by_waiters_that_leave_while_it_comes() {
    const GIFTS: usize = 2000;
    for workers in [1, 2, 4] {
        for index in 0..subjects().len() {
            let subject = subjects().swap_remove(index);
            if subject.serves != (Serves::One { kept: usize::MAX }) {
                continue;
            }
            guarded(|| runtime(workers).run(|| race(subject, GIFTS)));
        }
    }
}

fn race(subject: Subject, gifts: usize) {
    let taken = Arc::new(AtomicUsize::new(0));
    let timed = |side: u64| {
        let (subject, taken) = (subject.clone(), Arc::clone(&taken));
        move || {
            let mut dice = Dice::new(side);
            for _ in 0..400 {
                let timeout = Duration::from_micros(dice.throw(60));
                if (subject.wait)(Some(timeout)) {
                    taken.fetch_add(1, Ordering::SeqCst);
                }
            }
        }
    };
    let tasks: Vec<_> = (0..4).map(|side| spawn(timed(side))).collect();
    let threads: Vec<_> = (4..6).map(|side| beside_in_a_thread(timed(side))).collect();
    let cancelled: Vec<_> = (0..200)
        .map(|_| {
            let (subject, taken) = (subject.clone(), Arc::clone(&taken));
            spawn(move || {
                if (subject.wait)(None) {
                    taken.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    let dropped = {
        let (make, taken) = (subject.wait_async.clone().expect("it has futures"), Arc::clone(&taken));
        spawn(move || {
            for round in 0..400 {
                let woken = Arc::new(Woken::default());
                let waker = Waker::from(woken);
                let mut future = make();
                let polls = 1 + round % 3;
                let is_ready = (0..polls).any(|_| {
                    yield_now();
                    future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
                });
                if is_ready {
                    taken.fetch_add(1, Ordering::SeqCst);
                }
            }
        })
    };
    for gift in 0..gifts {
        (subject.give)();
        if gift % 10 == 0 {
            if let Some(task) = cancelled.get(gift / 10) {
                task.cancel();
            }
            yield_now();
        }
    }
    tasks.into_iter().chain([dropped]).for_each(|task| task.join().expect("no panic"));
    threads.into_iter().for_each(|thread| thread.join());
    cancelled.into_iter().for_each(|task| {
        task.cancel();
        _ = task.join();
    });
    while (subject.wait)(Some(Duration::ZERO)) {
        taken.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(taken.load(Ordering::SeqCst), gifts, "{}", subject.name);
}
