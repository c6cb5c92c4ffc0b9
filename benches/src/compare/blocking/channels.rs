//! crossbeam-channel and flume, whose channels differ in name only.

/// Asks the questions of the crate `$crate_name`, in a module of its own, as the library `$library`.
macro_rules! channels_of {
    ($crate_name:ident as $library:ident in $module:ident, of $one:ident and $other:ident: $choice:expr) => {
        pub(in crate::compare) use $module::$library;

        mod $module {
            use $crate_name::{Receiver, Sender, bounded, unbounded};

            use super::super::Tasks;
            use super::super::asked::alone::Deed;
            use super::super::asked::library::{self, Library, Thing};
            use super::super::asked::pairs::{Channel, Choice, Oneshot};
            use crate::compare::primitives::question::{Question, SLOTS};

            /// The library.
            pub(in crate::compare) struct $library;

            impl<T: Tasks> Library<T> for $library {
                const THINGS: &'static [Thing] = &[
                    library::one_slot::<Bounded<1>>,
                    library::no_slot::<Bounded<0>>,
                    library::slots::<Bounded<SLOTS>>,
                    library::more_slots::<T, Bounded<SLOTS>>,
                    library::unbounded::<Unbounded>,
                    library::select::<T, Bounded<SLOTS>>,
                    library::oneshot::<Bounded<SLOTS>, Bounded<1>>,
                    library::deed::<(Sender<u64>, Receiver<u64>)>,
                ];
            }

            channels! {
                Bounded[SLOTS] = Sender, Receiver, bounded(SLOTS);
                Unbounded = Sender, Receiver, unbounded();
            }
            oneshot!(Bounded<1> = Sender<u64>, Receiver<u64>, bounded(1), |to, message| to.send(message), |from| from.recv());

            deeds! { EmptyLook: (Sender<u64>, Receiver<u64>) = bounded(SLOTS), |ends| ends.1.try_recv(); }

            impl<const SLOTS: usize> Choice for Bounded<SLOTS> {
                #[inline(always)]
                fn receive_either($one: &mut Receiver<u64>, $other: &mut Receiver<u64>) -> u64 {
                    let ($one, $other) = (&*$one, &*$other);
                    $choice.expect("the senders are there")
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
