//! What must not compile. Each block is a test, and fails by the very error that it names.
//!
//! # A primitive outlives its waiters
//!
//! A waiter borrows the primitive, and so does a closure that will wait:
//! ```compile_fail,E0505
//! let event = fibra_sync::AutoResetEvent::new(false);
//! let waits = || drop(event.wait());
//! drop(event);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let event = fibra_sync::ManualResetEvent::new(false);
//! let waits = || drop(event.wait());
//! drop(event);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let event = fibra_sync::CountdownEvent::new(1);
//! let waits = || drop(event.wait());
//! drop(event);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let group = fibra_sync::WaitGroup::new();
//! let waits = || drop(group.wait());
//! drop(group);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let barrier = fibra_sync::Barrier::new(2);
//! let waits = || drop(barrier.wait());
//! drop(barrier);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let semaphore = fibra_sync::Semaphore::new(0);
//! let waits = || drop(semaphore.acquire());
//! drop(semaphore);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let once = fibra_sync::Once::new();
//! let waits = || drop(once.wait());
//! drop(once);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let cell = fibra_sync::OnceCell::<u8>::new();
//! let waits = || drop(cell.wait());
//! drop(cell);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let mutex = fibra_sync::Mutex::new(0);
//! let waits = || drop(mutex.lock());
//! drop(mutex);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let mutex = fibra_sync::ReentrantMutex::new(0);
//! let waits = || drop(mutex.lock());
//! drop(mutex);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::RwLock::new(0);
//! let waits = || drop(lock.read());
//! drop(lock);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let (mutex, condvar) = (fibra_sync::Mutex::new(0), fibra_sync::Condvar::new());
//! let waits = || condvar.wait(&mut mutex.lock());
//! drop(condvar);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! A task that owns what it keeps shares it, or has it for itself:
//! ```compile_fail,E0373
//! let event = fibra_sync::ManualResetEvent::new(false);
//! fibra_runtime::spawn(|| event.wait());
//! ```
//! The ends of a channel are borrowed by what waits at them:
//! ```compile_fail,E0505
//! let (_sender, receiver) = fibra_sync::channel::unbounded::<u8>();
//! let mut messages = receiver.iter();
//! drop(receiver);
//! messages.next();
//! ```
//! ```compile_fail,E0505
//! let (_sender, receiver) = fibra_sync::channel::unbounded::<u8>();
//! let waits = || drop(receiver.recv());
//! drop(receiver);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let (sender, _receiver) = fibra_sync::channel::bounded(0);
//! let waits = || drop(sender.send(1));
//! drop(sender);
//! fibra_runtime::scope(|s| _ = s.spawn(waits));
//! ```
//! ```compile_fail,E0505
//! let (_sender, receiver) = fibra_sync::channel::unbounded::<u8>();
//! let mut select = fibra_sync::channel::Select::new();
//! select.recv(&receiver);
//! drop(receiver);
//! select.select();
//! ```
//! A selected operation sends what lives as long as the messages of its channel:
//! ```compile_fail,E0597
//! let (sender, receiver) = fibra_sync::channel::bounded::<&'static str>(1);
//! let mut select = fibra_sync::channel::Select::new();
//! select.send(&sender);
//! {
//!     let word = String::from("gone");
//!     _ = select.select().send(&sender.clone(), &word);
//! }
//! _ = receiver.recv();
//! ```
//! What is borrowed of a watched value is so of its receiver:
//! ```compile_fail,E0505
//! let (_sender, receiver) = fibra_sync::watch::channel(1);
//! let seen = receiver.borrow();
//! drop(receiver);
//! drop(seen);
//! ```
//!
//! # Nothing goes while it is locked, held or lent
//!
//! ```compile_fail,E0597
//! let guard = {
//!     let mutex = fibra_sync::Mutex::new(0);
//!     let guard = mutex.lock();
//!     guard
//! };
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::Mutex::new(0);
//! let guard = lock.lock();
//! drop(lock);
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::ReentrantMutex::new(0);
//! let guard = lock.lock();
//! drop(lock);
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.read();
//! drop(lock);
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.write();
//! drop(lock);
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.upgradable_read();
//! drop(lock);
//! drop(guard);
//! ```
//! ```compile_fail,E0505
//! let semaphore = fibra_sync::Semaphore::new(1);
//! let permit = semaphore.acquire();
//! drop(semaphore);
//! drop(permit);
//! ```
//! ```compile_fail,E0505
//! let group = fibra_sync::WaitGroup::new();
//! let worker = group.worker();
//! drop(group);
//! drop(worker);
//! ```
//! ```compile_fail,E0505
//! let cell = fibra_sync::OnceCell::new();
//! let value = cell.get_or_init(|| 1);
//! drop(cell);
//! assert_eq!(*value, 1);
//! ```
//! ```compile_fail,E0505
//! let mutex = fibra_sync::Mutex::new((1, 2));
//! let half = fibra_sync::MutexGuard::map(mutex.lock(), |pair| &mut pair.0);
//! drop(mutex);
//! drop(half);
//! ```
//! What is lent goes no further than the guard:
//! ```compile_fail,E0505
//! let mutex = fibra_sync::Mutex::new(String::new());
//! let guard = mutex.lock();
//! let text: &str = &guard;
//! drop(guard);
//! println!("{text}");
//! ```
//! ```compile_fail,E0594
//! let lock = fibra_sync::RwLock::new(0);
//! *lock.read() = 1;
//! ```
//! ```compile_fail,E0594
//! let mutex = fibra_sync::ReentrantMutex::new(0);
//! *mutex.lock() = 1;
//! ```
//! ```compile_fail,E0308
//! let lock = fibra_sync::RwLock::new(0);
//! fibra_sync::RwLockUpgradableReadGuard::upgrade(lock.read());
//! ```
//!
//! # Guards stay with their task
//!
//! ```compile_fail,E0277
//! let lock = fibra_sync::Mutex::new(0);
//! let guard = lock.lock();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//! ```compile_fail,E0277
//! let lock = fibra_sync::ReentrantMutex::new(0);
//! let guard = lock.lock();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//! ```compile_fail,E0277
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.read();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//! ```compile_fail,E0277
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.write();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//! ```compile_fail,E0277
//! let lock = fibra_sync::RwLock::new(0);
//! let guard = lock.upgradable_read();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//! ```compile_fail,E0277
//! let mutex = fibra_sync::Mutex::new((1, 2));
//! let half = fibra_sync::MutexGuard::map(mutex.lock(), |pair| &mut pair.0);
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(half)));
//! ```
//! ```compile_fail,E0277
//! let mutex = std::sync::Arc::new(fibra_sync::Mutex::new(0));
//! let guard = mutex.lock_arc();
//! fibra_runtime::spawn(move || drop(guard));
//! ```
//!
//! # What is shared may be shared
//!
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::Mutex<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::RwLock<std::cell::Cell<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::ReentrantMutex<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::OnceCell<std::cell::Cell<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::LazyLock<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::channel::Sender<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::oneshot::Receiver<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::broadcast::Sender<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//! ```compile_fail,E0277
//! fn shared(_: impl Send + Sync) {}
//! fn of(one: fibra_sync::watch::Sender<std::rc::Rc<u8>>) {
//!     shared(one);
//! }
//! ```
//!
//! # What a panic may leave half changed is not unwind safe
//!
//! ```compile_fail,E0277
//! fn safe(_: impl std::panic::UnwindSafe) {}
//! safe(&fibra_sync::Mutex::new(0));
//! ```
//! ```compile_fail,E0277
//! fn safe(_: impl std::panic::UnwindSafe) {}
//! safe(&fibra_sync::ReentrantMutex::new(0));
//! ```
//! ```compile_fail,E0277
//! fn safe(_: impl std::panic::UnwindSafe) {}
//! safe(&fibra_sync::RwLock::new(0));
//! ```
//!
//! # What a select cannot wait for
//!
//! The error names the cases that there are, also for what is behind a pointer:
//! ```compile_fail,E0277
//! let lock = fibra_sync::Mutex::new(0);
//! fibra_sync::select! {
//!     wait(lock) => {}
//! }
//! ```
//! ```compile_fail,E0277
//! let signal = std::sync::Arc::new(String::new());
//! fibra_sync::select_biased! {
//!     wait(signal) => {}
//!     default => {}
//! }
//! ```
//! ```compile_fail,E0277
//! let lock = fibra_sync::Mutex::new(0);
//! fibra_sync::channel::Select::new().wait(&lock);
//! ```
//!
//! # What is used up is gone
//!
//! ```compile_fail,E0382
//! let semaphore = fibra_sync::Semaphore::new(1);
//! let permit = semaphore.acquire();
//! permit.forget();
//! drop(permit);
//! ```
//! ```compile_fail,E0382
//! let (sender, _receiver) = fibra_sync::oneshot::channel();
//! _ = sender.send(1);
//! _ = sender.send(2);
//! ```

#![forbid(unsafe_code)]
