//! The semaphore of the operating system.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// An unnamed POSIX semaphore of this process.
pub(crate) struct Semaphore {
    /// Initialized, never moved, and touched by the calls only, from any thread.
    semaphore: Box<UnsafeCell<libc::sem_t>>,
}

// SAFETY: the calls on a semaphore may come from any thread and at the same time; that is what it is for.
unsafe impl Send for Semaphore {}

// SAFETY: as for `Send`.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// Makes a semaphore with so many permits.
    ///
    /// # Errors
    ///
    /// Returns the system's error. Some systems have named semaphores only.
    pub(crate) fn new(permits: u32) -> io::Result<Self> {
        let mut semaphore = Box::<UnsafeCell<libc::sem_t>>::new_uninit();
        let place = MaybeUninit::as_mut_ptr(&mut semaphore).cast();
        // SAFETY: the pointer is to memory of the size and alignment of a semaphore, that is ours until it is
        // destroyed and stays where it is, since it is a box's.
        check(unsafe { libc::sem_init(place, 0, permits) })?;
        // SAFETY: the call has made a semaphore of it.
        Ok(Semaphore { semaphore: unsafe { semaphore.assume_init() } })
    }

    /// Takes a permit; waits for one if there is none.
    pub(crate) fn wait(&self) {
        loop {
            // SAFETY: the pointer is to a live, initialized semaphore, by the field's invariant.
            match check(unsafe { libc::sem_wait(self.semaphore.get()) }) {
                Ok(()) => return,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::Interrupted, "{error}"),
            }
        }
    }

    /// Gives a permit.
    pub(crate) fn post(&self) {
        // SAFETY: as in `wait`.
        check(unsafe { libc::sem_post(self.semaphore.get()) }).expect("there is room for a permit");
    }
}

impl Drop for Semaphore {
    fn drop(&mut self) {
        // SAFETY: the pointer is to an initialized semaphore without waiters, since it is not borrowed.
        let _ = unsafe { libc::sem_destroy(self.semaphore.get()) };
    }
}

fn check(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
