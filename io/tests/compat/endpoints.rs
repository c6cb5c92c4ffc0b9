//! Promises of what is polled beside streams that are sockets: listeners, pipes, and what lies in memory.

use std::fmt::Debug;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crate::abstract_name::abstract_address;
use crate::common::sides::{beside, guarded};
use crate::common::{in_tasks, kind, nap, pattern, runtime, until};
use crate::count::{Count, polled};
use crate::folder::Folder;
use crate::until_full::until_full;
use fibra_io::compat::{Async, Listener};
use fibra_io::io::{PipeReader, PipeWriter, duplex, pipe};
use fibra_io::net::{TcpListener, TcpStream, UdpSocket};
use fibra_io::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener, UnixStream};
use fibra_io::process::{ChildStdin, ChildStdout, Command};
use fibra_runtime::block_on;

/// More than pipes keep.
const MUCH: usize = 1 << 20;

// ---- what is read and what is written ----

/// What a reading end has to be, in every world.
trait Reads: futures_io::AsyncRead + tokio::io::AsyncRead + hyper::rt::Read + Send + Unpin + 'static {}
impl<T: futures_io::AsyncRead + tokio::io::AsyncRead + hyper::rt::Read + Send + Unpin + 'static> Reads for T {}

/// What a writing end has to be, in every world.
trait Writes: futures_io::AsyncWrite + tokio::io::AsyncWrite + hyper::rt::Write + Send + Unpin + 'static {}
impl<T: futures_io::AsyncWrite + tokio::io::AsyncWrite + hyper::rt::Write + Send + Unpin + 'static> Writes
    for T
{
}

fn pipes() -> (Async<PipeReader>, Async<PipeWriter>) {
    let (reader, writer) = pipe().unwrap();
    (Async::new(reader), Async::new(writer))
}

/// The pipes of a child that gives back what it gets.
fn childs() -> (Async<ChildStdout>, Async<ChildStdin>) {
    let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (output, input) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    (Async::new(output), Async::new(input))
}

/// One direction of a connection in memory.
fn in_memory() -> (impl Reads, impl Writes) {
    let (here, there) = duplex(1000);
    (Async::new(here), Async::new(there))
}

/// Runs a promise for every pair of ends there is.
macro_rules! for_all_ends {
    ($promise:ident) => {
        $promise(pipes);
        $promise(childs);
        $promise(in_memory);
    };
}

fn write<W: Writes>(writer: &mut W, context: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
    futures_io::AsyncWrite::poll_write(Pin::new(writer), context, buf)
}

/// Of futures-io, whose buffers are initialized already.
#[test]
fn a_futures_read_leaves_what_it_does_not_fill() {
    fn promise<R: Reads, W: Writes>(ends: impl Fn() -> (R, W) + Send + Sync) {
        in_tasks(|| {
            let (mut reader, mut writer) = ends();
            let mut buf = [7; 4];
            block_on(poll_fn(|context| {
                assert!(
                    futures_io::AsyncRead::poll_read(Pin::new(&mut reader), context, &mut buf).is_pending()
                );
                assert_eq!(buf, [7; 4]);
                write(&mut writer, context, &[1])
            }))
            .unwrap();
            let read = |context: &mut Context<'_>| {
                futures_io::AsyncRead::poll_read(Pin::new(&mut reader), context, &mut buf)
            };
            assert_eq!(block_on(poll_fn(read)).unwrap(), 1);
            assert_eq!(buf, [1, 7, 7, 7]);
        });
    }
    for_all_ends!(promise);
}

/// Polls a read of one byte.
fn read_byte<R: Reads>(reader: &mut R, context: &mut Context<'_>) -> Poll<io::Result<Option<u8>>> {
    let mut byte = [0];
    let read = futures_io::AsyncRead::poll_read(Pin::new(reader), context, &mut byte);
    read.map_ok(|count| (count == 1).then_some(byte[0]))
}

