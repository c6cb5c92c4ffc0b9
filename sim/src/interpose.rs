//! The functions of the C library that [`interpose!`](crate::interpose!) defines in a test binary.
//!
//! `answers.rs` and `blocking.rs` decide for the thread of a run. All other threads get the system, also before `main` and while their
//! thread-locals are dropped.
//!
//! # Safety
//! Callers keep to what the manual says of the function of that name.

use std::ffi::CStr;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

#[doc(hidden)]
pub use libc;
use libc::{c_int, c_long, c_uint, c_void, pthread_attr_t, pthread_t, size_t, ssize_t, timespec, timeval};

use crate::answers::{self, Clock};
use crate::blocking;

/// How long a task may hold up its simulation, for a lock of another thread.
const PATIENCE: Duration = Duration::from_secs(2);

/// Makes std's clocks, sleeps and hash maps of a test binary part of its simulations.
///
/// It is called once, at the root of the binary, and defines functions of the C library there, which std calls from then on.
/// In a program that a simulation runs:
///
/// * [`Instant::now`](std::time::Instant::now) shows virtual time, as `fibra::time::now` does.
/// * [`SystemTime::now`](std::time::SystemTime::now) begins each run with the year 2024, and goes on by virtual time.
/// * [`thread::sleep`](std::thread::sleep) suspends the task, for that much virtual time. It is no cancellation point: a
///   task that is cancelled sleeps to its end.
/// * [`RandomState`](std::hash::RandomState) has keys that the seed decides, and so has each `HashMap` its order.
/// * A task that starts a thread gets an error, and the run fails with the name of the task.
/// * A task that waits for a lock, a condition, a channel or a wake of std for more than two real seconds fails the run
///   by its name. Such a wait holds up all tasks of its worker, in production too: fibra has all of these for tasks.
///
/// [`allow_threads`](crate::allow_threads) lifts the last two. Outside of simulations nothing changes, and the library
/// itself has no hooks into the C library.
///
/// It needs Linux on x86_64 or aarch64, and a C library that is linked dynamically. It defines `clock_gettime`,
/// `gettimeofday`, `nanosleep`, `clock_nanosleep`, `getrandom`, `getentropy`, `pthread_create` and `syscall`. Code that
/// asks the system by other means escapes it: by instructions of its own, or inside the C library, as `pthread_cond_wait`
/// does.
///
/// # Examples
/// ```standalone_crate
/// use std::time::{Duration, Instant, SystemTime};
///
/// fibra_sim::interpose!();
///
/// fn main() {
///     let report = fibra_sim::Sim::builder().run(|| {
///         let (begin, day) = (Instant::now(), SystemTime::now());
///         std::thread::sleep(Duration::from_secs(3600));
///         assert!(begin.elapsed().as_secs() >= 3600);
///         assert!(day.elapsed().unwrap().as_secs() >= 3600);
///     });
///     assert!(report.elapsed().as_secs() >= 3600);
/// }
/// ```
#[macro_export]
macro_rules! interpose {
    () => {
        const _: () = {
            use $crate::interpose::libc::{
                c_int, c_long, c_uint, c_void, pthread_attr_t, pthread_t, size_t, ssize_t, timespec, timeval,
            };
            $crate::interpose! {
                clock_gettime(clock: c_int, time: *mut timespec) -> c_int;
                gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int;
                nanosleep(time: *const timespec, left: *mut timespec) -> c_int;
                clock_nanosleep(clock: c_int, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int;
                getrandom(to: *mut c_void, size: size_t, flags: c_uint) -> ssize_t;
                getentropy(to: *mut c_void, size: size_t) -> c_int;
                pthread_create(
                    thread: *mut pthread_t, attributes: *const pthread_attr_t,
                    start: extern "C" fn(*mut c_void) -> *mut c_void, argument: *mut c_void
                ) -> c_int;
                // C declares it with a variable number of arguments. On these machines such integers are passed as if they
                // were declared. Those that the caller has not given are read from where they would be, as the C library does.
                syscall(
                    number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long
                ) -> c_long;
            }
        };
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        compile_error!("`fibra_sim::interpose!` needs x86_64 or aarch64");
    };
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {$(
        // SAFETY: it does what C says of the function, and no other crate of the binary defines it.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: the caller keeps to what C says of the function.
            unsafe { $crate::interpose::$name($($argument),*) }
        }
    )+};
}

pub unsafe fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int {
    match virtual_clock(clock).and_then(blocking::reading) {
        Some(reading) => {
            // SAFETY: the caller gives a place for the time.
            unsafe { time.write(in_c(reading)) };
            0
        }
        // SAFETY: the caller's arguments.
        None => unsafe { system(libc::SYS_clock_gettime, [clock.into(), word(time), 0, 0, 0, 0]) as c_int },
    }
}

