//! The promises of `LazyLock`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::{beside, everywhere, in_tasks, pause};
use crate::message::message;
use fibra_sync::LazyLock;

#[test]
fn the_value_is_made_at_the_first_use() {
    everywhere(|| {
        let calls = AtomicU32::new(0);
        let lazy = LazyLock::new(|| {
            calls.fetch_add(1, Ordering::Relaxed);
            92
        });
        assert_eq!((calls.load(Ordering::Relaxed), LazyLock::get(&lazy)), (0, None));
        assert_eq!((*lazy - 30, *lazy - 30), (62, 62));
        assert_eq!((calls.load(Ordering::Relaxed), LazyLock::get(&lazy)), (1, Some(&92)));
    });
}

#[test]
fn a_panic_poisons_it() {
    everywhere(|| {
        let lazy: LazyLock<String> = LazyLock::new(|| panic!("kaboom"));
        assert_eq!(message(|| lazy.len()), "kaboom");
        for _ in 0..2 {
            let later = message(|| lazy.len());
            assert!(later.contains("LazyLock has been poisoned"), "{later}");
        }
        assert_eq!(LazyLock::get(&lazy), None);
    });
}

#[test]
fn a_panic_under_its_owners_hands_poisons_it() {
    let mut lazy: LazyLock<String> = LazyLock::new(|| panic!("kaboom"));
    assert_eq!(message(|| LazyLock::force_mut(&mut lazy).clear()), "kaboom");
    let uses: [fn(&mut LazyLock<String>); 2] =
        [|lazy| LazyLock::force_mut(lazy).clear(), |lazy| assert!(lazy.is_empty())];
    for used in uses {
        let later = message(|| used(&mut lazy));
        assert!(later.contains("LazyLock has been poisoned"), "{later}");
    }
    assert_eq!(LazyLock::get_mut(&mut lazy), None);
}

#[test]
fn many_first_callers_get_one_value() {
    everywhere(|| {
        let lazy = Arc::new(LazyLock::new(|| {
            pause();
            Box::new(5)
        }));
        let sides: Vec<_> = (0..50)
            .map(|_| {
                let lazy = Arc::clone(&lazy);
                beside(move || std::ptr::from_ref::<i32>(&**lazy) as usize)
            })
            .collect();
        let addresses: Vec<_> = sides.into_iter().map(|side| side.join()).collect();
        assert!(addresses.iter().all(|address| *address == addresses[0]));
    });
}

#[test]
fn a_static_one_is_used_by_all() {
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| vec!["hello", "world"]);
    fn words() -> &'static [&'static str] {
        static OTHERS: LazyLock<Vec<&str>> = LazyLock::new(|| vec!["a"]);
        &OTHERS
    }
    everywhere(|| {
        assert_eq!(WORDS.join(" "), "hello world");
        assert_eq!(words(), ["a"]);
    });
}

#[test]
fn its_owner_changes_the_value() {
    let mut lazy = LazyLock::new(|| 1);
    assert_eq!(LazyLock::get_mut(&mut lazy), None);
    *LazyLock::force_mut(&mut lazy) += 1;
    *lazy += 1;
    assert_eq!(LazyLock::get_mut(&mut lazy), Some(&mut 3));
}

#[test]
fn a_default_makes_the_default() {
    let lazy = LazyLock::<Vec<u8>>::default();
    assert_eq!(format!("{lazy:?}"), "LazyLock(<uninit>)");
    assert!(lazy.is_empty());
    assert_eq!(format!("{lazy:?}"), "LazyLock([])");
}

#[test]
fn value_and_initializer_are_dropped_once() {
    let token = Arc::new(());
    let held = Arc::clone(&token);
    let lazy = LazyLock::new(move || held);
    assert_eq!(Arc::strong_count(&token), 2);
    LazyLock::force(&lazy);
    assert_eq!(Arc::strong_count(&token), 2);
    drop(lazy);
    assert_eq!(Arc::strong_count(&token), 1);
    let held = Arc::clone(&token);
    drop(LazyLock::new(move || held));
    assert_eq!(Arc::strong_count(&token), 1);
}

#[test]
fn a_cancel_does_not_end_the_initializer() {
    in_tasks(|| {
        let lazy = Arc::new(LazyLock::new(|| {
            fibra_runtime::task::current().cancel();
            fibra_runtime::sleep(Duration::from_millis(1));
            3
        }));
        let task = {
            let lazy = Arc::clone(&lazy);
            fibra_runtime::spawn(move || {
                assert_eq!(**lazy, 3);
                fibra_runtime::sleep(Duration::from_secs(60));
            })
        };
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(LazyLock::get(&lazy), Some(&3));
    });
}

#[test]
fn a_recursive_initialization_panics() {
    static LAZY: LazyLock<u32> = LazyLock::new(|| *LAZY + 1);
    let message = message(|| *LAZY);
    assert!(message.contains("LazyLock that it is itself initializing"), "{message}");
}

#[test]
fn a_wait_with_a_timeout_ends_with_the_value_or_without_and_makes_none() {
    everywhere(|| {
        let lazy = Arc::new(LazyLock::new(|| {
            pause();
            5
        }));
        let begin = Instant::now();
        assert_eq!(LazyLock::wait_timeout(&lazy, Duration::from_millis(2)), None);
        assert!(begin.elapsed() >= Duration::from_millis(2));
        assert_eq!(LazyLock::wait_deadline(&lazy, begin), None);
        let other = Arc::clone(&lazy);
        let waiter = beside(move || LazyLock::wait_timeout(&other, Duration::MAX).copied());
        pause();
        assert_eq!(**lazy, 5);
        assert_eq!(waiter.join(), Some(5));
        assert_eq!(LazyLock::wait_deadline(&lazy, begin), Some(&5));
    });
}

#[test]
fn a_wait_with_a_timeout_hears_of_an_initializer_that_panics() {
    everywhere(|| {
        let lazy: Arc<LazyLock<String>> = Arc::new(LazyLock::new(|| {
            pause();
            panic!("kaboom")
        }));
        let other = Arc::clone(&lazy);
        let wait = move || LazyLock::wait_timeout(&other, Duration::MAX).is_some();
        let waiter = beside(move || message(wait));
        pause();
        assert!(catch_unwind(AssertUnwindSafe(|| lazy.len())).is_err());
        let heard = waiter.join();
        assert!(heard.contains("LazyLock has been poisoned"), "{heard}");
    });
}

#[test]
fn it_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<LazyLock<String>>();
    shared::<LazyLock<String, Box<dyn FnOnce() -> String + Send>>>();
}
