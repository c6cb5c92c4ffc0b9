//! What `select!` and `select_biased!` take, and which arm they run.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use crate::channels::{KINDS, anywhere, make, ms};
use crate::common::{everywhere, pause};
use fibra_sync::channel::{
    Receiver, RecvError, SendError, Sender, TryRecvError, after, bounded, never, unbounded,
};
use fibra_sync::{select, select_biased};

#[test]
fn the_arm_that_is_ready_is_run() {
    everywhere(|| {
        for ready in 0..5 {
            let channels: Vec<_> = (0..5).map(|_| unbounded()).collect();
            channels[ready].0.send(ready).unwrap();
            let arm = |index: usize| &channels[index].1;
            let (chosen, received) = select! {
                recv(arm(0)) -> received => (0, received),
                recv(arm(1)) -> received => (1, received),
                recv(arm(2)) -> received => (2, received),
                recv(arm(3)) -> received => (3, received),
                recv(arm(4)) -> received => (4, received),
            };
            assert_eq!((chosen, received), (ready, Ok(ready)));
        }
    });
}

#[test]
fn an_arm_that_becomes_ready_ends_the_wait() {
    anywhere(|other| {
        for kind in KINDS {
            let ((sender, receiver), (_kept, quiet)) = (make(kind), make::<i32>(kind));
            let sending = other.runs(move || {
                pause();
                sender.send(2).unwrap();
            });
            select! {
                recv(quiet) -> _ => panic!("no sender is there"),
                recv(receiver) -> received => assert_eq!(received, Ok(2)),
                default(ms(60_000)) => panic!("too late"),
            }
            sending.join();
            let (sender, receiver) = bounded(0);
            let receiving = other.runs(move || {
                pause();
                receiver.recv()
            });
            let (full, _receiver) = bounded(0);
            select! {
                send(sender, 1) -> sent => sent.unwrap(),
                send(full, 2) -> _ => panic!("no receiver is there"),
                default(ms(60_000)) => panic!("too late"),
            }
            assert_eq!(receiving.join(), Ok(1));
        }
    });
}

#[test]
fn a_channel_that_ends_is_ready() {
    anywhere(|other| {
        for kind in KINDS {
            let ((sender, receiver), (_kept, quiet)) = (make::<i32>(kind), make::<i32>(kind));
            let ending = other.runs(move || {
                pause();
                drop(sender);
            });
            select! {
                recv(receiver) -> received => assert_eq!(received, Err(RecvError)),
                recv(quiet) -> _ => panic!("it has not ended"),
                default(ms(60_000)) => panic!("too late"),
            }
            ending.join();
            select! {
                recv(receiver) -> received => assert_eq!(received, Err(RecvError)),
                default => panic!("it stays ready"),
            }
            let (sender, receiver) = make(kind);
            drop(receiver);
            select! {
                send(sender, 7) -> sent => assert_eq!(sent, Err(SendError(7))),
                default => panic!("an ended channel is ready to send"),
            }
            select! {
                send(sender, 8) -> sent => assert_eq!(sent, Err(SendError(8))),
                default(ms(60_000)) => panic!("an ended channel is ready to send"),
            }
        }
    });
}

#[test]
fn default_is_run_when_nothing_is_ready() {
    everywhere(|| {
        for kind in KINDS {
            let (_sender, receiver) = make::<i32>(kind);
            select! {
                recv(receiver) -> _ => panic!("nothing was sent"),
                default => {}
            }
            let start = Instant::now();
            select! {
                recv(receiver) -> _ => panic!("nothing was sent"),
                default(ms(3)) => assert!(start.elapsed() >= ms(3)),
            }
        }
        for capacity in [0, 1, 3] {
            let (sender, _receiver) = bounded(capacity);
            (0..capacity).for_each(|_| sender.send(0).unwrap());
            select! {
                send(sender, 1) -> _ => panic!("it is full"),
                default() => {}
            }
            select! {
                send(sender, 1) -> _ => panic!("it is full"),
                default(ms(1)) => {}
            }
        }
    });
}

