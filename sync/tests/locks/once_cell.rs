//! The promises of `OnceCell`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::common::{Side, beside, everywhere, few_or_many, give_way, in_tasks, pause, until};
use crate::future::{block_on, poll};
use crate::message::message;
use fibra_runtime::task;
use fibra_sync::OnceCell;

#[test]
fn it_is_filled_once() {
    everywhere(|| {
        let cell = OnceCell::new();
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_init(|| 92), &92);
        assert_eq!(cell.get_or_init(|| unreachable!()), &92);
        assert_eq!(cell.get(), Some(&92));
        assert_eq!(cell.set(1), Err(1));
        assert_eq!(cell.try_insert(2), Err((&92, 2)));
    });
}

#[test]
fn it_has_the_name_of_std_too() {
    static CELL: fibra_sync::OnceLock<i32> = fibra_sync::OnceLock::new();
    let cell: &OnceCell<i32> = &CELL;
    assert_eq!((cell.set(1), CELL.get()), (Ok(()), Some(&1)));
}

#[test]
fn set_and_try_insert_fill_it() {
    let cell = OnceCell::new();
    assert_eq!(cell.set(1), Ok(()));
    assert_eq!(cell.get(), Some(&1));
    let cell = OnceCell::new();
    assert_eq!(cell.try_insert(2), Ok(&2));
}

#[test]
fn its_owner_changes_and_takes_the_value() {
    let mut cell = OnceCell::new();
    assert_eq!(cell.get_mut(), None);
    assert_eq!(cell.take(), None);
    cell.set(90).unwrap();
    *cell.get_mut().unwrap() += 2;
    assert_eq!(cell.take(), Some(92));
    assert_eq!(cell.get(), None);
    cell.set(3).unwrap();
    assert_eq!(cell.into_inner(), Some(3));
    assert_eq!(OnceCell::<i32>::new().into_inner(), None);
}

