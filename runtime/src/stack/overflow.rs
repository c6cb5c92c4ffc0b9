//! The report of a stack overflow: a handler of SIGSEGV and SIGBUS for the whole process.
//!
//! It runs on the thread's alternate stack, asks the runtime whose guard was touched, writes one line and aborts. Every
//! fault that is not an overflow of a task goes to the handler that the signal had before, as if ours were not there.
//!
//! All that the handler does is async-signal-safe: loads of atomics, formatting into an array, `write`, `abort`, and, to hand
//! a fault on, `sigaction`, `pthread_sigmask` and `raise`.

use std::io;
use std::marker::PhantomData;
use std::mem;
use std::process;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::base::abort_dump;
use crate::base::sigaction::{Handler, change, handle_by, no_action};
use crate::stack::overflow_line::Overflow;
use crate::stack::sys;

/// What handlers may use beyond the kernel's own part: ours, and those that are chained to.
const ROOM: usize = 64 * 1024;

/// Calls `report` with the task of the current thread whose stack overflows with a fault at this address, if there is one.
pub(crate) type Lookup = fn(fault: usize, report: &dyn Fn(&Overflow<'_>));

/// Installs the handler, once for the process; later calls change nothing.
///
/// # Errors
///
/// What `sigaction` says.
///
/// # Safety
///
/// `lookup` is async-signal-safe and may run at any instruction of any thread.
pub(crate) unsafe fn install(lookup: Lookup) -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        _ = LOOKUP.set(lookup);
        SIGNALS.iter().try_for_each(Chained::install)?;
        *installed = true;
    }
    Ok(())
}

static LOOKUP: OnceLock<Lookup> = OnceLock::new();

/// The signals by which systems tell of a touched guard.
static SIGNALS: [Chained; 2] = [Chained::new(libc::SIGSEGV), Chained::new(libc::SIGBUS)];

/// Holds one signal and its previous handler.
struct Chained {
    signal: libc::c_int,
    previous: OnceLock<libc::sigaction>,
}

impl Chained {
    const fn new(signal: libc::c_int) -> Self {
        Self { signal, previous: OnceLock::new() }
    }

    fn install(&self) -> io::Result<()> {
        // The present action is remembered first, since our handler may run as soon as it is set.
        // SAFETY: none is set.
        _ = self.previous.set(unsafe { change(self.signal, None) }?);
        // SAFETY: the head of this file says what the handler does.
        unsafe { handle_by(self.signal, handle) }
    }

    /// Does with the signal what its previous action does.
    fn hand_on(&self, was_sent: bool, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        let Some(previous) = self.previous.get() else { return };
        match previous.sa_sigaction {
            // The kernel does not let a fault be ignored; a signal that was merely sent it does.
            libc::SIG_IGN if was_sent => {}
            libc::SIG_DFL | libc::SIG_IGN => self.resign(previous, was_sent),
            _ => self.call(previous, info, context),
        }
    }

    /// Sets the previous action again. The fault is then repeated, and ends in it.
    fn resign(&self, previous: &libc::sigaction, was_sent: bool) {
        // An error cannot be reported from here; the fault then comes again, and leads here again.
        // SAFETY: the action that was in force before ours, which the program had set.
        _ = unsafe { change(self.signal, Some(previous)) };
        if was_sent {
            // SAFETY: raise has no precondition. The signal is blocked here and is delivered when the handler returns.
            unsafe { libc::raise(self.signal) };
        }
    }

    /// Calls the previous handler as the kernel would.
    fn call(&self, previous: &libc::sigaction, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        if previous.sa_flags & libc::SA_RESETHAND != 0 {
            // Such a handler runs once; after it comes the default.
            // SAFETY: the default has no handler.
            _ = unsafe { change(self.signal, Some(&no_action())) };
        }
        self.mask_for(previous);
        let handler = ptr::with_exposed_provenance::<()>(previous.sa_sigaction);
        // SAFETY: neither SIG_DFL nor SIG_IGN, so it is a handler, and SA_SIGINFO says which signature it has.
        unsafe {
            match previous.sa_flags & libc::SA_SIGINFO {
                0 => mem::transmute::<*const (), extern "C" fn(libc::c_int)>(handler)(self.signal),
                _ => mem::transmute::<*const (), Handler>(handler)(self.signal, info, context),
            }
        }
    }