fn carries_what_is_written<R: Reads, W: Writes>(ends: impl Fn() -> (R, W)) {
    let (mut reader, mut writer) = ends();
    let sender = beside(move || {
        block_on(async { tokio::io::AsyncWriteExt::write_all(&mut writer, &pattern(MUCH)).await }).unwrap();
    });
    let mut all = Vec::new();
    block_on(tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut all)).unwrap();
    assert!(all == pattern(MUCH), "{} bytes came, or others", all.len());
    sender.join();

    // In one task: what waits for room does not keep the other from reading.
    let (mut reader, mut writer) = ends();
    let all = block_on(async {
        let sending = async move {
            futures_util::io::AsyncWriteExt::write_all(&mut writer, &pattern(MUCH)).await.unwrap();
            drop(writer);
        };
        let mut all = Vec::new();
        let reading = futures_util::io::AsyncReadExt::read_to_end(&mut reader, &mut all);
        futures_util::future::join(sending, reading).await.1.unwrap();
        all
    });
    assert!(all == pattern(MUCH), "{} bytes came, or others", all.len());

    let (mut reader, mut writer) = ends();
    let byte = block_on(async {
        let sent =
            poll_fn(|context| hyper::rt::Write::poll_write(Pin::new(&mut writer), context, &[42])).await;
        assert_eq!(sent.unwrap(), 1);
        let mut place = [0];
        let mut place = hyper::rt::ReadBuf::new(&mut place);
        poll_fn(|context| hyper::rt::Read::poll_read(Pin::new(&mut reader), context, place.unfilled()))
            .await
            .unwrap();
        place.filled()[0]
    });
    assert_eq!(byte, 42);
}

#[test]
fn megabytes_pass_through_every_pipe_by_the_traits_of_each_world() {
    in_tasks(|| {
        for_all_ends!(carries_what_is_written);
    });
}

fn keeps_the_last_waker_only<R: Reads, W: Writes>(ends: impl Fn() -> (R, W)) {
    let (mut reader, mut writer) = ends();
    let counts: Vec<Arc<Count>> = (0..4).map(|_| Arc::default()).collect();
    for count in &counts {
        assert!(polled(count, |context| read_byte(&mut reader, context)).is_pending());
    }
    assert!(counts[..3].iter().all(|count| Arc::strong_count(count) == 1));
    let other = Arc::default();
    assert!(polled(&other, |context| write(&mut writer, context, &[9])).is_ready());
    until(|| counts[3].wakes() == 1);
    assert!(counts[..3].iter().all(|count| count.wakes() == 0));
    assert_eq!(Arc::strong_count(&counts[3]), 1);
    assert!(matches!(polled(&other, |context| read_byte(&mut reader, context)), Poll::Ready(Ok(Some(9)))));

    assert!(polled(&counts[0], |context| read_byte(&mut reader, context)).is_pending());
    drop(writer);
    until(|| counts[0].wakes() == 1);
    drop(reader);
    assert_eq!(Arc::strong_count(&counts[0]), 1);
}

#[test]
fn only_the_waker_of_the_last_poll_is_kept_and_a_drop_lets_it_go() {
    in_tasks(|| {
        for_all_ends!(keeps_the_last_waker_only);
    });
}

/// Of ends between which nothing is taken away.
fn keeps_the_waker_of_a_writer<R: Reads, W: Writes>(ends: impl Fn() -> (R, W)) {
    let (mut reader, mut writer) = ends();
    let counts: [Arc<Count>; 3] = Default::default();
    until_full(&counts[0], |context| write(&mut writer, context, &[7; 4096]));
    assert!(polled(&counts[1], |context| write(&mut writer, context, &[7; 4096])).is_pending());
    assert!(polled(&counts[2], |context| write(&mut writer, context, &[7; 4096])).is_pending());
    assert!(counts[..2].iter().all(|count| Arc::strong_count(count) == 1));
    let before = counts.each_ref().map(|count| count.wakes());
    until(|| {
        let mut some = [0; 4096];
        let read = futures_io::AsyncRead::poll_read;
        block_on(poll_fn(|context| read(Pin::new(&mut reader), context, &mut some))).unwrap();
        counts[2].wakes() > before[2]
    });
    assert_eq!(counts[..2].iter().map(|count| count.wakes()).collect::<Vec<_>>(), before[..2]);
    until_full(&counts[2], |context| write(&mut writer, context, &[7; 4096]));
    assert_eq!(Arc::strong_count(&counts[2]), 2);
    drop(writer);
    assert_eq!(Arc::strong_count(&counts[2]), 1);
}

