//! Floor 2: coroutines. One task on one stack, resumed by a worker, suspended by itself.
//!
//! | file | holds |
//! | --- | --- |
//! | `native.rs` | the switch on 64-bit x86-64 |
//! | `portable.rs` | the switch elsewhere and under AddressSanitizer, by corosensei |
//! | `stop.rs` | what passes between task and worker at a switch |
//! | `panic_counter.rs` | panics held in the middle, to move std's panic count between threads; a stack of this crate as corosensei's |
//! | `own_stack.rs` | a stack for one call of a plain thread |
//!
//! Both switches implement [`Coroutine`](switch::Coroutine): the worker resumes it, and the task
//! suspends itself. The panic of a task never reaches this floor: the root function of the task
//! catches it.
//!
//! # Why not corosensei everywhere
//!
//! corosensei enters a coroutine by `call` and leaves it by `ret`. These pair in the processor's return predictor only if no
//! call lies between them. A task that sleeps in a lock or a socket suspends several calls deep, so that this `ret` and later
//! returns are predicted wrongly. A switch by `jmp` both ways leaves the predictor alone, and costs about a third. In exchange
//! corosensei's backtraces continue into the worker.
//!
//! # What the processor has to predict
//!
//! The cost of a switch is the cost of its mispredictions.
//!
//! * **Returns.** The frames of a task that sleeps stay on the return predictor's stack while the
//!   next task returns. If all tasks wait at one place, the predictions are right by chance. If two
//!   different tasks alternate, each such return is wrong, and the entries below it are spoiled. So
//!   the waits where two tasks meet (events, receives, conditions, joins, parks, reads of sockets)
//!   are inlined with the switch into the user's code. Only calls that return before the switch
//!   stay calls.
//! * **The jump to a task.** Its prediction depends on the taken branches before it, and only on a few of them. So the loop of
//!   the worker is laid out straight for the common case. The resume takes three conditional branches by bits of the address
//!   that it jumps to: they put the address into that short history, and are themselves predicted from a longer one.
//!
//! Rejected: a switch from the task that stops straight to the next ready task. It saved no time in any benchmark: the jumps
//! of the loop are predicted, and its checks are needed either way. A call that is open over such a switch costs twice as much.

pub(crate) mod own_stack;
pub(crate) mod panic_counter;
pub(crate) mod stop;

// x32 has 32-bit pointers, and Cygwin another calling convention: the native switch would corrupt memory there.
#[cfg(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    unix,
    not(target_os = "cygwin"),
    not(feature = "sanitizer")
))]
#[path = "native.rs"]
pub(crate) mod switch;
#[cfg(not(all(
    target_arch = "x86_64",
    target_pointer_width = "64",
    unix,
    not(target_os = "cygwin"),
    not(feature = "sanitizer")
)))]
#[path = "portable.rs"]
pub(crate) mod switch;