#[test]
fn default_alone_runs_at_once_or_after_its_time() {
    everywhere(|| {
        select! { default => {} }
        select! { default() => {}, }
        let start = Instant::now();
        select! { default(ms(3)) => assert!(start.elapsed() >= ms(3)) }
    });
}

#[test]
fn its_own_other_end_does_not_make_an_arm_ready() {
    everywhere(|| {
        let (sender, receiver) = bounded(0);
        select! {
            send(sender, 0) -> _ => panic!("no receiver is there"),
            recv(receiver) -> _ => panic!("no sender is there"),
            default(ms(3)) => {}
        }
        select! {
            recv(receiver) -> _ => panic!("no sender is there"),
            send(sender, 0) -> _ => panic!("no receiver is there"),
            default => {}
        }
        let (sender, receiver) = unbounded();
        select! {
            send(sender, 0) -> sent => sent.unwrap(),
            recv(receiver) -> _ => panic!("nothing was sent yet"),
        }
        assert_eq!(receiver.try_recv(), Ok(0));
    });
}

#[test]
fn an_operation_may_stand_in_several_arms() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        let mut hit = [false; 4];
        while hit.contains(&false) {
            select! {
                recv(receiver) -> _ => hit[0] = true,
                recv(receiver) -> _ => hit[1] = true,
                send(sender, 0) -> _ => hit[2] = true,
                send(sender, 0) -> _ => hit[3] = true,
            }
        }
    });
}

#[test]
fn an_arm_may_select_again() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        select! {
            send(sender, 0) -> _ => select! {
                recv(receiver) -> received => {
                    assert_eq!(received, Ok(0));
                    select! {
                        send(sender, 1) -> _ => select! {
                            recv(receiver) -> received => assert_eq!(received, Ok(1)),
                        },
                    }
                }
            },
        }
    });
}

#[test]
fn commas_may_trail_and_the_time_of_a_default_may_be_left_out() {
    everywhere(|| {
        let (sender, receiver) = bounded(1);
        let chosen = select! {
            send(sender, 1,) -> sent => sent.is_ok(),
            default() => false,
        };
        assert!(chosen);
        let chosen = select! {
            send(sender, 2,) -> _ => 0,
            recv(receiver,) -> received => received.unwrap(),
            default(ms(60_000),) => 3,
        };
        assert_eq!(chosen, 1);
        select! {
            recv(receiver) -> _ => panic!("empty"),
            default() => {}
        }
    });
}

#[test]
fn it_is_an_expression_of_its_arms_type() {
    everywhere(|| {
        let (sender, receiver) = unbounded::<i32>();
        let mut words = (0..3).map(|step| -> String {
            select! {
                recv(if step == 0 { never() } else { receiver.clone() }) -> _ => "received".into(),
                send(if step == 0 { sender.clone() } else { bounded_full() }, 0) -> _ => "sent".to_owned(),
                default => "neither".to_string(),
            }
        });
        assert_eq!(
            [words.next(), words.next(), words.next()].map(Option::unwrap),
            ["sent", "received", "neither"]
        );
        // Arms that do not return fit any type.
        let number = select! {
            recv(receiver) -> _ => panic!("empty"),
            recv(receiver) -> received => match received { Ok(_) => 3.0, Err(_) => 4.0 },
            recv(receiver) -> received => if received.is_ok() { 1.0 } else { 2.0 },
            default => 7.,
        };
        assert_eq!(number, 7.0);
    });
}

/// A sender that is never ready: of a rendezvous whose receiver is leaked.
fn bounded_full() -> Sender<i32> {
    let (sender, receiver) = bounded(0);
    std::mem::forget(receiver);
    sender
}

#[test]
fn an_arm_may_break_return_or_use_the_question_mark() {
    fn first(receiver: &Receiver<i32>, quiet: &Receiver<i32>) -> Result<i32, RecvError> {
        loop {
            select! {
                recv(receiver) -> received => match received? {
                    0 => continue,
                    1 => break,
                    number => return Ok(number),
                },
                recv(quiet) -> received => return received,
            }
        }
        Ok(-1)
    }
    everywhere(|| {
        let ((sender, receiver), (_kept, quiet)) = (unbounded(), unbounded());
        [0, 0, 5, 1].into_iter().for_each(|number| sender.send(number).unwrap());
        drop(sender);
        assert_eq!(first(&receiver, &quiet), Ok(5));
        assert_eq!(first(&receiver, &quiet), Ok(-1));
        assert_eq!(first(&receiver, &quiet), Err(RecvError));
    });
}