#[test]
fn a_waiting_writer_is_woken_in_the_same_way() {
    in_tasks(|| {
        keeps_the_waker_of_a_writer(pipes);
        keeps_the_waker_of_a_writer(in_memory);
    });
}

fn hears_of_the_end<R: Reads, W: Writes>(ends: impl Fn() -> (R, W)) {
    let (mut reader, writer) = ends();
    let count = Arc::default();
    assert!(polled(&count, |context| read_byte(&mut reader, context)).is_pending());
    drop(writer);
    until(|| count.wakes() > 0);
    assert_eq!(block_on(poll_fn(|context| read_byte(&mut reader, context))).unwrap(), None);

    let (reader, mut writer) = ends();
    let writing = beside(move || {
        loop {
            if let Err(error) = block_on(poll_fn(|context| write(&mut writer, context, &[7; 4096]))) {
                return error.kind();
            }
        }
    });
    nap(1);
    drop(reader);
    assert_eq!(writing.join(), ErrorKind::BrokenPipe);
}

#[test]
fn either_end_hears_that_the_other_was_dropped() {
    in_tasks(|| {
        for_all_ends!(hears_of_the_end);
    });
}

fn moves_several_buffers<R: Reads, W: Writes>(ends: impl Fn() -> (R, W)) {
    let (mut reader, mut writer) = ends();
    let parts = [IoSlice::new(b""), IoSlice::new(b"one"), IoSlice::new(b" two")];
    block_on(async {
        let mut sent = 0;
        while sent < 7 {
            let mut parts = parts;
            let mut parts = &mut parts[..];
            IoSlice::advance_slices(&mut parts, sent);
            sent += poll_fn(|context| {
                futures_io::AsyncWrite::poll_write_vectored(Pin::new(&mut writer), context, parts)
            })
            .await
            .unwrap();
        }
        let mut text: Vec<u8> = Vec::new();
        while text.len() < 7 {
            let (mut first, mut second) = ([0; 3], [0; 10]);
            let mut places =
                [IoSliceMut::new(&mut []), IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
            let count = poll_fn(|context| {
                futures_io::AsyncRead::poll_read_vectored(Pin::new(&mut reader), context, &mut places)
            });
            let count = count.await.unwrap();
            text.extend([&first[..], &second].concat().iter().take(count));
        }
        assert_eq!(text, b"one two");
    });
}

#[test]
fn several_buffers_are_written_and_read() {
    in_tasks(|| {
        for_all_ends!(moves_several_buffers);
    });
}

fn is_polled_anywhere<R: Reads, W: Writes>(ends: impl Fn() -> (R, W) + Send + Sync) {
    let runtime = runtime(2);
    let (mut reader, mut writer) = runtime.run(&ends);
    let sender = thread::spawn(move || {
        for byte in 0..50 {
            block_on(poll_fn(|context| write(&mut writer, context, &[byte]))).unwrap();
            thread::sleep(Duration::from_micros(100));
        }
    });
    for byte in 0..50 {
        let reading = poll_fn(|context| read_byte(&mut reader, context));
        let read = match byte % 3 {
            0 => block_on(reading),
            1 => futures_executor::block_on(reading),
            _ => runtime.run(|| block_on(reading)),
        };
        assert_eq!(read.unwrap(), Some(byte));
    }
    sender.join().unwrap();
    assert_eq!(futures_executor::block_on(poll_fn(|context| read_byte(&mut reader, context))).unwrap(), None);
}

#[test]
fn every_pipe_is_polled_on_any_thread_by_any_executor() {
    guarded(|| {
        for_all_ends!(is_polled_anywhere);
    });
}

#[test]
fn stream_in_memory_needs_no_reactor_and_a_pipe_is_refused_without_one() {
    guarded(|| {
        let (mut reader, mut writer) = in_memory();
        let sender = thread::spawn(move || {
            futures_executor::block_on(tokio::io::AsyncWriteExt::write_all(&mut writer, &pattern(MUCH)))
                .unwrap();
        });
        let mut all = Vec::new();
        futures_executor::block_on(tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut all)).unwrap();
        assert!(all == pattern(MUCH));
        sender.join().unwrap();
        let (mut reader, _writer) = pipes();
        let refused = futures_executor::block_on(poll_fn(|context| read_byte(&mut reader, context)));
        assert_eq!(kind(refused), ErrorKind::Unsupported);
    });
}

