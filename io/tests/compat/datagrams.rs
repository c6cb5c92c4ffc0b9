//! Promises of datagram sockets that are polled.

use crate::abstract_name::abstract_address;
use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use crate::common::sides::{beside, guarded};
use crate::common::{in_tasks, kind, nap, runtime, until};
use crate::count::{Count, polled};
use crate::until_full::until_full;
use fibra_io::compat::{Async, Datagram};
use fibra_io::net::{SocketAddr, UdpSocket};
use fibra_io::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram};
use fibra_runtime::block_on;

/// Two sockets that are connected with each other, and their addresses.
fn udp() -> [(Async<UdpSocket>, SocketAddr); 2] {
    let [one, other] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let addresses = [one.local_addr().unwrap(), other.local_addr().unwrap()];
    one.connect(addresses[1]).unwrap();
    other.connect(addresses[0]).unwrap();
    [(Async::new(one), addresses[0]), (Async::new(other), addresses[1])]
}

fn unix() -> [(Async<UnixDatagram>, UnixAddress); 2] {
    let [(one, first), (other, second)] = [(); 2].map(|()| {
        let address = abstract_address();
        (UnixDatagram::bind_addr(&address).unwrap(), address)
    });
    one.connect_addr(&second).unwrap();
    other.connect_addr(&first).unwrap();
    [(Async::new(one), first), (Async::new(other), second)]
}

/// Runs a promise for the sockets of both families.
macro_rules! for_all_messages {
    ($promise:ident) => {
        $promise(udp);
        $promise(unix);
    };
}

fn exchanges_messages<S>(pair: impl Fn() -> [(Async<S>, S::Address); 2])
where
    S: Datagram<Address: Debug> + 'static,
{
    let [(mut one, first), (mut other, second)] = pair();
    let mut buf = [0; 16];
    block_on(async {
        assert_eq!(one.send(b"one").await.unwrap(), 3);
        assert_eq!(other.recv(&mut buf).await.unwrap(), 3);
        assert_eq!(other.send_to(b"other", &first).await.unwrap(), 5);
        let (len, from) = one.recv_from(&mut buf).await.unwrap();
        assert_eq!((&buf[..len], format!("{from:?}")), (&b"other"[..], format!("{second:?}")));
    });
    block_on(poll_fn(|context| one.poll_send(context, b"a"))).unwrap();
    assert_eq!(block_on(poll_fn(|context| other.poll_recv(context, &mut buf))).unwrap(), 1);
    block_on(poll_fn(|context| other.poll_send_to(context, b"bc", &first))).unwrap();
    let (len, from) = block_on(poll_fn(|context| one.poll_recv_from(context, &mut buf))).unwrap();
    assert_eq!((len, format!("{from:?}")), (2, format!("{second:?}")));
}

#[test]
fn messages_come_whole_and_with_their_senders() {
    in_tasks(|| {
        for_all_messages!(exchanges_messages);
    });
}

fn wakes_the_last_receiver<S: Datagram + 'static>(pair: impl Fn() -> [(Async<S>, S::Address); 2]) {
    let [(one, _), (mut other, _)] = pair();
    let counts: [Arc<Count>; 3] = Default::default();
    for count in &counts {
        assert!(polled(count, |context| other.poll_recv_from(context, &mut [0])).is_pending());
    }
    block_on(one.send(&[1])).unwrap();
    until(|| counts[2].wakes() == 1);
    assert!(counts[..2].iter().all(|count| count.wakes() == 0 && Arc::strong_count(count) == 1));
    assert!(polled(&counts[0], |context| other.poll_recv(context, &mut [0])).is_ready());
    assert!(polled(&counts[0], |context| other.poll_recv(context, &mut [0])).is_pending());
    drop(other);
    assert_eq!(Arc::strong_count(&counts[0]), 1);
}

#[test]
fn a_message_wakes_the_last_poller() {
    in_tasks(|| {
        for_all_messages!(wakes_the_last_receiver);
    });
}

fn serves_all_receivers_at_once<S>(pair: impl Fn() -> [(Async<S>, S::Address); 2])
where
    S: Datagram + Send + Sync + 'static,
{
    let [(one, _), (other, _)] = pair();
    let other = Arc::new(other);
    let receiving: Vec<_> = (0..5)
        .map(|_| {
            let other = Arc::clone(&other);
            beside(move || {
                let mut byte = [0];
                assert_eq!(block_on(other.recv(&mut byte)).unwrap(), 1);
                byte[0]
            })
        })
        .collect();
    for byte in 0..5 {
        block_on(one.send(&[byte])).unwrap();
    }
    let mut bytes: Vec<u8> = receiving.into_iter().map(|receiving| receiving.join()).collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [0, 1, 2, 3, 4]);
    assert!(fibra_runtime::timeout(Duration::from_millis(2), || block_on(other.recv(&mut [0]))).is_err());
    block_on(one.send(&[1, 2])).unwrap();
    assert_eq!(block_on(other.recv(&mut [0; 9])).unwrap(), 2);
}

