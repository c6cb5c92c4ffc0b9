// Is not compiled with the tests. The compiler says each text that stands behind `says`, and no more errors.

use fibra::net::TcpStream;
use fibra::signal::Signal;
use fibra::sync::channel::{Receiver, Select};
use fibra::sync::{Mutex, select};

pub fn a_signal(signal: Signal) {
    select! {
        wait(signal) => {}
    }
    // says: error[E0277]: a select cannot wait for `Signal`
    // says: note: for a signal, wait for its `event()`
}

pub fn a_socket(socket: &TcpStream) {
    select! {
        wait(socket) => {}
    }
    // says: error[E0277]: a select cannot wait for `&fibra::net::TcpStream`
    // says: for a socket, for an event of a `fibra::Readiness`; for anything else, `race` it against the select
}

pub fn a_channel(receiver: Receiver<u8>) {
    select! {
        wait(receiver) => {}
    }
    // says: error[E0277]: a select cannot wait for `
    // says: channel::Receiver<u8>`
    // says: note: the cases for channels and tasks are `recv(receiver) -> result => body`
}

pub fn a_lock(lock: Mutex<u8>) {
    Select::new().wait(&lock);
    // says: error[E0277]: a select cannot wait for `
    // says: RawMutex, u8>`
    // says: is no event, count, semaphore, token, or receiver of a oneshot, broadcast or watch channel
}

fibra::task_local! {
    static REQUEST: u64;
    // says: error: the task-local `REQUEST` needs an initial value: `static REQUEST: u64 = ...;`
    pub static USER: Option<String>;
    // says: error: the task-local `USER` needs an initial value: `static USER: Option<String> = ...;`
    // says: Where tokio has `USER.scope(value, ...)`, make it a `Cell` or a `RefCell`, and `set` it in the task
}
