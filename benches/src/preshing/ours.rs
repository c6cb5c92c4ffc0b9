//! fibra's primitives, for tasks and for threads.

use fibra::sync;

use super::kit::{Event, Mutex, ReadWrite};

impl Mutex for sync::Mutex<()> {
    fn new() -> Self {
        sync::Mutex::new(())
    }

    fn with<R>(&self, f: impl FnOnce() -> R) -> R {
        let _guard = self.lock();
        f()
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