#[test]
fn handles_are_taken_by_value_by_reference_and_through_deref() {
    struct Wrapped<T>(T);
    impl<T> Deref for Wrapped<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.0
        }
    }
    everywhere(|| {
        let (sender, receiver) = unbounded::<i32>();
        select! { send(&&&&sender, 0) -> _ => {} }
        select! { recv(&&&&receiver) -> received => assert_eq!(received, Ok(0)) }
        let (boxed, unboxed) = (Box::new(sender.clone()), Box::new(receiver.clone()));
        select! { send(*boxed, 1) -> _ => {} }
        select! { recv(*unboxed) -> received => assert_eq!(received, Ok(1)) }
        let (wrapped, unwrapped) = (Wrapped(sender.clone()), Wrapped(receiver.clone()));
        select! { send(wrapped, 2) -> _ => {}, default => panic!("ready") }
        select! { recv(unwrapped) -> received => assert_eq!(received, Ok(2)), default => panic!("ready") }
        let (sender, receiver) = (move || sender, move || receiver);
        select! { send(sender(), 3) -> _ => {} }
        select! { recv(receiver()) -> received => assert_eq!(received, Ok(3)) }
    });
}

#[test]
fn arms_may_consume_what_they_capture() {
    everywhere(|| {
        let (sender, receiver) = unbounded::<String>();
        let (word, other, another) = (String::from("a"), String::from("b"), String::from("c"));
        select! {
            send(sender, word) -> _ => drop(other),
            recv(receiver) -> _ => drop(another),
        }
        let (other, another) = (String::from("b"), String::from("c"));
        select! {
            recv(receiver) -> received => drop((received, other)),
            default => drop(another),
        }
        let once = || (receiver, ());
        select! { recv({ once().0 }) -> received => drop(received), default => {} }
    });
}

#[test]
fn results_have_the_types_of_send_and_recv_and_names_may_be_shadowed() {
    everywhere(|| {
        let ((s, _), (_, r)) = (bounded::<i32>(0), bounded::<i32>(0));
        select! {
            recv(r) -> r => { let _: Result<i32, RecvError> = r; }
            send(s, 0) -> s => { let _: Result<(), SendError<i32>> = s; }
            default(ms(0),) => {},
        }
        select! {
            recv(r,) -> mut received => { received = Ok(1); assert_eq!(received, Ok(1)); },
            send(s, 0,) -> _ => {},
        }
    });
}

#[test]
fn message_types_are_inferred() {
    everywhere(|| {
        let (sender, receiver) = unbounded();
        select! { recv(receiver) -> _ => {}, default => {} }
        sender.send(()).unwrap();
        let (sender, receiver) = unbounded();
        select! { send(sender, 1_u8) -> _ => {} }
        assert_eq!(receiver.recv(), Ok(1));
        let (sender, _receiver) = bounded::<Box<dyn std::any::Any>>(1);
        select! {
            send(sender, Box::new(1)) -> _ => {},
            send(sender, Box::new("two")) -> _ => {},
            default => {}
        }
    });
}

#[test]
fn handles_are_evaluated_once_and_only_the_chosen_message_is() {
    everywhere(|| {
        let ((sender, receiver), (full, _receiver)) = (bounded::<i32>(1), bounded::<i32>(0));
        let (handles, messages) = (Cell::new(0), Cell::new(0));
        let counted = |sender| {
            handles.set(handles.get() + 1);
            sender
        };
        let message = |number| {
            messages.set(messages.get() + 1);
            number
        };
        select! {
            send(counted(&full), message(1)) -> _ => panic!("full"),
            send(counted(&sender), message(2)) -> sent => sent.unwrap(),
        }
        assert_eq!((handles.take(), messages.take(), receiver.recv()), (2, 1, Ok(2)));
        select! {
            send(counted(&full), message(3)) -> _ => panic!("full"),
            default(ms(1)) => {}
        }
        assert_eq!((handles.take(), messages.take()), (1, 0));
    });
}

