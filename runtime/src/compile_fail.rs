//! What must not compile. Each block is a test, and fails by the very error that it names.
//!
//! # Tasks own what they keep
//!
//! A task may outlive its spawner, so it borrows nothing:
//! ```compile_fail,E0373
//! let text = String::from("here");
//! fibra_runtime::spawn(|| text.len());
//! ```
//! ```compile_fail,E0597
//! let text = String::from("here");
//! let borrowed = &text;
//! fibra_runtime::spawn(move || borrowed.len());
//! ```
//! ```compile_fail,E0373
//! let text = String::from("here");
//! fibra_runtime::spawn_local(|| text.len());
//! ```
//! ```compile_fail,E0373
//! let text = String::from("here");
//! fibra_runtime::spawn_blocking(|| text.len());
//! ```
//! Nor does a hook that goes with it:
//! ```compile_fail,E0373
//! let mut switches = 0;
//! fibra_runtime::task::Builder::new().on_switch(|_| switches += 1);
//! ```
//!
//! # What is tied to a thread stays there
//!
//! It starts on any worker, so captures and value are `Send`:
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::spawn(move || drop(shared));
//! ```
//! ```compile_fail,E0277
//! fibra_runtime::spawn(|| std::rc::Rc::new(1));
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::spawn_blocking(move || drop(shared));
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::Handle::current().spawn(move || drop(shared));
//! ```
//! ```compile_fail,E0277
//! # fn of(runtime: fibra_runtime::Runtime) {
//! let shared = std::rc::Rc::new(1);
//! runtime.run(|| drop(shared));
//! # }
//! ```
//! ```compile_fail,E0277
//! # fn of(runtime: fibra_runtime::Runtime) {
//! runtime.run(|| std::rc::Rc::new(1));
//! # }
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::task::Builder::new().on_switch(move |_| assert_eq!(*shared, 1));
//! ```
//! A lock that a thread holds is not handed to another, nor is a guard that speaks for its task:
//! ```compile_fail,E0277
//! static LOCK: std::sync::Mutex<u8> = std::sync::Mutex::new(1);
//! let guard = LOCK.lock().unwrap();
//! fibra_runtime::spawn(move || drop(guard));
//! ```
//! ```compile_fail,E0277
//! let guard = fibra_runtime::task::forbid_suspend();
//! fibra_runtime::spawn(move || drop(guard));
//! ```
//! ```compile_fail,E0277
//! let guard = fibra_runtime::task::forbid_suspend();
//! std::thread::scope(|s| _ = s.spawn(|| { let _there = &guard; }));
//! ```
//! The handle of a task that stays may go no further than its value:
//! ```compile_fail,E0277
//! let handle = fibra_runtime::spawn_local(|| std::rc::Rc::new(1));
//! fibra_runtime::spawn(move || drop(handle));
//! ```
//! A task that may change its thread is asked for with a promise:
//! ```compile_fail,E0133
//! fibra_runtime::task::Builder::new().migratable();
//! ```
//!
//! # Scopes
//!
//! What a child borrows outlives the scope:
//! ```compile_fail,E0373
//! fibra_runtime::scope(|s| {
//!     let inside = 1;
//!     s.spawn(|| inside + 1);
//! });
//! ```
//! ```compile_fail,E0597
//! fibra_runtime::scope(|s| {
//!     let inside = String::new();
//!     let borrowed = &inside;
//!     s.spawn(move || borrowed.len());
//! });
//! ```
//! While it runs, no other code changes the borrowed value or drops it:
//! ```compile_fail,E0502
//! let mut numbers = vec![1];
//! fibra_runtime::scope(|s| {
//!     s.spawn(|| numbers.push(2));
//!     numbers.len()
//! });
//! ```
//! ```compile_fail,E0499
//! let mut numbers = vec![1];
//! fibra_runtime::scope(|s| {
//!     s.spawn(|| numbers.push(2));
//!     s.spawn(|| numbers.push(3));
//! });
//! ```
//! ```compile_fail,E0505
//! let numbers = vec![1];
//! let child = || numbers.len();
//! drop(numbers);
//! fibra_runtime::scope(|s| _ = s.spawn(child));
//! ```
//! Neither the scope nor a handle leaves it:
//! ```compile_fail,E0521
//! let mut kept = None;
//! fibra_runtime::scope(|s| kept = Some(s.spawn(|| 1)));
//! ```
//! ```compile_fail,E0521
//! let mut kept = None;
//! fibra_runtime::scope(|s| kept = Some(s));
//! ```
//! ```compile_fail,E0521
//! fibra_runtime::scope(|s| {
//!     let handle = s.spawn(|| 1);
//!     fibra_runtime::spawn(move || handle.join());
//! });
//! ```
//! And children start on any worker, too:
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::scope(|s| _ = s.spawn(|| assert_eq!(*shared, 1)));
//! ```
//! ```compile_fail,E0277
//! fibra_runtime::scope(|s| _ = s.spawn(|| std::rc::Rc::new(1)));
//! ```
//! ```compile_fail,E0277
//! let count = std::cell::Cell::new(1);
//! fibra_runtime::scope(|s| _ = s.spawn(|| count.set(2)));
//! ```
//! ```compile_fail,E0277
//! let guard = fibra_runtime::task::forbid_suspend();
//! fibra_runtime::scope(|s| _ = s.spawn(move || drop(guard)));
//! ```
//!
//! # Two at once, and many
//!
//! ```compile_fail,E0277
//! fibra_runtime::join(|| (), || std::rc::Rc::new(1));
//! ```
//! ```compile_fail,E0505
//! let text = String::from("here");
//! fibra_runtime::join(|| text.len(), move || drop(text));
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::race(|| assert_eq!(*shared, 1), || ());
//! ```
//! ```compile_fail,E0277
//! fibra_runtime::race(|| (), || std::rc::Rc::new(1));
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::race! {
//!     _ = assert_eq!(*shared, 1) => (),
//!     () = fibra_runtime::task::park() => (),
//! }
//! ```
//! ```compile_fail,E0499
//! let mut buffer = [0; 8];
//! fibra_runtime::race! {
//!     () = buffer[0] = 1 => (),
//!     () = buffer[1] = 2 => (),
//! }
//! ```
//! ```compile_fail,E0277
//! let count = std::cell::Cell::new(0);
//! fibra_runtime::parallel_for(0..8, |n| count.set(n));
//! ```
//! ```compile_fail,E0277
//! let items = vec![std::rc::Rc::new(1)];
//! fibra_runtime::parallel_for_each(items, |item| drop(item));
//! ```
//! ```compile_fail,E0594
//! let mut last = 0;
//! fibra_runtime::parallel_for_each(0..8, |n| last = n);
//! ```
//! ```compile_fail,E0277
//! fibra_runtime::TaskGroup::new().spawn(|| std::rc::Rc::new(1));
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::TaskGroup::new().spawn(move || drop(shared));
//! ```
//! A group has one type of result, for spawns and for joins:
//! ```
//! fn waits_for(_: &fibra_runtime::TaskGroup<for<'a> fn(&'a str)>) {}
//! let group: fibra_runtime::TaskGroup<for<'a> fn(&'a str)> = fibra_runtime::TaskGroup::new();
//! waits_for(&group);
//! ```
//! A result that can do less does not come in by a reference, although one that can do more could stand for it:
//! ```compile_fail,E0308
//! fn adds_to(_: &fibra_runtime::TaskGroup<fn(&'static str)>) {}
//! let group: fibra_runtime::TaskGroup<for<'a> fn(&'a str)> = fibra_runtime::TaskGroup::new();
//! adds_to(&group);
//! ```
//! ```compile_fail,E0277
//! let shared = std::rc::Rc::new(1);
//! fibra_runtime::unblock(|| assert_eq!(*shared, 1));
//! ```
//!
//! # Blocks that end early
//!
//! They run in place, so they may borrow, use what is tied to the thread, and give out what they borrow:
//! ```
//! # use fibra_runtime::{self as fibra, CancelToken, task};
//! # use std::time::Duration;
//! # fibra::Runtime::builder().workers(1).build()?.run(|| {
//! let text = std::rc::Rc::new(String::from("here"));
//! assert_eq!(fibra::timeout(Duration::from_secs(1), || text.as_str()), Ok("here"));
//! assert_eq!(CancelToken::new().scope(|| text.as_str()), Ok("here"));
//! assert_eq!(task::shield(|| text.as_str()), "here");
//! assert_eq!(task::on_big_stack(1 << 20, || text.as_str()), "here");
//! assert_eq!(task::unconstrained(|| text.as_str()), "here");
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```
//! But not what ends with them:
//! ```compile_fail,E0515
//! fibra_runtime::timeout(std::time::Duration::ZERO, || String::from("here").as_str());
//! ```
//! ```compile_fail,E0521
//! let mut kept = "";
//! _ = fibra_runtime::timeout(std::time::Duration::ZERO, || {
//!     let text = String::from("here");
//!     kept = &text;
//! });
//! println!("{kept}");
//! ```
//! ```compile_fail,E0515
//! _ = fibra_runtime::CancelToken::new().scope(|| String::from("here").as_str());
//! ```
//! ```compile_fail,E0515
//! fibra_runtime::task::shield(|| String::from("here").as_str());
//! ```
//! ```compile_fail,E0515
//! fibra_runtime::task::on_big_stack(1 << 20, || String::from("here").as_str());
//! ```

#![forbid(unsafe_code)]