#[test]
fn one_that_polls_and_one_that_blocks_share_what_lies_in_memory() {
    in_tasks(|| {
        let (here, there) = duplex(10);
        let here = Arc::new(here);
        let mut polls = Async::new(there);
        let count = Arc::default();
        assert!(polled(&count, |context| read_byte(&mut polls, context)).is_pending());
        let writer = Arc::clone(&here);
        let writing = beside(move || (&*writer).write_all(&pattern(1000)));
        let mut all = Vec::new();
        while all.len() < 1000 {
            all.extend(block_on(poll_fn(|context| read_byte(&mut polls, context))).unwrap());
        }
        assert!(count.wakes() <= 1 && all == pattern(1000));
        writing.join().unwrap();
        let reading = beside(move || {
            let mut all = Vec::new();
            (&*here).read_to_end(&mut all).map(|_| all)
        });
        block_on(tokio::io::AsyncWriteExt::write_all(&mut polls, &pattern(1000))).unwrap();
        block_on(tokio::io::AsyncWriteExt::shutdown(&mut polls)).unwrap();
        assert!(reading.join().unwrap() == pattern(1000));
    });
}

#[test]
fn a_plain_file_that_is_taken_for_a_pipe_is_read_and_written() {
    in_tasks(|| {
        let folder = Folder::new();
        let path = folder.file("plain");
        let writer = PipeWriter::from(OwnedFd::from(File::create(&path).unwrap()));
        block_on(tokio::io::AsyncWriteExt::write_all(&mut Async::new(writer), &pattern(20_000))).unwrap();
        let reader = || Async::new(PipeReader::from(OwnedFd::from(File::open(&path).unwrap())));
        let (mut all, mut again) = (Vec::new(), Vec::new());
        block_on(tokio::io::AsyncReadExt::read_to_end(&mut reader(), &mut all)).unwrap();
        block_on(futures_util::io::AsyncReadExt::read_to_end(&mut reader(), &mut again)).unwrap();
        assert!(all == pattern(20_000) && again == all);
    });
}

// ---- listeners ----

fn tcp_listener() -> (Async<TcpListener>, impl Fn() -> TcpStream + Send + 'static) {
    let (listener, address) = crate::common::listener();
    (Async::new(listener), move || TcpStream::connect(address).unwrap())
}

fn unix_listener() -> (Async<UnixListener>, impl Fn() -> UnixStream + Send + 'static) {
    let address = abstract_address();
    let listener = UnixListener::bind_addr(&address).unwrap();
    (Async::new(listener), move || UnixStream::connect_addr(&address).unwrap())
}

/// Runs a promise for the listeners of both families.
macro_rules! for_all_listeners {
    ($promise:ident) => {
        $promise(tcp_listener);
        $promise(unix_listener);
    };
}

fn wakes_the_acceptor<L, C>(listener: impl Fn() -> (Async<L>, C))
where
    L: Listener<Address: Debug>,
    Async<L::Stream>: Reads,
    C: Fn() -> <L as Listener>::Stream,
{
    let (mut listener, connect) = listener();
    let counts: [Arc<Count>; 2] = Default::default();
    for count in &counts {
        assert!(polled(count, |context| listener.poll_accept(context)).is_pending());
    }
    assert_eq!(Arc::strong_count(&counts[0]), 1);
    let client = connect();
    until(|| counts[1].wakes() == 1);
    assert_eq!(counts[0].wakes(), 0);
    let Poll::Ready(accepted) = polled(&counts[0], |context| listener.poll_accept(context)) else {
        panic!("a connection is there")
    };
    let (mut server, _from) = accepted.unwrap();
    assert!(polled(&counts[0], |context| read_byte(&mut server, context)).is_pending());
    drop(client);
    assert_eq!(block_on(poll_fn(|context| read_byte(&mut server, context))).unwrap(), None);
    assert!(polled(&counts[0], |context| listener.poll_accept(context)).is_pending());
    drop((listener, server));
    assert_eq!(Arc::strong_count(&counts[0]), 1);
}