#[test]
fn a_panic_of_a_handle_or_an_arm_leaves_the_channels_usable() {
    everywhere(|| {
        for kind in [Some(1), Some(5), None] {
            let (sender, receiver) = make::<i32>(kind);
            let bomb = || -> &Receiver<i32> { std::panic::resume_unwind(Box::new("bomb")) };
            let caught = catch_unwind(AssertUnwindSafe(|| {
                select! { send(sender, 1) -> _ => {}, recv(bomb()) -> _ => {} }
            }));
            assert!(caught.is_err());
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty), "nothing was sent");
            let caught = catch_unwind(AssertUnwindSafe(|| {
                select! { send(sender, 2) -> _ => std::panic::resume_unwind(Box::new("bomb")) }
            }));
            assert!(caught.is_err());
            assert_eq!(receiver.try_recv(), Ok(2), "it was sent before the arm ran");
        }
    });
}

#[test]
fn the_biased_one_runs_the_first_that_is_ready() {
    everywhere(|| {
        let [(s1, r1), (s2, r2), (s3, r3)] = [unbounded(), unbounded(), unbounded()];
        for _ in 0..100 {
            s1.send(()).unwrap();
            s2.send(()).unwrap();
        }
        s3.send(()).unwrap();
        let mut hits = [0; 3];
        for round in 0..200 {
            match round % 3 {
                0 => select_biased! {
                    recv(r1) -> _ => hits[0] += 1,
                    recv(r2) -> _ => hits[1] += 1,
                    recv(r3) -> _ => hits[2] += 1,
                },
                1 => select_biased! {
                    recv(r1) -> _ => hits[0] += 1,
                    recv(r2) -> _ => hits[1] += 1,
                    recv(r3) -> _ => hits[2] += 1,
                    default(ms(60_000)) => panic!("ready"),
                },
                _ => select_biased! {
                    recv(r1) -> _ => hits[0] += 1,
                    recv(r2) -> _ => hits[1] += 1,
                    recv(r3) -> _ => hits[2] += 1,
                    default() => panic!("ready"),
                },
            }
            assert_eq!(hits, [(round + 1).min(100), (round + 1_i32 - 100).max(0), 0]);
        }
        select_biased! { recv(after(ms(1))) -> _ => {}, recv(r1) -> _ => panic!("empty") }
    });
}

/// A select, of that name, of as many operations as one may have, and of what is said besides.
macro_rules! of_the_most {
    ($select:ident, $receivers:ident, $($default:tt)*) => {
        of_the_most!(@ $select, $receivers, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        ], $($default)*)
    };
    (@ $select:ident, $receivers:ident, [$($number:literal)*], $($default:tt)*) => {
        $select! {
            $(recv($receivers[$number]) -> received => received.ok().filter(|number| *number == $number),)*
            $($default)*
        }
    };
}

type Longest = fn(&[Receiver<usize>]) -> Option<usize>;

#[test]
fn as_many_operations_as_are_promised_can_be_selected() {
    let waits: [Longest; 2] =
        [|receivers| of_the_most!(select, receivers,), |receivers| of_the_most!(select_biased, receivers,)];
    let have_a_default: [Longest; 5] = [
        |receivers| of_the_most!(select, receivers, default => None),
        |receivers| of_the_most!(select_biased, receivers, default => None),
        |receivers| of_the_most!(select, receivers, default(ms(1)) => None),
        |receivers| of_the_most!(select_biased, receivers, default(ms(1)) => None),
        |receivers| {
            select! {
                recv(after(ms(0))) -> _ => of_the_most!(select, receivers, default => None),
            }
        },
    ];
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..32).map(|_| unbounded()).unzip();
    for select in waits.into_iter().chain(have_a_default) {
        for (number, sender) in senders.iter().enumerate() {
            sender.send(number).unwrap();
            assert_eq!(select(&receivers), Some(number));
        }
    }
    for select in have_a_default {
        assert_eq!(select(&receivers), None);
    }
}