#[test]
fn one_fill_serves_all_readers() {
    everywhere(|| {
        let cell = Arc::new(OnceCell::<String>::new());
        let runs = Arc::new(AtomicU32::new(0));
        let sides: Vec<_> = (0..50)
            .map(|index| {
                let (cell, runs) = (Arc::clone(&cell), Arc::clone(&runs));
                beside(move || match index % 2 {
                    0 => cell.wait().clone(),
                    _ => cell
                        .get_or_init(|| {
                            pause();
                            runs.fetch_add(1, Ordering::Relaxed);
                            String::from("value")
                        })
                        .clone(),
                })
            })
            .collect();
        assert!(sides.into_iter().all(|side| side.join() == "value"));
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_look_during_several_fills_sees_nothing_or_a_whole_value() {
    everywhere(|| {
        for _ in 0..20 {
            let cell = Arc::new(OnceCell::<String>::new());
            let lookers: Vec<_> = (0..few_or_many(4, 20))
                .map(|_| {
                    let cell = Arc::clone(&cell);
                    beside(move || {
                        until(|| cell.get().is_some());
                        cell.get().cloned()
                    })
                })
                .collect();
            let fillers = [(); 3].map(|()| {
                let cell = Arc::clone(&cell);
                beside(move || cell.set("whole".repeat(9)).is_ok())
            });
            assert_eq!(fillers.into_iter().map(Side::join).filter(|filled| *filled).count(), 1);
            let seen = Some("whole".repeat(9));
            lookers.into_iter().for_each(|looker| assert_eq!(looker.join(), seen));
        }
    });
}

#[test]
fn its_value_is_dropped_once() {
    let token = Arc::new(());
    let cell = OnceCell::new();
    assert!(cell.set(Arc::clone(&token)).is_ok());
    assert!(cell.set(Arc::clone(&token)).is_err());
    assert_eq!(Arc::strong_count(&token), 2);
    drop(cell);
    assert_eq!(Arc::strong_count(&token), 1);
    drop(OnceCell::<String>::new());
}

#[test]
fn an_error_leaves_it_empty() {
    everywhere(|| {
        let cell = OnceCell::<u32>::new();
        assert_eq!(cell.get_or_try_init(|| Err("no")), Err("no"));
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_try_init(|| Ok::<_, ()>(5)), Ok(&5));
        assert_eq!(cell.get_or_try_init(|| Err(())), Ok(&5));
    });
}

#[test]
fn a_panic_leaves_it_empty() {
    everywhere(|| {
        let cell = OnceCell::<u32>::new();
        let outcome =
            catch_unwind(AssertUnwindSafe(|| cell.get_or_init(|| std::panic::resume_unwind(Box::new(())))));
        assert!(outcome.is_err());
        assert_eq!(cell.get(), None);
        assert_eq!(cell.get_or_init(|| 7), &7);
    });
}

#[test]
fn a_failure_lets_the_next_one_try() {
    everywhere(|| {
        for _ in 0..20 {
            let cell = Arc::new((OnceCell::new(), AtomicU32::new(0)));
            let waiting = {
                let cell = Arc::clone(&cell);
                beside(move || *cell.0.wait())
            };
            let sides: Vec<_> = (0..8)
                .map(|_| {
                    let cell = Arc::clone(&cell);
                    beside(move || {
                        let make = || {
                            give_way();
                            match cell.1.fetch_add(1, Ordering::Relaxed) {
                                5 => Ok(9),
                                _ => Err(()),
                            }
                        };
                        cell.0.get_or_try_init(make).copied()
                    })
                })
                .collect();
            let full = sides.into_iter().map(|side| side.join()).filter(|outcome| *outcome == Ok(9)).count();
            assert_eq!((full, waiting.join()), (3, 9));
        }
    });
}

#[test]
fn a_failure_wakes_others_though_one_waiter_has_a_busy_worker() {
    crate::once::others_run_after_a_failure(
        OnceCell::new,
        |cell, begun| {
            let fails = || {
                begun();
                Err("on purpose")
            };
            assert!(cell.get_or_try_init(fails).is_err());
        },
        |cell, ran| _ = cell.get_or_init(ran),
    );
}

#[test]
fn a_cancel_does_not_end_an_initializer() {
    in_tasks(|| {
        let cell = Arc::new(OnceCell::new());
        let task = {
            let cell = Arc::clone(&cell);
            fibra_runtime::spawn(move || {
                cell.get_or_init(|| {
                    fibra_runtime::task::current().cancel();
                    fibra_runtime::sleep(Duration::from_millis(1));
                    11
                });
                fibra_runtime::sleep(Duration::from_secs(60));
            })
        };
        assert!(task.join().unwrap_err().is_cancelled());
        assert_eq!(cell.get(), Some(&11));
    });
}

#[test]
fn a_recursive_initialization_panics() {
    everywhere(|| {
        let cell = OnceCell::<u32>::new();
        let message = message(|| cell.get_or_init(|| *cell.get_or_init(|| 1)));
        assert!(message.contains("OnceCell"), "{message}");
        assert_eq!(cell.get_or_init(|| 2), &2);
        let cell = OnceCell::<u32>::new();
        assert!(catch_unwind(AssertUnwindSafe(|| cell.get_or_init(|| *cell.wait()))).is_err());
    });
}

#[test]
fn futures_wait_too() {
    everywhere(|| {
        let cell = OnceCell::new();
        let woken = [Arc::default(), Arc::default()];
        let mut first = Box::pin(cell.wait_async());
        let mut second = Box::pin(cell.wait_async());
        assert!(poll(first.as_mut(), &woken[0]).is_pending());
        assert!(poll(second.as_mut(), &woken[1]).is_pending());
        assert!(cell.get_or_try_init(|| Err(())).is_err());
        assert!(poll(second.as_mut(), &woken[1]).is_pending(), "it is still empty");
        drop(first);
        cell.set(3).unwrap();
        assert_eq!((woken[0].times(), woken[1].times()), (0, 1));
        assert_eq!(poll(second.as_mut(), &woken[1]), Poll::Ready(&3));
        assert_eq!(block_on(cell.wait_async()), &3);
    });
}

#[test]
fn a_future_is_woken_when_the_cell_is_filled_elsewhere() {
    everywhere(|| {
        for round in 0..50_u32 {
            let cell = Arc::new(OnceCell::new());
            let waiters = [(); 3].map(|()| {
                let cell = Arc::clone(&cell);
                beside(move || task::block_on(async { *cell.wait_async().await }))
            });
            (0..round % 5).for_each(|_| give_way());
            cell.set(round).unwrap();
            waiters.into_iter().for_each(|waiter| assert_eq!(waiter.join(), round));
        }
    });
}

#[test]
fn a_future_that_its_own_initializer_polls_panics() {
    everywhere(|| {
        let cell = OnceCell::<u32>::new();
        let message = message(|| cell.get_or_init(|| *block_on(cell.wait_async())));
        assert!(message.contains("OnceCell"), "{message}");
        assert_eq!(cell.get_or_init(|| 2), &2);
    });
}

#[test]
fn a_future_that_waits_when_its_own_initializer_polls_it_panics_and_waits_no_more() {
    everywhere(|| {
        let cell = OnceCell::<u32>::new();
        let woken = [Arc::default(), Arc::default()];
        let mut early = Box::pin(cell.wait_async());
        let mut other = Box::pin(cell.wait_async());
        assert!(poll(early.as_mut(), &woken[0]).is_pending());
        assert!(poll(other.as_mut(), &woken[1]).is_pending());
        let message = message(|| {
            cell.get_or_init(|| match poll(early.as_mut(), &woken[0]) {
                Poll::Ready(value) => *value,
                Poll::Pending => 1,
            });
        });
        assert!(message.contains("OnceCell"), "{message}");
        assert!(poll(other.as_mut(), &woken[1]).is_pending(), "it is still empty");
        assert_eq!(cell.get_or_init(|| 2), &2);
        assert_eq!((woken[0].times(), woken[1].times()), (0, 1));
        assert_eq!(poll(other.as_mut(), &woken[1]), Poll::Ready(&2));
    });
}

#[test]
fn clones_conversions_and_comparisons() {
    let empty = OnceCell::<String>::default();
    assert_eq!(empty.clone().get(), None);
    let full = OnceCell::from("text".to_owned());
    assert_eq!(full.clone(), full);
    assert_ne!(full, empty);
    assert_eq!(format!("{full:?} {empty:?}"), "OnceCell(\"text\") OnceCell(<uninit>)");
}

#[test]
fn it_may_outlive_what_its_value_borrows() {
    let cell = OnceCell::new();
    {
        let text = String::new();
        cell.set(&text).unwrap();
    }
}

#[test]
fn it_is_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>(_: T) {}
    shared::<OnceCell<String>>();
    sent(OnceCell::<String>::new().wait_async());
    static CELL: OnceCell<String> = OnceCell::new();
    assert_eq!(CELL.get(), None);
}

#[test]
fn a_wait_with_a_timeout_ends_with_the_value_or_without() {
    everywhere(|| {
        let cell = Arc::new(OnceCell::new());
        let begin = Instant::now();
        assert_eq!(cell.wait_timeout(Duration::from_millis(2)), None);
        assert!(begin.elapsed() >= Duration::from_millis(2));
        assert_eq!(cell.wait_deadline(begin), None);
        let other = Arc::clone(&cell);
        let waiter = beside(move || other.wait_timeout(Duration::MAX).copied());
        pause();
        cell.set(5).unwrap();
        assert_eq!(waiter.join(), Some(5));
        assert_eq!(cell.wait_deadline(begin), Some(&5));
    });
}
