//! A storm and its bystanders: tasks that unwind, and innocent ones that switch beside them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fibra_runtime::structured::Either;
use fibra_runtime::{self as fibra, CancelToken, JoinHandle, Runtime, task, timeout};

use crate::ledger::{Entry, Ledger};
use crate::tokens::Tokens;

pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Times that differ, all of them short.
pub(crate) fn brief(number: usize) -> Duration {
    Duration::from_micros(number as u64 * 37 % 200)
}

/// What one storm is watched by.
pub(crate) struct Weather {
    pub(crate) ledger: Arc<Ledger>,
    /// Panics with a message that tasks have raised, and those that were reported.
    raised: AtomicUsize,
    reported: AtomicUsize,
    over: AtomicBool,
    /// A std mutex that all innocents lock, between their switches.
    shared: Mutex<u64>,
}

/// Runs `storm` in a task beside innocent ones, on one, two and four workers, and checks what is left.
pub(crate) fn in_weather(storm: impl Fn(&Arc<Weather>) + Send + Sync) {
    for workers in [1, 2, 4] {
        let (weather, runtime) = Weather::over(workers);
        runtime.run(|| {
            let innocents: Vec<_> = (0..12).map(|number| weather.innocent(number)).collect();
            storm(&weather);
            weather.over.store(true, Ordering::SeqCst);
            innocents.into_iter().for_each(|innocent| innocent.join().expect("an innocent"));
        });
        runtime.shutdown();
        weather.check();
        assert!(*weather.shared.lock().expect("not poisoned") > 0, "the innocents have run");
    }
}

impl Weather {
    /// A runtime whose panics it hears of.
    pub(crate) fn over(workers: usize) -> (Arc<Weather>, Runtime) {
        let weather = Arc::new(Weather {
            ledger: Arc::default(),
            raised: AtomicUsize::new(0),
            reported: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            shared: Mutex::new(0),
        });
        let hears = Arc::clone(&weather);
        let runtime = Runtime::builder().workers(workers).on_task_panic(move |panic| hears.report(panic));
        (weather, runtime.build().expect("a runtime"))
    }

    /// Raises a panic with a message.
    pub(crate) fn panic(&self) -> ! {
        self.expect_panic();
        panic!("in the storm")
    }

    /// Says that a panic of a task comes, which is to be reported.
    pub(crate) fn expect_panic(&self) {
        self.raised.fetch_add(1, Ordering::SeqCst);
    }

    fn report(&self, panic: &fibra::TaskPanic<'_>) {
        self.reported.fetch_add(1, Ordering::SeqCst);
        if !matches!(panic.message(), Some("in the storm" | "a task of the scope panicked")) {
            eprintln!("{panic:?}");
            self.ledger.wrong(format!("{panic:?}"));
        }
    }

    pub(crate) fn check(&self) {
        self.ledger.check();
        let (raised, reported) = (self.raised.load(Ordering::SeqCst), self.reported.load(Ordering::SeqCst));
        assert_eq!(reported, raised, "each panic is reported once");
    }

    pub(crate) fn unwinds(self: &Arc<Self>, number: usize) -> Unwinds {
        Unwinds {
            weather: Arc::clone(self),
            number,
            entered: AtomicBool::new(false),
            _entry: self.ledger.entry_of_a_task(),
        }
    }

    fn innocent(self: &Arc<Self>, number: usize) -> JoinHandle<()> {
        let weather = Arc::clone(self);
        match number % 4 {
            0 => fibra::spawn_local(move || weather.stay_innocent(number)),
            // SAFETY: no guard and no other thing of a thread is kept over a switch.
            1 => unsafe { task::Builder::new().migratable() }.spawn(move || weather.wander_innocently()),
            _ => fibra::spawn(move || weather.stay_innocent(number)),
        }
    }

