//! fibra's primitives.

use fibra::sync;

use super::kit::{Event, Kit, Mutex, ReadWrite, Recursive, Semaphore};

/// fibra's, for tasks and for threads.
pub(super) struct Ours;

impl Kit for Ours {
    type Mutex = sync::Mutex<()>;
    type Recursive = sync::ReentrantMutex<()>;
    type Event = sync::AutoResetEvent;
    type ReadWrite = sync::RwLock<()>;
    type Semaphore = sync::Semaphore;
}

impl Mutex for sync::Mutex<()> {
    fn new() -> Self {
        sync::Mutex::new(())
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = self.lock();
        f()
    }
}

impl Recursive for sync::ReentrantMutex<()> {
    type Guard<'a> = sync::ReentrantMutexGuard<'a, ()>;

    fn new() -> Self {
        sync::ReentrantMutex::new(())
    }

    fn lock(&self) -> Self::Guard<'_> {
        sync::ReentrantMutex::lock(self)
    }

    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        sync::ReentrantMutex::try_lock(self)
    }
}

impl Event for sync::AutoResetEvent {
    fn new() -> Self {
        sync::AutoResetEvent::new(false)
    }

    fn set(&self) {
        sync::AutoResetEvent::set(self);
    }

    fn wait(&self) {
        sync::AutoResetEvent::wait(self);
    }
}

impl ReadWrite for sync::RwLock<()> {
    fn new() -> Self {
        sync::RwLock::new(())
    }

    fn read<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = sync::RwLock::read(self);
        f()
    }

    fn write<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = sync::RwLock::write(self);
        f()
    }
}

impl Semaphore for sync::Semaphore {
    fn new() -> Self {
        sync::Semaphore::new(0)
    }

    fn wait(&self) {
        self.acquire().forget();
    }

    fn post(&self) {
        self.add_permits(1);
    }
}