pub unsafe fn gettimeofday(time: *mut timeval, zone: *mut c_void) -> c_int {
    match blocking::reading(Clock::OfTheDay) {
        Some(reading) => {
            let timespec { tv_sec, tv_nsec } = in_c(reading);
            // SAFETY: the caller gives a place for the time.
            unsafe { time.write(timeval { tv_sec, tv_usec: tv_nsec / 1000 }) };
            0
        }
        // SAFETY: the caller's arguments.
        None => unsafe { system(libc::SYS_gettimeofday, [word(time), word(zone), 0, 0, 0, 0]) as c_int },
    }
}

pub unsafe fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    // SAFETY: the caller's arguments.
    match unsafe { clock_nanosleep(libc::CLOCK_REALTIME, 0, time, left) } {
        0 => 0,
        error => fail_with(error) as c_int,
    }
}

pub unsafe fn clock_nanosleep(
    mut clock: c_int,
    mut flags: c_int,
    mut time: *const timespec,
    left: *mut timespec,
) -> c_int {
    let (relative, now) =
        (flags & libc::TIMER_ABSTIME == 0, virtual_clock(clock).and_then(blocking::reading));
    let in_virtual_time;
    // SAFETY: the caller gives the time.
    if let (Some(now), Some(until)) = (now, unsafe { read(time) }) {
        let duration = if relative { until } else { until.saturating_sub(now) };
        if blocking::sleep(duration) {
            return 0;
        }
        in_virtual_time = in_c(duration);
        (clock, flags, time) = (libc::CLOCK_MONOTONIC, 0, &raw const in_virtual_time);
    }
    let arguments = [clock.into(), flags.into(), word(time), word(left), 0, 0];
    // SAFETY: the caller's arguments, or ours.
    match unsafe { system(libc::SYS_clock_nanosleep, arguments) } {
        0 => 0,
        _ => errno(),
    }
}

pub unsafe fn getrandom(to: *mut c_void, size: size_t, flags: c_uint) -> ssize_t {
    if !answers::is_given() {
        // SAFETY: the caller's arguments.
        return unsafe {
            system(libc::SYS_getrandom, [word(to), size as c_long, flags.into(), 0, 0, 0]) as ssize_t
        };
    }
    for (index, byte) in answers::random_bytes().take(size).enumerate() {
        // SAFETY: the caller gives a place of that size.
        unsafe { to.cast::<u8>().add(index).write(byte) };
    }
    size as ssize_t
}

pub unsafe fn getentropy(to: *mut c_void, size: size_t) -> c_int {
    // C has this limit, below which the system gives all or nothing.
    if size > 256 {
        return fail_with(libc::EIO) as c_int;
    }
    // SAFETY: the caller's arguments.
    match unsafe { getrandom(to, size, 0) } {
        -1 => -1,
        _ => 0,
    }
}

pub unsafe fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C" fn(
        *mut pthread_t,
        *const pthread_attr_t,
        extern "C" fn(*mut c_void) -> *mut c_void,
        *mut c_void,
    ) -> c_int;
    static NEXT: Next = Next::new(c"pthread_create");
    if blocking::refuses_thread() {
        return libc::EAGAIN;
    }
    // SAFETY: the C library's function has this type, and gets the caller's arguments.
    unsafe { mem::transmute::<*mut c_void, Function>(NEXT.find())(thread, attributes, start, argument) }
}

pub unsafe fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    let arguments = [a, b, c, d, e, f];
    let answer = match number {
        libc::SYS_getrandom => {
            let to = ptr::with_exposed_provenance_mut(a as usize);
            // SAFETY: the caller's arguments.
            Some(unsafe { getrandom(to, b as size_t, c as c_uint) as c_long })
        }
        // SAFETY: the caller's arguments.
        libc::SYS_futex => unsafe { wait_in_run(arguments) },
        _ => None,
    };
    // SAFETY: the caller's arguments.
    answer.unwrap_or_else(|| unsafe { system(number, arguments) })
}

