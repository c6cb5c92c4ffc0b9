//! FIFOs and terminals with several users at once hold up no task that leaves.

use std::io::{IoSliceMut, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use crate::common::sides::{guarded, pause};
use crate::common::{everywhere, in_tasks, nap, until};
use crate::folder::Folder;
use crate::terminal::terminal;
use fibra_io::fs::{File, OpenOptions};
use fibra_runtime::{JoinHandle, Runtime, spawn};

/// How often it is tried to have two of them look at once.
const ROUNDS: usize = 20;

/// Lets both wait for what is enough for one, which `give` gives: one of them gets it, and the other can be cancelled.
fn one_is_served_and_the_other_can_leave<T: Send + 'static>(two: [JoinHandle<T>; 2], give: impl FnOnce()) {
    pause();
    give();
    until(|| two.iter().any(JoinHandle::is_finished));
    two.iter().for_each(JoinHandle::cancel);
    let [one, other] = two.map(|side| side.join().is_ok());
    assert!(one || other);
}

/// Lets a task read a little.
fn reader(file: &Arc<File>) -> JoinHandle<usize> {
    let file = Arc::clone(file);
    spawn(move || (&*file).read(&mut [0; 8]).unwrap())
}

fn options(read: bool, write: bool) -> OpenOptions {
    let mut options = File::options();
    options.read(read).write(write).custom_flags(libc::O_NOCTTY);
    options
}

#[test]
fn of_two_readers_of_a_fifo_for_one_byte_the_other_can_leave() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let mut writer = options(true, true).open(&path).unwrap();
        let file = || Arc::new(File::open(&path).unwrap());
        let [one, another] = [file(), file()];
        for _ in 0..ROUNDS {
            for other in [&one, &another] {
                let readers = [reader(&one), reader(other)];
                one_is_served_and_the_other_can_leave(readers, || writer.write_all(&[7]).unwrap());
            }
        }
    });
}

#[test]
fn of_two_readers_of_a_terminal_for_one_line_the_other_can_leave() {
    in_tasks(|| {
        let (mut master, terminal) = terminal();
        let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
        let another = Arc::new(options(true, false).open(path).unwrap());
        let one = Arc::new(terminal);
        for _ in 0..ROUNDS {
            for other in [&one, &another] {
                let readers = [reader(&one), reader(other)];
                one_is_served_and_the_other_can_leave(readers, || master.write_all(b"line\n").unwrap());
            }
        }
    });
}

#[test]
fn of_two_writers_into_a_full_fifo_with_room_for_one_the_other_can_leave() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let mut both = options(true, true).open(&path).unwrap();
        let file = || Arc::new(options(false, true).open(&path).unwrap());
        let [one, another] = [file(), file()];
        let mut filler = options(false, true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        let writer = |file: &Arc<File>| {
            let file = Arc::clone(file);
            spawn(move || (&*file).write(&[0; 4096]).unwrap())
        };
        for _ in 0..ROUNDS {
            for other in [&one, &another] {
                while filler.write(&[0; 4096]).is_ok() {}
                let writers = [writer(&one), writer(other)];
                let make_room = || both.read_exact(&mut [0; 4096]).unwrap();
                one_is_served_and_the_other_can_leave(writers, make_room);
            }
        }
    });
}

/// Two threads, of which one may wait for the other end of a FIFO.
#[test]
fn opens_of_fifos_that_wait_leave_threads_to_other_files() {
    guarded(|| {
        let builder = Runtime::builder().driver(fibra_io::driver()).workers(1).max_blocking_threads(2);
        builder.build().unwrap().run(|| {
            let folders = [(); 3].map(|()| Folder::new());
            let paths = folders.each_ref().map(Folder::fifo);
            let readers = paths.clone().map(|path| spawn(move || File::open(path).unwrap()));
            nap(5);
            let path = folders[0].file("file");
            File::create(&path).unwrap().write_all(b"text").unwrap();
            assert_eq!(fibra_io::fs::read_to_string(&path).unwrap(), "text");
            let unread = options(true, false).custom_flags(libc::O_NONBLOCK).open(&paths[0]).unwrap();
            // The other ends, without a wait for one.
            let _writers = paths.map(|path| options(true, true).open(path).unwrap());
            readers.into_iter().for_each(|reader| drop(reader.join().unwrap()));
            drop(unread);
        });
    });
}

#[test]
fn a_fifo_without_writers_ends_for_its_readers() {
    everywhere(|| {
        let folder = Folder::new();
        let path = folder.fifo();
        let both = options(true, true).open(&path).unwrap();
        let mut reader = File::open(&path).unwrap();
        let mut writer = options(false, true).open(&path).unwrap();
        drop(both);
        writer.write_all(b"text").unwrap();
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
    });
}

/// The most that a read copies in place.
const PIECE: usize = 1 << 20;

#[test]
fn a_read_of_a_device_takes_a_piece_of_what_never_ends() {
    in_tasks(|| {
        let mut device = File::open("/dev/zero").unwrap();
        let mut much = vec![1; 3 * PIECE];
        // The system may give less, where others are to run.
        let is_up_to = |most: usize, n: std::io::Result<usize>| (1..=most).contains(&n.unwrap());
        assert!(is_up_to(PIECE, device.read(&mut much)));
        device.read_exact(&mut much).unwrap();
        assert!(much.iter().all(|byte| *byte == 0));
        let (few, more) = much.split_at_mut(PIECE / 2);
        let n = device.read_vectored(&mut [
            IoSliceMut::new(&mut []),
            IoSliceMut::new(few),
            IoSliceMut::new(more),
        ]);
        assert!(is_up_to(PIECE / 2, n));
        let n = device.read_vectored(&mut [IoSliceMut::new(&mut []), IoSliceMut::new(&mut much)]);
        assert!(is_up_to(PIECE, n));
    });
}
