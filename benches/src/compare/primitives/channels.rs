//! What crossbeam-channel and flume have, whose channels differ in name only.

/// The two kinds of channel of whoever has `Sender`, `Receiver`, `bounded` and `unbounded` in scope.
macro_rules! channel_kinds {
    () => {
        struct Bounded<const SLOTS: usize>;

        struct Unbounded;

        impl<M: Send + 'static, const SLOTS: usize> Channel<M> for Bounded<SLOTS> {
            type Sender = Sender<M>;
            type Receiver = Receiver<M>;

            fn open() -> (Sender<M>, Receiver<M>) {
                bounded(SLOTS)
            }

            #[inline(always)]
            fn send(sender: &Sender<M>, message: M) {
                assert!(sender.send(message).is_ok(), "the receiver is there");
            }

            #[inline(always)]
            fn receive(receiver: &Receiver<M>) -> M {
                receiver.recv().expect("the sender is there")
            }
        }

        impl<M: Send + 'static> Channel<M> for Unbounded {
            type Sender = Sender<M>;
            type Receiver = Receiver<M>;

            fn open() -> (Sender<M>, Receiver<M>) {
                unbounded()
            }

            #[inline(always)]
            fn send(sender: &Sender<M>, message: M) {
                assert!(sender.send(message).is_ok(), "the receiver is there");
            }

            #[inline(always)]
            fn receive(receiver: &Receiver<M>) -> M {
                receiver.recv().expect("the sender is there")
            }
        }
    };
}

pub(super) use channel_kinds;

/// Asks the questions of the crate `$crate_name`, in a module of its own, as the library `$library`.
macro_rules! channels_of {
    ($crate_name:ident as $library:ident in $module:ident, of $one:ident and $other:ident: $choice:expr) => {
        pub(super) use $module::$library;

        mod $module {
            use $crate_name::{Receiver, Sender, bounded, unbounded};

            use super::super::library::{Library, Pair, Way};
            use super::super::pairs::{self, Channel, Choice, Oneshot};
            use super::super::question::{Question, SLOTS};
            use crate::compare::worlds::Blocking;

            /// The library.
            pub(in super::super) struct $library;

            super::channel_kinds!();

            impl Library for $library {
                fn way<T: Blocking, P: Pair>(question: Question) -> Option<Way> {
                    Some(match question {
                        Question::ChannelFree => |n| pairs::pass_freely::<Bounded<SLOTS>>(n).into(),
                        Question::Select => |n| pairs::choose::<T, Bounded<SLOTS>>(n).into(),
                        Question::PingPong(_) => |n| pairs::ping_pong::<P, Bounded<1>>(n).into(),
                        Question::Rendezvous(_) => |n| pairs::ping_pong::<P, Bounded<0>>(n).into(),
                        Question::Call(_) => |n| pairs::call::<P, Bounded<SLOTS>, Bounded<1>>(n).into(),
                        Question::Bounded(_) => |n| pairs::stream::<P, Bounded<SLOTS>>(n).into(),
                        Question::BoundedEight => |n| pairs::stream_from_eight::<T, Bounded<SLOTS>>(n).into(),
                        Question::Unbounded(_) => |n| pairs::stream::<P, Unbounded>(n).into(),
                        Question::OneshotFree => |n| pairs::reply_freely::<Bounded<1>>(n).into(),
                        Question::SelectFree => |n| pairs::choose_freely::<Bounded<SLOTS>>(n).into(),
                        _ => return None,
                    })
                }
            }

            impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
                #[inline(always)]
                fn receive_either($one: &Receiver<u64>, $other: &Receiver<u64>) -> u64 {
                    $choice.expect("the senders are there")
                }
            }

            impl Oneshot for Bounded<1> {
                type Sender = Sender<u64>;
                type Receiver = Receiver<u64>;

                fn open() -> (Sender<u64>, Receiver<u64>) {
                    bounded(1)
                }

                #[inline(always)]
                fn send(sender: Sender<u64>, message: u64) {
                    sender.send(message).expect("the receiver is there");
                }

                #[inline(always)]
                fn receive(receiver: Receiver<u64>) -> u64 {
                    receiver.recv().expect("the sender replies")
                }
            }
        }
    };
}

channels_of!(crossbeam_channel as Crossbeam in of_crossbeam, of one and other: crossbeam_channel::select! {
    recv(one) -> message => message,
    recv(other) -> message => message,
});
channels_of!(
    flume as Flume in of_flume,
    of one and other: flume::Selector::new().recv(one, |message| message).recv(other, |message| message).wait()
);
