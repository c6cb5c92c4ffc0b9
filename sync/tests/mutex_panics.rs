//! Where the panic of a lock taken twice points to. Alone in its process: the panic hook belongs to all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fibra_sync::Mutex;

#[test]
fn the_panic_of_a_lock_taken_twice_points_to_the_second() {
    let mutex = Mutex::new(());
    let _first = mutex.lock();
    let (here, told) = std::sync::mpsc::channel();
    let former = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let location = info.location().unwrap();
        here.send((location.file().to_owned(), location.line())).unwrap();
    }));
    let line = line!() + 1;
    let caught = catch_unwind(AssertUnwindSafe(|| drop(mutex.lock())));
    std::panic::set_hook(former);
    assert!(caught.is_err());
    assert_eq!(told.recv().unwrap(), (file!().to_owned(), line));
}
