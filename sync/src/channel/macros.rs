//! The select macros, which allocate nothing.
//!
//! The arms lie on the stack. `@list` brings the cases into one form; `@case` numbers them by kind.
//! `@all` makes an arm of each, inside a `match` that keeps temporaries alive, and chooses. `@done`
//! completes the chosen arm. All arms are gone before the body of a case runs, so it may move what
//! they were made of.
//!
//! The first two steps recurse once per case. The rest takes all cases at once, so that more than
//! half of the compiler's limit of recursion is left to the bodies.

#![forbid(unsafe_code)]

/// Waits for several operations, does the first that is ready, and runs its body.
///
/// | case | is |
/// | --- | --- |
/// | `recv(receiver) -> result => body` | a receive; `result` is a pattern for a `Result<T, RecvError>` |
/// | `send(sender, message) -> result => body` | a send; `result` is a pattern for a `Result<(), SendError<T>>` |
/// | `wait(event) => body` | a wait for an event or a count, or anything else that is [`Selectable`](crate::channel::Selectable) |
/// | `wait(receiver) => body` | a wait for a message of a [`oneshot`](crate::oneshot) or [`broadcast`](crate::broadcast), or a change of a [`watch`](crate::watch); then `recv` or `changed` returns at once |
/// | `wait(semaphore) -> permit => body` | a wait for a permit; `permit` is a pattern for a [`SemaphorePermit`](crate::SemaphorePermit); of a closed semaphore the select panics |
/// | `join(handle) => body` | a wait for the end of a task; then `handle.join()` returns at once |
/// | `join(handle) -> result => body` | a join; `handle` is a variable, `result` a pattern for a `Result<T, JoinError>` |
/// | `default => body` | what is done if nothing is ready |
/// | `default(timeout) => body` | what is done if nothing is ready within that time |
///
/// Cases are separated by commas, which may be left out after a body in braces. An operation is
/// ready if it need not wait, also when it fails because the channel is disconnected. There are 32
/// operations at the most; [`channel::Select`](crate::channel::Select) has no bound.
///
/// `message` is evaluated only once its case is chosen. Meanwhile room is reserved for it or, at a
/// rendezvous, a receiver is held, even beyond its own deadline. So make a message that takes long
/// before the select. If `message` panics, the reserved room or the held receiver is released.
///
/// Only the chosen case uses a set of an auto-reset event. A permit that the pattern does not take
/// is given back after the body.
///
/// A handle is borrowed by `&mut` while the select waits, and stays with its owner unless its case has a result and is chosen.
///
/// What was offered to an unchosen case goes to the next waiter: nothing is lost. The send case of
/// a select never meets a receive case of that select.
///
/// A socket, a listener or a pipe is waited for by the events of a `fibra::Readiness`:
/// `wait(ready.readable()?) => body`, whose body reads. For anything else,
/// [`race`](fn@fibra_runtime::race) it against a select, and store what was received in a variable
/// of the caller: it stays there even when the select wins.
///
/// # Deadlines
/// A `recv` case that the send case of another select has chosen waits for its message, also past a
/// `default(timeout)`.
///
/// # Cancellation
/// A cancellation point, unless there is a plain `default`. A case that is chosen when the cancel
/// comes is done.
///
/// # Panics
/// Panics when a task joins itself.
///
/// # Fairness
/// Among several ready cases all have an equal chance; [`select_biased!`](crate::select_biased)
/// chooses the first. A select has its place in the queue of a channel as any other waiter.
///
/// A chosen `send` case has room reserved for it. Where all room is reserved the case waits, even
/// beside a receiver that waits for a message: that receiver gets the message that is sent first. A
/// `message` that itself selects to send to this channel waits for the room that its own case may
/// hold.
///
/// At a rendezvous, which has no room, a chosen `send` case holds the longest waiting receiver
/// instead. That receiver takes no further message until `message` is made. Senders wait for
/// another receiver meanwhile, and a message that comes back from a dropped future stays in the
/// channel. So at a rendezvous `message` must not wait for a receive from this channel: without
/// another receiver, all would wait for ever.
///
/// # Examples
/// ```
/// use fibra_sync::{channel, select};
/// use std::time::Duration;
/// let (words, word) = channel::unbounded();
/// let (numbers, number) = channel::bounded(1);
/// words.send("hello").unwrap();
/// numbers.send(7).unwrap();
/// select! {
///     recv(word) -> message => assert_eq!(message, Ok("hello")),
///     send(numbers, 8) -> _ => unreachable!("it is full"),
///     recv(channel::after(Duration::from_secs(60))) -> _ => unreachable!("it is too early"),
/// }
/// select! {
///     recv(word) -> _ => unreachable!("it is empty"),
///     default => assert_eq!(number.recv(), Ok(7)),
/// }
/// let (stop, printers) = (fibra_sync::ManualResetEvent::new(false), fibra_sync::Semaphore::new(1));
/// select! {
///     wait(stop) => unreachable!("the event was never set"),
///     wait(printers) -> _printer => assert_eq!(printers.available_permits(), 0),
/// }
/// ```
#[macro_export]
macro_rules! select {
    () => {
        ::core::compile_error!("a select needs a case")
    };
    ($($cases:tt)+) => {
        $crate::__select!(@list (Chance) [] $($cases)+)
    };
}