    /// Blocks what the previous handler wants blocked.
    fn mask_for(&self, previous: &libc::sigaction) {
        let mut only_this = no_action().sa_mask;
        // SAFETY: all pointers are to valid sets, or null: the old mask is not asked for.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &previous.sa_mask, ptr::null_mut());
            if previous.sa_flags & libc::SA_NODEFER != 0 {
                libc::sigaddset(&mut only_this, self.signal);
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &only_this, ptr::null_mut());
            }
        }
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO; for a fault it has an address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr().addr()) };
    // Linux gives the codes of sent signals no positive numbers; some BSDs number them from 0x10001.
    let was_sent = code <= 0 || code > 0x1_0000;
    if let Some(lookup) = LOOKUP.get().filter(|_| !was_sent) {
        lookup(address, &|overflow| report_and_abort(overflow, context));
    }
    if let Some(chained) = SIGNALS.iter().find(|chained| chained.signal == signal) {
        chained.hand_on(was_sent, info, context);
    }
}

fn report_and_abort(overflow: &Overflow<'_>, context: *mut libc::c_void) {
    overflow.with_line(sys::write_to_stderr);
    abort_dump::leave(context.expose_provenance());
    process::abort();
}

/// A part of an alternate stack, whose ends are aligned as those of a stack are.
type Aligned = u128;

/// An alternate signal stack of the current thread; undone when dropped, on that thread.
#[must_use = "the alternate stack goes when this is dropped"]
pub(crate) struct AltStack {
    /// The memory of our own, and what the thread had before; nothing if that was large enough.
    own: Option<(Vec<Aligned>, libc::stack_t)>,
    /// Stays on its thread, whose kernel state it is.
    _not_send: PhantomData<*mut ()>,
}

/// Keeps the alternate stack that the thread has if it is large enough, or else sets a larger one, until the value is dropped.
///
/// The one that std gives its threads is not: it holds 8 KiB, of which the kernel's frame takes more than a third where the
/// processor has wide registers, and a report in a debug build does not fit into the rest.
///
/// # Errors
///
/// What `sigaltstack` says.
pub(crate) fn thread_setup() -> io::Result<AltStack> {
    let before = change_alternate(None)?;
    let needed = sys::min_signal_stack() + ROOM;
    let is_enough = before.ss_flags & libc::SS_DISABLE == 0 && before.ss_size >= needed;
    let mut own =
        (!is_enough).then(|| (Vec::<Aligned>::with_capacity(needed.div_ceil(size_of::<Aligned>())), before));
    if let Some((memory, _)) = &mut own {
        let (ss_sp, ss_size) = (memory.as_mut_ptr().cast(), memory.capacity() * size_of::<Aligned>());
        change_alternate(Some(&libc::stack_t { ss_sp, ss_size, ss_flags: 0 }))?;
    }
    Ok(AltStack { own, _not_send: PhantomData })
}

impl Drop for AltStack {
    fn drop(&mut self) {
        let Some((own, before)) = self.own.take() else { return };
        let is_ours = change_alternate(None).is_ok_and(|present| present.ss_sp.addr() == own.as_ptr().addr());
        if is_ours && change_alternate(Some(&before)).is_err() {
            // A handler runs on it right now.
            mem::forget(own);
        }
    }
}

/// Sets the alternate stack, if there is one to set, and returns the one before. Its memory stays while it is set.
fn change_alternate(to: Option<&libc::stack_t>) -> io::Result<libc::stack_t> {
    let mut before = libc::stack_t { ss_sp: ptr::null_mut(), ss_size: 0, ss_flags: 0 };
    // SAFETY: the new one is null, memory that `AltStack` keeps, or what was set before; the old one is writable.
    let result = unsafe { libc::sigaltstack(to.map_or(ptr::null(), ptr::from_ref), &mut before) };
    if result == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}
