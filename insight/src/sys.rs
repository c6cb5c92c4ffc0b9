//! What the loader and the kernel know: the loaded objects, and the registers of a thread.

use std::borrow::Cow;
use std::cell::UnsafeCell;
use std::ffi::{CStr, OsStr, c_int, c_void};
use std::io;
use std::mem::{self, MaybeUninit};
use std::ops::{ControlFlow, Range};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use fibra_runtime::stacks::{self, SavedContext};

use crate::object::{Object, Segment};

/// A page of memory, at the least.
const PAGE: usize = 4096;

/// How much of a stack [`ask`] copies.
pub(crate) const WINDOW: usize = 16 * 1024;

/// How often the loader has added and removed an object.
pub(crate) type Changes = (u64, u64);

/// Returns how often the loader has changed the objects.
pub(crate) fn changes() -> Changes {
    let mut changes = (0, 0);
    each_object(&mut |object| {
        changes = (object.dlpi_adds, object.dlpi_subs);
        ControlFlow::Break(())
    });
    changes
}

/// Returns the loaded objects.
pub(crate) fn objects() -> (Changes, Vec<Object>) {
    let (mut changes, mut objects) = ((0, 0), Vec::new());
    each_object(&mut |info| {
        changes = (info.dlpi_adds, info.dlpi_subs);
        objects.push(object(info, objects.is_empty()));
        ControlFlow::Continue(())
    });
    (changes, objects)
}

type Visit<'a> = dyn FnMut(&libc::dl_phdr_info) -> ControlFlow<()> + 'a;

/// Shows each object, the program first. None is unloaded meanwhile.
fn each_object(mut visit: &mut Visit<'_>) {
    unsafe extern "C" fn call(info: *mut libc::dl_phdr_info, _: usize, visit: *mut c_void) -> c_int {
        // SAFETY: the loader passes a valid record, and the pointer that `each_object` gave it.
        let (info, visit) = unsafe { (&*info, &mut *visit.cast::<&mut Visit<'_>>()) };
        visit(info).is_break().into()
    }
    // SAFETY: `call` takes the pointer as what it is, and only during this call. It unwinds for no reason but a lack of memory,
    // which aborts.
    unsafe { libc::dl_iterate_phdr(Some(call), ptr::from_mut(&mut visit).cast()) };
}

fn object(info: &libc::dl_phdr_info, is_program: bool) -> Object {
    let base = info.dlpi_addr as usize;
    // SAFETY: the loader has mapped the headers, and keeps them as long as the object.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let segment = |header: &libc::Elf64_Phdr| {
        let start = base + header.p_vaddr as usize;
        let range = start..start + header.p_memsz as usize;
        Segment { kind: header.p_type, flags: header.p_flags, range }
    };
    let bytes = |range: Range<usize>| {
        // SAFETY: the range lies in a segment that is mapped for reading, as tables are, and never written to. The program
        // is never unloaded; of the others a copy is made, while the loader holds them.
        let bytes: &'static [u8] = unsafe { slice::from_raw_parts(range.start as *const u8, range.len()) };
        Some(if is_program { Cow::Borrowed(bytes) } else { Cow::Owned(bytes.to_vec()) })
    };
    // SAFETY: the loader's names are strings, and stay as long as the object.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    let path = if is_program { "/proc/self/exe".into() } else { OsStr::from_bytes(name.to_bytes()).into() };
    Object::new(path, base, &headers.iter().map(segment).collect::<Vec<_>>(), bytes)
}

/// The copy of a thread's registers and of the innermost part of its stack.
pub(crate) struct Copied {
    pub(crate) registers: SavedContext,
    pub(crate) stack: Vec<u8>,
}

/// Where the handler of the signal puts what it copies. One caller of [`ask`] at a time uses it.
struct Slot {
    /// The thread that is asked, or [`IDLE`], [`COPIES`] or [`HAS_COPIED`].
    state: AtomicI32,
    pc: AtomicUsize,
    sp: AtomicUsize,
    fp: AtomicUsize,
    length: AtomicUsize,
    window: UnsafeCell<[u8; WINDOW]>,
}

// SAFETY: the handler that has turned the state to `COPIES` writes to the window. `ask` reads it from `HAS_COPIED` to `IDLE`.
unsafe impl Sync for Slot {}

const IDLE: i32 = 0;
const COPIES: i32 = -1;
const HAS_COPIED: i32 = -2;

static SLOT: Slot = Slot {
    state: AtomicI32::new(IDLE),
    pc: AtomicUsize::new(0),
    sp: AtomicUsize::new(0),
    fp: AtomicUsize::new(0),
    length: AtomicUsize::new(0),
    window: UnsafeCell::new([0; WINDOW]),
};

/// Returns the number of the calling thread.
pub(crate) fn own_tid() -> i32 {
    // SAFETY: a system call without arguments.
    (unsafe { libc::syscall(libc::SYS_gettid) }) as i32
}

/// Returns the user at the other end of a Unix socket.
///
/// Not by rustix: it takes the process for a positive number, which that of another container is not.
pub(crate) fn peer_user(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut len = size_of_val(&peer) as libc::socklen_t;
    let place = ptr::from_mut(&mut peer).cast();
    // SAFETY: the call writes at most `len` bytes to `peer`, for which all values are valid. The descriptor is open.
    let failed =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, place, &mut len) };
    if failed == 0 { Ok(peer.uid) } else { Err(io::Error::last_os_error()) }
}

/// Returns the signal that takes stacks, unless the program names another one.
pub(crate) fn default_signal() -> c_int {
    libc::SIGRTMIN() + 3
}