    fn see(&self, what: &str) {
        if thread::panicking() {
            self.ledger.wrong(format!("{what} sees a panic that is not its own"));
        }
        match self.shared.lock() {
            Ok(mut shared) => *shared += 1,
            Err(_) => self.ledger.wrong(format!("{what} finds a mutex poisoned")),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Holds a std mutex of its own over each switch, and panics by itself now and then.
    fn stay_innocent(self: Arc<Self>, number: usize) {
        let own = Mutex::new(0_u64);
        let mut rounds = number;
        while !self.is_over() {
            let mut held = own.lock().expect("an innocent's own mutex");
            match rounds % 5 {
                0 => fibra::sleep(brief(rounds)),
                1 => fibra::spawn(|| assert!(!thread::panicking())).join().expect("an innocent child"),
                _ => fibra::yield_now(),
            }
            *held += 1;
            drop(held);
            self.see("an innocent");
            rounds += 1;
            if rounds.is_multiple_of(64) {
                let weather = Arc::clone(&self);
                let unlucky = fibra::spawn(move || weather.panic());
                assert!(unlucky.join().map(drop).expect_err("it panics").is_panic());
                let caught = catch_unwind(AssertUnwindSafe(|| self.panic()));
                assert!(caught.is_err());
                self.see("one that has panicked itself");
            }
        }
    }

    fn wander_innocently(self: Arc<Self>) {
        let mut rounds = 0;
        while !self.is_over() {
            match rounds % 3 {
                0 => fibra::sleep(brief(rounds)),
                _ => fibra::yield_now(),
            }
            self.see("a migratable innocent");
            rounds += 1;
        }
    }
}

/// Waits in its destructor, in a way that its number chooses, and looks whether the panic that runs it is there before and
/// after.
pub(crate) struct Unwinds {
    weather: Arc<Weather>,
    pub(crate) number: usize,
    /// From then on nothing but a panic drops it.
    entered: AtomicBool,
    _entry: Entry,
}

impl Unwinds {
    pub(crate) fn enter(&self) {
        self.entered.store(true, Ordering::SeqCst);
    }
}

impl Drop for Unwinds {
    fn drop(&mut self) {
        let unwinding = thread::panicking();
        if self.entered.load(Ordering::SeqCst) && !unwinding {
            self.weather.ledger.wrong("a destructor that runs in a panic does not see it");
        }
        for step in 0..2 {
            let what = dawdle(&self.weather, self.number + step * 5);
            if thread::panicking() != unwinding {
                self.weather.ledger.wrong(format!("after {what} panicking is {}", !unwinding));
            }
        }
    }
}

/// Waits in one of all the ways that there are, and says in which.
fn dawdle(weather: &Arc<Weather>, number: usize) -> &'static str {
    let child = || {
        fibra::yield_now();
        weather.see("a child of a destructor");
    };
    match number % 14 {
        0 => {
            fibra::sleep(brief(number));
            "a sleep"
        }
        1 => {
            let weather = Arc::clone(weather);
            _ = fibra::spawn(move || weather.see("a task of a destructor")).join();
            "a join"
        }
        2 => {
            let me = task::current();
            drop(fibra::Handle::current().spawn_blocking(move || me.unpark()));
            // Where the runtime ends, no task unparks.
            _ = task::park_timeout(Duration::from_millis(5));
            "a park"
        }
        3 => {
            fibra::unblock(|| weather.see("the blocking pool"));
            "an unblock"
        }
        4 => {
            fibra::scope(|s| (0..3).for_each(|_| drop(s.spawn(child))));
            "a scope"
        }
        5 => {
            let cut_short = timeout(brief(number), || fibra::sleep(brief(number) * 2));
            assert!(cut_short.is_ok() || !thread::panicking(), "an unwinding is not cut short");
            "a timeout"
        }
        6 => {
            let token = CancelToken::new();
            let whole = token.scope(|| {
                token.cancel();
                fibra::yield_now();
            });
            assert!(whole.is_ok() || !thread::panicking(), "an unwinding is not cut short");
            "a token"
        }
        7 => {
            let tokens = Tokens::new();
            fibra::scope(|s| {
                s.spawn(|| tokens.release());
                // Where the runtime ends, no task releases.
                _ = tokens.acquire(Some(std::time::Instant::now() + brief(number)));
            });
            "a wait"
        }
        8 => {
            let inner = catch_unwind(AssertUnwindSafe(|| {
                let inner = weather.unwinds(number / 14);
                inner.enter();
                resume_unwind(Box::new("one more"))
            }));
            assert!(inner.is_err());
            "a panic within"
        }
        9 => {
            task::on_big_stack(512 << 10, fibra::yield_now);
            "a big stack"
        }
        10 => {
            let won = fibra::race(child, || fibra::sleep(LONG));
            assert_eq!(won, Either::Left(()));
            "a race"
        }
        11 => {
            // A job that no worker takes runs right here, in the panic.
            _ = fibra::join(|| fibra::sleep(brief(number)), fibra::yield_now);
            "two beside each other"
        }
        12 => {
            fibra::parallel_for(0..8, |_| fibra::yield_now());
            "a loop"
        }
        _ => {
            fibra::yield_now();
            "a yield"
        }
    }
}