#[test]
fn many_receive_from_one_socket_at_once_and_one_that_gives_up_takes_nothing() {
    in_tasks(|| {
        for_all_messages!(serves_all_receivers_at_once);
    });
}

fn receives_for_a_foreign_executor<S>(pair: impl Fn() -> [(Async<S>, S::Address); 2] + Send + Sync)
where
    S: Datagram<Address: Send> + Send + 'static,
{
    let runtime = runtime(2);
    let [(one, _), (other, _)] = runtime.run(&pair);
    let sender = thread::spawn(move || {
        for byte in 0..20 {
            thread::sleep(Duration::from_micros(200));
            futures_executor::block_on(one.send(&[byte])).unwrap();
        }
    });
    for byte in 0..20 {
        let mut place = [0];
        futures_executor::block_on(other.recv(&mut place)).unwrap();
        assert_eq!(place, [byte]);
    }
    sender.join().unwrap();
}

#[test]
fn messages_are_received_on_any_thread_by_any_executor() {
    guarded(|| {
        for_all_messages!(receives_for_a_foreign_executor);
        let [(one, _), (other, _)] = udp();
        assert_eq!(kind(futures_executor::block_on(other.recv(&mut [0]))), ErrorKind::Unsupported);
        drop(one);
    });
}

/// One with room for more than the queue of any receiver keeps, which some systems let grow beyond what a socket has by itself.
fn roomy() -> UnixDatagram {
    let socket = UnixDatagram::unbound().unwrap();
    socket.set_send_buffer_size(1 << 20).unwrap();
    socket
}

/// Sends until it would have to wait.
fn flood(
    socket: &mut Async<UnixDatagram>,
    count: &Arc<Count>,
    send: impl Fn(&mut Async<UnixDatagram>, &mut Context<'_>) -> Poll<io::Result<usize>>,
) -> usize {
    until_full(count, |context| send(socket, context))
}

#[test]
fn each_direction_of_a_datagram_socket_keeps_its_own_waker() {
    in_tasks(|| {
        let [(mut one, _), (other, _)] = unix();
        let (reads, writes) = (Arc::default(), Arc::default());
        assert!(polled(&reads, |context| one.poll_recv(context, &mut [0])).is_pending());
        let sent = flood(&mut one, &writes, |one, context| one.poll_send(context, &[7]));
        let before = writes.wakes();
        assert_eq!(reads.wakes(), 0);
        for _ in 0..sent {
            block_on(other.recv(&mut [0])).unwrap();
        }
        until(|| writes.wakes() > before);
        assert_eq!(reads.wakes(), 0);
        assert!(polled(&writes, |context| one.poll_send(context, &[7])).is_ready());
        block_on(other.send(&[1])).unwrap();
        until(|| reads.wakes() == 1);
    });
}

/// The queue of the receiver is full, of which the sender's socket gets no event.
#[test]
fn a_send_to_an_address_waits_for_the_queue_of_its_owner() {
    in_tasks(|| {
        let address = abstract_address();
        let receiver = Async::new(UnixDatagram::bind_addr(&address).unwrap());
        let mut sender = Async::new(roomy());
        let counts: [Arc<Count>; 2] = Default::default();
        let send = |sender: &mut Async<UnixDatagram>, context: &mut Context<'_>| {
            sender.poll_send_to(context, &[7], &address)
        };
        let mut sent = flood(&mut sender, &counts[0], send);
        assert!(polled(&counts[1], |context| send(&mut sender, context)).is_pending());
        assert_eq!(Arc::strong_count(&counts[0]), 1);
        nap(1);
        assert_eq!(counts[1].wakes(), 0);
        while counts[1].wakes() == 0 {
            sent -= usize::from(sent > 0 && block_on(receiver.recv(&mut [0])).is_ok());
            nap(1);
        }
        assert_eq!(counts[0].wakes(), 0);
        assert!(polled(&counts[0], |context| send(&mut sender, context)).is_ready());
        // Another receiver has room all the while.
        flood(&mut sender, &counts[0], send);
        let elsewhere = abstract_address();
        let other = UnixDatagram::bind_addr(&elsewhere).unwrap();
        assert!(polled(&counts[1], |context| sender.poll_send_to(context, &[8], &elsewhere)).is_ready());
        other.recv(&mut [0]).unwrap();
        // The `async` form, of several at once.
        let (sender, receiver) = (Arc::new(sender), Arc::new(receiver));
        let sending: Vec<_> = (0..5)
            .map(|_| {
                let (sender, address) = (Arc::clone(&sender), address.clone());
                beside(move || {
                    for _ in 0..20 {
                        block_on(sender.send_to(&[9], &address)).unwrap();
                    }
                })
            })
            .collect();
        let mut nines = 0;
        let mut byte = [0];
        while nines < 100 {
            block_on(receiver.recv(&mut byte)).unwrap();
            nines += usize::from(byte == [9]);
        }
        sending.into_iter().for_each(|sending| sending.join());
        drop((sender, receiver));
        assert!(counts.iter().all(|count| Arc::strong_count(count) == 1));
    });
}