/// Makes the signal copy what [`ask`] wants. Refuses if the program handles the signal.
pub(crate) fn handle(signal: c_int) -> io::Result<()> {
    // SAFETY: all-zero is a valid value; `sigaction` gets a valid place for the present action, and sets none.
    let before = unsafe {
        let mut before: libc::sigaction = mem::zeroed();
        match libc::sigaction(signal, ptr::null(), &mut before) {
            0 => before.sa_sigaction,
            _ => return Err(io::Error::last_os_error()),
        }
    };
    let copy = copy as *const () as usize;
    if before != libc::SIG_DFL && before != copy {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("signal {signal} has a handler")));
    }
    // SAFETY: all-zero is a valid value with an empty mask. The handler keeps to what handlers may do, has the form that the
    // flags say, and needs little stack.
    let refused = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = copy;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigaction(signal, &action, ptr::null_mut())
    };
    if refused == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends the signal to a thread of this process, and returns what its handler has copied.
///
/// `wait` returns after a moment, and false when the thread has had time enough. One thread at a time calls this.
pub(crate) fn ask(tid: i32, signal: c_int, mut wait: impl FnMut() -> bool) -> Option<Copied> {
    SLOT.state.store(tid, Ordering::Release);
    // SAFETY: a system call without pointers. The signal has a handler.
    if unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, signal) } != 0 {
        SLOT.state.store(IDLE, Ordering::Relaxed);
        return None;
    }
    // Acquire: pairs with the handler's Release.
    while SLOT.state.load(Ordering::Acquire) != HAS_COPIED {
        // A signal that comes later finds nothing to do.
        let withdraw = || SLOT.state.compare_exchange(tid, IDLE, Ordering::Relaxed, Ordering::Relaxed);
        if !wait() && withdraw().is_ok() {
            return None;
        }
    }
    let of = |word: &AtomicUsize| word.load(Ordering::Relaxed);
    let registers = SavedContext { pc: of(&SLOT.pc), sp: of(&SLOT.sp), fp: of(&SLOT.fp) };
    // SAFETY: the handler has written, and none does again before the state is another thread's id.
    let stack = unsafe { (&*SLOT.window.get())[..of(&SLOT.length)].to_vec() };
    SLOT.state.store(IDLE, Ordering::Release);
    Some(Copied { registers, stack })
}

/// The handler: copies what the interrupted code had in its registers and on its stack.
///
/// Async-signal-safe: it makes system calls and writes to the slot.
unsafe extern "C" fn copy(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the place of this thread's number; it is put back below.
    let (number, kept) = unsafe { (libc::__errno_location(), *libc::__errno_location()) };
    let own = own_tid();
    // Acquire: pairs with the Release of the request, after which no thread reads the window.
    if SLOT.state.compare_exchange(own, COPIES, Ordering::Acquire, Ordering::Relaxed).is_ok() {
        // SAFETY: by `SA_SIGINFO` this is the context of the interrupted code.
        let registers = registers(unsafe { &*context.cast::<libc::ucontext_t>() });
        SLOT.pc.store(registers.pc, Ordering::Relaxed);
        SLOT.sp.store(registers.sp, Ordering::Relaxed);
        SLOT.fp.store(registers.fp, Ordering::Relaxed);
        // SAFETY: this handler has the state, so the window is its own.
        let copied = copy_memory(registers.sp, unsafe { &mut *SLOT.window.get() });
        SLOT.length.store(copied, Ordering::Relaxed);
        // Release: pairs with the Acquire in `ask`.
        SLOT.state.store(HAS_COPIED, Ordering::Release);
    }
    // SAFETY: as above.
    unsafe { *number = kept };
}

/// Returns the registers of the context at that address.
pub(crate) fn registers_at(address: usize) -> Option<SavedContext> {
    let mut context = MaybeUninit::<libc::ucontext_t>::zeroed();
    // SAFETY: the bytes of the context, all of them initialized.
    let bytes = unsafe {
        slice::from_raw_parts_mut(context.as_mut_ptr().cast::<u8>(), size_of::<libc::ucontext_t>())
    };
    stacks::read(address, bytes)?;
    // SAFETY: it is made of numbers and raw pointers, for which all values are valid.
    Some(registers(unsafe { context.assume_init_ref() }))
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &libc::ucontext_t) -> SavedContext {
    let of = |register: c_int| context.uc_mcontext.gregs[register as usize] as usize;
    SavedContext { pc: of(libc::REG_RIP), sp: of(libc::REG_RSP), fp: of(libc::REG_RBP) }
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &libc::ucontext_t) -> SavedContext {
    let machine = &context.uc_mcontext;
    SavedContext { pc: machine.pc as usize, sp: machine.sp as usize, fp: machine.regs[29] as usize }
}

/// Copies memory of this process up to the first page that is not mapped. Returns how much that is.
fn copy_memory(address: usize, into: &mut [u8; WINDOW]) -> usize {
    // One piece a page: what is mapped in a piece that is not mapped as a whole may be left out.
    let mut pieces = [const { MaybeUninit::<libc::iovec>::uninit() }; WINDOW / PAGE + 1];
    let (mut used, mut at) = (0, address);
    while at < address.saturating_add(WINDOW) {
        let end = ((at | (PAGE - 1)).saturating_add(1)).min(address.saturating_add(WINDOW));
        pieces[used].write(libc::iovec { iov_base: at as *mut c_void, iov_len: end - at });
        (used, at) = (used + 1, end);
    }
    let own = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: WINDOW };
    // SAFETY: the kernel writes at most to `into`, and reads what it can of the pieces, of which `used` are initialized.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &own, 1, pieces.as_ptr().cast(), used as libc::c_ulong, 0)
    };
    usize::try_from(copied).unwrap_or(0)
}