/// Waits for several operations as [`select!`](crate::select), with the first case preferred.
///
/// Among several ready cases it chooses the first one in the list.
///
/// # Examples
/// ```
/// use fibra_sync::{channel, select_biased};
/// let (urgent, first) = channel::unbounded();
/// let (other, second) = channel::unbounded();
/// urgent.send("fire").unwrap();
/// other.send("lunch").unwrap();
/// select_biased! {
///     recv(first) -> message => assert_eq!(message, Ok("fire")),
///     recv(second) -> _ => unreachable!(),
/// }
/// ```
#[macro_export]
macro_rules! select_biased {
    () => {
        ::core::compile_error!("a select needs a case")
    };
    ($($cases:tt)+) => {
        $crate::__select!(@list (Listed) [] $($cases)+)
    };
}

/// The steps of [`select!`](crate::select).
#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    // All cases have the form `name (arguments) (pattern) { body }`.
    (@list $order:tt [$($cases:tt)*]) => {
        $crate::__select!(@case $order
            [(0 arm0) (1 arm1) (2 arm2) (3 arm3) (4 arm4) (5 arm5) (6 arm6) (7 arm7) (8 arm8) (9 arm9) (10 arm10)
             (11 arm11) (12 arm12) (13 arm13) (14 arm14) (15 arm15) (16 arm16) (17 arm17) (18 arm18) (19 arm19)
             (20 arm20) (21 arm21) (22 arm22) (23 arm23) (24 arm24) (25 arm25) (26 arm26) (27 arm27) (28 arm28)
             (29 arm29) (30 arm30) (31 arm31)]
            [] [] $($cases)*)
    };
    (@list $order:tt $done:tt default => $($rest:tt)*) => {
        $crate::__select!(@list $order $done default () => $($rest)*)
    };
    (@list $order:tt [$($done:tt)*]
        $case:ident ($($arguments:tt)*) $(-> $result:pat)? => { $($body:tt)* }, $($rest:tt)*
    ) => {
        $crate::__select!(@list $order
            [$($done)* $case ($($arguments)*) ($($result)?) { $($body)* }] $($rest)*)
    };
    (@list $order:tt [$($done:tt)*]
        $case:ident ($($arguments:tt)*) $(-> $result:pat)? => $body:expr, $($rest:tt)*
    ) => {
        $crate::__select!(@list $order
            [$($done)* $case ($($arguments)*) ($($result)?) { $body }] $($rest)*)
    };
    (@list $order:tt [$($done:tt)*]
        $case:ident ($($arguments:tt)*) $(-> $result:pat)? => { $($body:tt)* } $($rest:tt)*
    ) => {
        $crate::__select!(@list $order
            [$($done)* $case ($($arguments)*) ($($result)?) { $($body)* }] $($rest)*)
    };
    (@list $order:tt [$($done:tt)*]
        $case:ident ($($arguments:tt)*) $(-> $result:pat)? => $body:expr
    ) => {
        $crate::__select!(@list $order [$($done)* $case ($($arguments)*) ($($result)?) { $body }])
    };
    (@list $order:tt $done:tt $($wrong:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected cases `recv(receiver) -> result => body`, `send(sender, message) -> result => body`, \
             `wait(event) => body`, `wait(semaphore) -> permit => body`, `wait(receiver) => body`, `join(handle) => body`, \
             `join(handle) -> result => body`, `default => body` or `default(timeout) => body`, separated by commas, found `",
            ::core::stringify!($($wrong)*),
            "`",
        ))
    };

    (@case $order:tt $labels:tt $arms:tt $default:tt) => {
        $crate::__select!(@all $order $arms $default)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        recv ($receiver:expr $(,)?) ($result:pat) $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (recv $number $arm ($receiver) () ($result) $body)] $default $($rest)*)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        send ($sender:expr, $message:expr $(,)?) ($result:pat) $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (send $number $arm ($sender) ($message) ($result) $body)] $default $($rest)*)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        wait ($source:expr $(,)?) () $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (wait $number $arm ($source) () (_) $body)] $default $($rest)*)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        wait ($source:expr $(,)?) ($result:pat) $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (wait $number $arm ($source) () ($result) $body)] $default $($rest)*)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        join ($handle:ident $(,)?) ($result:pat) $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (join $number $arm ($handle) ($handle) ($result) $body)] $default $($rest)*)
    };
    (@case $order:tt [($number:tt $arm:ident) $($labels:tt)*] [$($arms:tt)*] $default:tt
        join ($handle:expr $(,)?) () $body:tt $($rest:tt)*
    ) => {
        $crate::__select!(@case $order [$($labels)*]
            [$($arms)* (join $number $arm ($handle) () (()) $body)] $default $($rest)*)
    };
    (@case $order:tt $labels:tt $arms:tt [] default () () $body:tt $($rest:tt)*) => {
        $crate::__select!(@case $order $labels $arms [() $body] $($rest)*)
    };
    (@case $order:tt $labels:tt $arms:tt [] default ($timeout:expr $(,)?) () $body:tt $($rest:tt)*) => {
        $crate::__select!(@case $order $labels $arms [($timeout) $body] $($rest)*)
    };
    (@case $order:tt $labels:tt $arms:tt [$($default:tt)+] default $($rest:tt)*) => {
        ::core::compile_error!("a select has one `default` at the most")
    };
    (@case $order:tt [] $($rest:tt)*) => {
        ::core::compile_error!("a select has 32 operations at the most; `channel::Select` has no bound")
    };
    (@case $order:tt $labels:tt $arms:tt $default:tt $case:ident ($($arguments:tt)*) $($rest:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "expected `recv(receiver) -> result`, `send(sender, message) -> result`, `wait(event)`, \
             `wait(semaphore) -> permit`, `join(handle)`, `join(handle) -> result` where `handle` is a variable, `default` or \
             `default(timeout)`, found `",
            ::core::stringify!($case ($($arguments)*)),
            "` with or without a result",
        ))
    };

    // One receive alone is just that.
    (@all $order:tt [(recv $number:tt $arm:ident ($receiver:expr) () ($result:pat) $body:tt)] []) => {
        match $receiver {
            ref receiver => {
                let receiver: &$crate::channel::Receiver<_> = receiver;
                let $result = receiver.recv();
                $body
            }
        }
    };
    // The name of an arm is at first that of what it is made of.
    (@all ($order:ident)
        [$(($case:tt $number:tt $arm:ident ($($source:tt)*) $message:tt $result:tt $body:tt))*] $default:tt
    ) => {
        match ($($crate::__select!(@lend $case $($source)*),)*) {
            ($($arm,)*) => {
                // Without drop glue, so that the borrows end before the body runs. No outcome is left in an arm.
                $(let $arm = ::core::mem::ManuallyDrop::new($crate::__select!(@arm $case $arm));)*
                let chosen = $crate::channel::__private::choose::<&dyn $crate::channel::__private::Arm>(
                    &mut [$((&*$arm as &dyn $crate::channel::__private::Arm, $number)),*],
                    $crate::__select!(@limit $default),
                    $crate::channel::__private::Order::$order,
                    $crate::channel::__private::Purpose::Act,
                );
                $crate::__select!(@done chosen $default
                    $(($case $number $arm $message $result $body))*)
            }
        }
    };

    (@lend join $handle:expr) => { &mut $handle };
    (@lend $case:tt $source:expr) => { &$source };

    (@arm recv $receiver:ident) => {{
        let receiver: &$crate::channel::Receiver<_> = $receiver;
        $crate::channel::__private::RecvArm::new(receiver)
    }};
    (@arm send $sender:ident) => {{
        let sender: &$crate::channel::Sender<_> = $sender;
        $crate::channel::__private::SendArm::new(sender)
    }};
    (@arm wait $source:ident) => { $crate::channel::__private::wait_arm($source) };
    (@arm join $handle:ident) => {{
        let handle: &mut $crate::channel::__private::JoinHandle<_> = $handle;
        $crate::channel::__private::join_arm(handle)
    }};

    (@limit []) => { $crate::channel::__private::Limit::Never };
    (@limit [() $body:tt]) => { $crate::channel::__private::Limit::Now };
    (@limit [($timeout:expr) $body:tt]) => { $crate::channel::__private::Limit::after($timeout) };

    (@done $chosen:ident $default:tt
        $(($case:tt $number:tt $arm:ident $message:tt ($result:pat) $body:tt))*
    ) => {
        $(if $chosen == ::core::option::Option::Some($number) {
            // What the pattern does not take stays until the body has run.
            let result = $crate::__select!(@complete $case $arm $message);
            let $result = result;
            $body
        } else)* {
            $crate::__select!(@otherwise $default)
        }
    };

    (@complete send $arm:ident ($message:expr)) => {{
        let permit = $arm.permit();
        permit.send($message)
    }};
    (@complete join $arm:ident ()) => { () };
    (@complete join $arm:ident ($handle:ident)) => { $handle.join() };
    (@complete $case:tt $arm:ident ()) => { $arm.complete() };

    (@otherwise []) => {
        ::core::unreachable!("without a default one of the cases is chosen")
    };
    (@otherwise [$timeout:tt $body:tt]) => { $body };
}