#[test]
fn a_waiter_for_the_queue_of_a_receiver_that_is_dropped_fails() {
    in_tasks(|| {
        let address = abstract_address();
        let receiver = UnixDatagram::bind_addr(&address).unwrap();
        let mut sender = Async::new(roomy());
        let count = Arc::default();
        flood(&mut sender, &count, |sender, context| sender.poll_send_to(context, &[7], &address));
        drop(receiver);
        until(|| count.wakes() > 0);
        assert_eq!(kind(block_on(sender.send_to(&[7], &address))), ErrorKind::ConnectionRefused);
        let refused = polled(&count, |context| sender.poll_send_to(context, &[7], &address));
        assert!(matches!(refused, Poll::Ready(Err(_))));
    });
}

#[test]
fn a_waiter_for_a_queue_waits_on_when_a_full_queue_takes_its_place() {
    in_tasks(|| {
        let address = abstract_address();
        let first = UnixDatagram::bind_addr(&address).unwrap();
        let mut sender = Async::new(roomy());
        let count: Arc<Count> = Arc::default();
        let send = |sender: &mut Async<UnixDatagram>, context: &mut Context<'_>| {
            sender.poll_send_to(context, &[7], &address)
        };
        flood(&mut sender, &count, send);
        let before = count.wakes();
        drop(first);
        until(|| count.wakes() > before);
        let second = UnixDatagram::bind_addr(&address).unwrap();
        let other = roomy();
        other.set_nonblocking(true).unwrap();
        while other.send_to_addr(&[8], &address).is_ok() {}
        assert!(polled(&count, |context| send(&mut sender, context)).is_pending());
        let (before, mut place) = (count.wakes(), [0]);
        second.set_nonblocking(true).unwrap();
        until(|| {
            _ = second.recv(&mut place);
            count.wakes() > before
        });
        assert!(polled(&count, |context| send(&mut sender, context)).is_ready());
        until(|| second.recv(&mut place).is_ok() && place == [7]);
    });
}

#[test]
fn a_datagram_socket_that_is_shut_down_wakes_receivers_and_senders() {
    in_tasks(|| {
        let [(mut one, _), (other, _)] = unix();
        let (reads, writes) = (Arc::default(), Arc::default());
        assert!(polled(&reads, |context| one.poll_recv(context, &mut [0])).is_pending());
        flood(&mut one, &writes, |one, context| one.poll_send(context, &[7]));
        one.get_ref().set_nonblocking(true).unwrap();
        one.get_ref().shutdown(Shutdown::Both).unwrap();
        until(|| reads.wakes() > 0);
        assert_eq!(block_on(one.recv(&mut [0])).unwrap(), 0);
        assert_eq!(block_on(one.recv_from(&mut [0])).unwrap().0, 0);
        until(|| writes.wakes() > 0);
        assert_eq!(kind(block_on(one.send(&[7]))), ErrorKind::BrokenPipe);
        drop(other);
    });
}

/// A receiver connected to the sender is never full to it, and no other socket can wait for it.
#[test]
fn replies_to_a_client_that_is_connected_to_the_server_wait_for_room_of_the_server() {
    const SENDERS: usize = 2;
    const EACH: usize = 10_000;
    in_tasks(|| {
        let (at, to) = (abstract_address(), abstract_address());
        let server = Arc::new(UnixDatagram::bind_addr(&at).unwrap());
        server.set_send_buffer_size(1).unwrap();
        let client = std::os::unix::net::UnixDatagram::bind_addr(&to).unwrap();
        client.connect_addr(&at).unwrap();
        let senders = [(); SENDERS].map(|()| {
            let (server, to) = (Async::new(server.try_clone().unwrap()), to.clone());
            beside(move || {
                (0..EACH).for_each(|_| assert_eq!(block_on(server.send_to(&[1; 16], &to)).unwrap(), 16));
            })
        });
        let receiver = thread::spawn(move || {
            (0..SENDERS * EACH).for_each(|_| assert_eq!(client.recv(&mut [0; 16]).unwrap(), 16));
        });
        senders.into_iter().for_each(|sender| sender.join());
        receiver.join().unwrap();
    });
}
