//! The report of a stack overflow: a handler of SIGSEGV and SIGBUS for the whole process.
//!
//! It runs on the thread's alternate stack, asks the runtime whose guard was touched, writes one line and aborts. Every
//! fault that is not an overflow of a task goes to whatever handled the signal before, as if we were not there.
//!
//! All that the handler does is async-signal-safe: loads of atomics, `write`, `abort`, and, to hand a fault on, `sigaction`,
//! `pthread_sigmask` and `raise`.

use std::io;
use std::mem;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::stack::alternate::AltStack;
use crate::stack::overflow_line::Line;

/// Identifies the task that overflowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow {
    /// The task's number.
    pub(crate) id: u64,
    /// The task's name: where it lies, and how many bytes it has. Without a name the length is 0.
    pub(crate) name: *const u8,
    pub(crate) name_len: usize,
    /// The size of its stack in bytes, as the user knows it: [`Stack::size`](crate::stack::handle::Stack::size).
    pub(crate) stack_size: usize,
}

/// Finds the task of the current thread whose stack overflows with a fault at this address.
pub(crate) type Lookup = fn(fault: usize) -> Option<Overflow>;

/// Installs the handler, once for the process; later calls change nothing.
///
/// # Errors
///
/// What `sigaction` says.
///
/// # Safety
///
/// `lookup` is async-signal-safe and may run at any instruction of any thread. The name it returns can be read then.
pub(crate) unsafe fn install(lookup: Lookup) -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !*installed {
        // Release: pairs with the Acquire in `overflow_at`.
        LOOKUP.store(lookup as *mut (), Ordering::Release);
        SIGNALS.iter().try_for_each(Chained::install)?;
        *installed = true;
    }
    Ok(())
}

/// Makes sure that the current thread has an alternate stack for the handler to run on, until the value is dropped.
///
/// # Errors
///
/// Where there is no memory for it.
pub(crate) fn thread_setup() -> io::Result<AltStack> {
    AltStack::ensure()
}

/// The [`Lookup`]; null until it is installed.
static LOOKUP: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// The signals by which systems tell of a touched guard.
static SIGNALS: [Chained; 2] = [Chained::new(libc::SIGSEGV), Chained::new(libc::SIGBUS)];

/// Holds one signal and its previous handler.
struct Chained {
    signal: libc::c_int,
    /// Null, or leaked and therefore valid for ever.
    previous: AtomicPtr<libc::sigaction>,
}