/// Waits for a change of a word if these are the arguments of such a call, on the thread of a run.
///
/// It waits for real, since only other threads can end the wait. Its limit is in virtual time, and passes in that as well.
///
/// # Safety
/// The arguments are those of a call of `futex`.
unsafe fn wait_in_run(arguments: [c_long; 6]) -> Option<c_long> {
    let [word_at, operation, expected, limit, _, bits] = arguments;
    let command = operation as c_int & libc::FUTEX_CMD_MASK;
    if !matches!(command, libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET) || !answers::is_given() {
        return None;
    }
    let limit = match limit {
        0 => None,
        // SAFETY: the caller gives the time.
        at => Some(unsafe { read(ptr::with_exposed_provenance(at as usize)) }?),
    };
    let clock = match operation as c_int & libc::FUTEX_CLOCK_REALTIME {
        0 => Clock::Monotonic,
        _ => Clock::OfTheDay,
    };
    let left = match limit {
        Some(until) if command == libc::FUTEX_WAIT_BITSET => {
            Some(until.saturating_sub(blocking::reading(clock)?))
        }
        limit => limit,
    };
    let is_refused = blocking::are_threads_refused();
    let patience = if is_refused { Some(left.map_or(PATIENCE, |left| left.min(PATIENCE))) } else { left };
    let until = patience.map(|patience| in_c(machine().saturating_add(patience)));
    let arguments = [
        word_at,
        c_long::from(libc::FUTEX_WAIT_BITSET) | operation & c_long::from(libc::FUTEX_PRIVATE_FLAG),
        expected,
        until.as_ref().map_or(0, |until| word(until)),
        0,
        if command == libc::FUTEX_WAIT { libc::FUTEX_BITSET_MATCH_ANY.into() } else { bits },
    ];
    // SAFETY: the caller's word, and our time.
    let result = unsafe { system(libc::SYS_futex, arguments) };
    if result == -1 && errno() == libc::ETIMEDOUT && left != Some(Duration::ZERO) {
        if is_refused {
            blocking::fail(
                "waits for a lock, a condition, a channel or a wake of std, which holds up all tasks of its worker: use those \
                 of fibra, and hold no lock of std where the task may be suspended",
            );
        }
        left.map(blocking::sleep);
        return Some(fail_with(libc::ETIMEDOUT));
    }
    Some(result)
}

/// Calls the system as the C library does.
///
/// # Safety
/// The arguments are those of that call.
unsafe fn system(number: c_long, arguments: [c_long; 6]) -> c_long {
    type Function = unsafe extern "C" fn(c_long, ...) -> c_long;
    static NEXT: Next = Next::new(c"syscall");
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the C library's function has this type, and gets the caller's arguments.
    unsafe { mem::transmute::<*mut c_void, Function>(NEXT.find())(number, a, b, c, d, e, f) }
}

/// A function of the C library, which this binary has defined as well.
struct Next {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Next { name, found: AtomicPtr::new(ptr::null_mut()) }
    }

    fn find(&self) -> *mut c_void {
        // Relaxed: the function is there since before `main`, and all threads find the same.
        let mut found = self.found.load(Ordering::Relaxed);
        if found.is_null() {
            // SAFETY: the name ends with a zero.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            assert!(!found.is_null(), "`interpose!` needs a C library that is linked dynamically");
            self.found.store(found, Ordering::Relaxed);
        }
        found
    }
}

/// Returns what the machine's monotonic clock shows.
fn machine() -> Duration {
    let mut time = timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [libc::CLOCK_MONOTONIC.into(), word(&raw mut time), 0, 0, 0, 0];
    // SAFETY: there is a place for the time, and it is valid before and after the call.
    unsafe { system(libc::SYS_clock_gettime, arguments) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Tells which virtual clock stands for one of the system's, if any does.
fn virtual_clock(clock: c_int) -> Option<Clock> {
    match clock {
        libc::CLOCK_MONOTONIC
        | libc::CLOCK_MONOTONIC_RAW
        | libc::CLOCK_MONOTONIC_COARSE
        | libc::CLOCK_BOOTTIME => Some(Clock::Monotonic),
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE | libc::CLOCK_TAI => Some(Clock::OfTheDay),
        _ => None,
    }
}

/// Reads a time, unless it is none that the system takes.
///
/// # Safety
/// `time` is null, or valid for reads.
unsafe fn read(time: *const timespec) -> Option<Duration> {
    // SAFETY: the caller's promise.
    let timespec { tv_sec, tv_nsec } = *unsafe { time.as_ref() }?;
    let nanoseconds = u32::try_from(tv_nsec).ok().filter(|nanoseconds| *nanoseconds < 1_000_000_000)?;
    Some(Duration::new(u64::try_from(tv_sec).ok()?, nanoseconds))
}

fn in_c(time: Duration) -> timespec {
    let tv_sec = time.as_secs().try_into().unwrap_or(libc::time_t::MAX);
    timespec { tv_sec, tv_nsec: time.subsec_nanos().into() }
}

/// Passes a pointer to the system.
fn word<T>(pointer: *const T) -> c_long {
    pointer.expose_provenance() as c_long
}

fn errno() -> c_int {
    // SAFETY: each thread has its place.
    unsafe { *libc::__errno_location() }
}

/// Sets the thread's error, and returns what C's functions return then.
fn fail_with(error: c_int) -> c_long {
    // SAFETY: as in `errno`.
    unsafe { *libc::__errno_location() = error };
    -1
}