fn accepts_away_from_where_it_waited<L, C>(listener: impl Fn() -> (Async<L>, C) + Send + Sync)
where
    L: Listener<Address: Debug> + Send,
    Async<L::Stream>: Reads,
    C: Fn() -> <L as Listener>::Stream,
    <L as Listener>::Stream: Send + 'static,
    for<'a> &'a <L as Listener>::Stream: Write,
{
    let (listener, connect) = listener();
    let mut listener = Async::new(listener.into_inner());
    let runtime = runtime(1);
    runtime.run(|| {
        assert!(polled(&Arc::default(), |context| listener.poll_accept(context)).is_pending());
    });
    let listener = Async::new(listener.into_inner());
    let client = connect();
    let (mut server, _from) = futures_executor::block_on(listener.accept()).unwrap();
    let count = Arc::default();
    assert!(polled(&count, |context| read_byte(&mut server, context)).is_pending());
    (&client).write_all(&[7]).unwrap();
    let read = futures_executor::block_on(poll_fn(|context| read_byte(&mut server, context)));
    assert_eq!(read.unwrap(), Some(7));
}

/// The reactor of its listener gets its events.
#[test]
fn stream_accepted_away_from_tasks_waits_where_its_listener_has_waited() {
    guarded(|| {
        for_all_listeners!(accepts_away_from_where_it_waited);
    });
}

#[test]
fn a_connection_wakes_its_acceptor() {
    in_tasks(|| {
        for_all_listeners!(wakes_the_acceptor);
    });
}

fn serves_all_acceptors_at_once<L, C>(listener: impl Fn() -> (Async<L>, C))
where
    L: Listener<Address: Debug + Send> + Send + Sync + 'static,
    L::Stream: Send + 'static,
    C: Fn() -> <L as Listener>::Stream,
{
    let (listener, connect) = listener();
    let listener = Arc::new(listener);
    let accepting: Vec<_> = (0..10)
        .map(|_| {
            let listener = Arc::clone(&listener);
            beside(move || block_on(listener.accept()).unwrap().0)
        })
        .collect();
    let clients: Vec<_> = (0..10).map(|_| connect()).collect();
    let servers: Vec<_> = accepting.into_iter().map(|accepting| accepting.join()).collect();
    assert_eq!(clients.len(), servers.len());
    let late = fibra_runtime::timeout(Duration::from_millis(2), || block_on(listener.accept()));
    assert!(late.is_err(), "there are no more");
    let client = connect();
    block_on(listener.accept()).unwrap();
    drop(client);
}

#[test]
fn many_accept_from_one_listener_at_once_and_one_that_gives_up_takes_nothing() {
    in_tasks(|| {
        for_all_listeners!(serves_all_acceptors_at_once);
    });
}

fn accepts_for_a_foreign_executor<L, C>(listener: impl Fn() -> (Async<L>, C) + Send + Sync)
where
    L: Listener<Address: Debug> + Send,
    Async<L::Stream>: Reads,
    C: Fn() -> <L as Listener>::Stream + Send + 'static,
    <L as Listener>::Stream: Send + 'static,
    for<'a> &'a <L as Listener>::Stream: Write,
{
    let runtime = runtime(1);
    let (listener, connect) = runtime.run(&listener);
    let client = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1));
        let client = connect();
        thread::sleep(Duration::from_millis(1));
        (&client).write_all(&[5]).unwrap();
        client
    });
    // The reactor of the listener gets the events of the connection, too.
    let (mut server, _from) = futures_executor::block_on(listener.accept()).unwrap();
    let byte = futures_executor::block_on(poll_fn(|context| read_byte(&mut server, context)));
    assert_eq!(byte.unwrap(), Some(5));
    drop(client.join().unwrap());
}

#[test]
fn stream_accepted_off_the_workers_gets_events_where_its_listener_is() {
    guarded(|| {
        for_all_listeners!(accepts_for_a_foreign_executor);
    });
}

#[expect(dead_code, reason = "checked by the compiler only")]
fn bounds(listener: &Async<TcpListener>, socket: &Async<UnixDatagram>, address: &UnixAddress) {
    fn shared<T: Send + Sync + Unpin + 'static>() {}
    fn sent(_future: impl Future + Send) {}
    shared::<Async<UnixListener>>();
    shared::<Async<UdpSocket>>();
    shared::<Async<PipeReader>>();
    shared::<Async<ChildStdin>>();
    shared::<Async<fibra_io::io::DuplexStream>>();
    sent(listener.accept());
    sent(socket.recv_from(&mut []));
    sent(socket.send_to(&[], address));
}