impl Chained {
    const fn new(signal: libc::c_int) -> Self {
        Self { signal, previous: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Installs our handler in front of the previous one.
    fn install(&self) -> io::Result<()> {
        // The present action is remembered first, since our handler may run as soon as it is set.
        let found = change(self.signal, None)?;
        self.remember(found);
        // SAFETY: all-zero bytes are a valid `sigaction`: no handler, an empty mask, no flags.
        let mut ours: libc::sigaction = unsafe { mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = handle;
        ours.sa_sigaction = handler as *const () as usize;
        // Not SA_NODEFER: a fault inside the handler must end the process, not run the handler again.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let replaced = change(self.signal, Some(&ours))?;
        // Differs only where another thread installed a handler in between.
        if (replaced.sa_sigaction, replaced.sa_flags) != (found.sa_sigaction, found.sa_flags) {
            self.remember(replaced);
        }
        Ok(())
    }

    fn remember(&self, previous: libc::sigaction) {
        // Release: pairs with the Acquire in `hand_on`.
        self.previous.store(Box::into_raw(Box::new(previous)), Ordering::Release);
    }

    /// Does what would happen without our handler.
    fn hand_on(&self, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // Acquire: pairs with the Release in `remember`.
        let previous = self.previous.load(Ordering::Acquire);
        // SAFETY: `install` remembered an action before it set our handler; it is never freed nor changed.
        let previous = unsafe { &*previous };
        match previous.sa_sigaction {
            // The kernel does not let a fault be ignored; a signal that was merely sent it does.
            libc::SIG_IGN if was_sent(info) => {}
            libc::SIG_DFL | libc::SIG_IGN => self.resign(previous, info),
            _ => self.call(previous, info, context),
        }
    }

    /// Restores the previous action, and lets the signal come again: a fault by itself, a sent one by sending it.
    fn resign(&self, previous: &libc::sigaction, info: *mut libc::siginfo_t) {
        // An error cannot be reported from here; the fault then comes again, and leads here again.
        let _ = change(self.signal, Some(previous));
        if was_sent(info) {
            // SAFETY: raise has no precondition. The signal is blocked here and is delivered when the handler returns.
            unsafe { libc::raise(self.signal) };
        }
    }

    /// Calls the previous handler, under the mask that it asked for.
    fn call(&self, previous: &libc::sigaction, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        if previous.sa_flags & libc::SA_RESETHAND != 0 {
            // Such a handler runs once; after it comes the default.
            let mut default = *previous;
            default.sa_sigaction = libc::SIG_DFL;
            let _ = change(self.signal, Some(&default));
        }
        self.mask_for(previous);
        let handler = previous.sa_sigaction;
        if previous.sa_flags & libc::SA_SIGINFO != 0 {
            // SAFETY: neither SIG_DFL nor SIG_IGN, so it is a handler, and SA_SIGINFO says that it has this signature.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { mem::transmute(ptr::with_exposed_provenance::<()>(handler)) };
            handler(self.signal, info, context);
        } else {
            // SAFETY: as above; without SA_SIGINFO a handler takes the signal alone.
            let handler: extern "C" fn(libc::c_int) =
                unsafe { mem::transmute(ptr::with_exposed_provenance::<()>(handler)) };
            handler(self.signal);
        }
    }

    /// Sets the signal mask as the kernel would have for this handler. On return the kernel restores the interrupted one.
    fn mask_for(&self, previous: &libc::sigaction) {
        // SAFETY: the mask is a valid set; the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &previous.sa_mask, ptr::null_mut()) };
        if previous.sa_flags & libc::SA_NODEFER != 0 {
            // SAFETY: all-zero bytes are a valid set to be initialized; the calls get valid pointers to it.
            unsafe {
                let mut only_this: libc::sigset_t = mem::zeroed();
                libc::sigemptyset(&mut only_this);
                libc::sigaddset(&mut only_this, self.signal);
                libc::pthread_sigmask(libc::SIG_UNBLOCK, &only_this, ptr::null_mut());
            }
        }
    }
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if let Some(overflow) = overflow_at(info) {
        report_and_abort(&overflow);
    }
    if let Some(chained) = SIGNALS.iter().find(|chained| chained.signal == signal) {
        chained.hand_on(info, context);
    }
}

fn overflow_at(info: *mut libc::siginfo_t) -> Option<Overflow> {
    if was_sent(info) {
        return None;
    }
    // Acquire: pairs with the Release in `install`.
    let lookup = LOOKUP.load(Ordering::Acquire);
    // SAFETY: `install` stored a `Lookup`, whose size is a pointer's, before it set the handler that calls this.
    let lookup: Lookup = unsafe { mem::transmute(lookup) };
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO; for a fault it has an address.
    lookup(unsafe { (*info).si_addr() }.addr())
}

/// Returns true if a process sent the signal, rather than an access causing it.
fn was_sent(info: *mut libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO.
    let code = unsafe { (*info).si_code };
    // Linux gives the codes of sent signals no positive numbers; some BSDs number them from 0x10001.
    code <= 0 || code > 0x1_0000
}

fn report_and_abort(overflow: &Overflow) -> ! {
    let name = match overflow.name_len {
        0 => &[],
        // SAFETY: the contract of `install`: the name that the lookup returned can be read now.
        len => unsafe { std::slice::from_raw_parts(overflow.name, len) },
    };
    let line = Line::report(overflow.id, name, overflow.stack_size);
    let bytes = line.as_bytes();
    // SAFETY: the pointer and length are those of a slice; an error (no standard error) leaves nothing to be done.
    unsafe { libc::write(libc::STDERR_FILENO, bytes.as_ptr().cast(), bytes.len()) };
    // SAFETY: abort has no precondition and is async-signal-safe.
    unsafe { libc::abort() }
}

/// Sets the action of a signal, unless it is `None`, and returns the previous one.
fn change(signal: libc::c_int, to: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    // SAFETY: all-zero bytes are a valid `sigaction`.
    let mut previous = unsafe { mem::zeroed() };
    let to = to.map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the new action is null or valid, the old one is writable.
    let result = unsafe { libc::sigaction(signal, to, &mut previous) };
    if result == 0 { Ok(previous) } else { Err(io::Error::last_os_error()) }
}
