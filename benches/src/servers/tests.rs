//! Tests of `servers`.

use super::*;
use fibra::net::TcpSocket;

#[test]
fn of_several_addresses_the_first_that_answers_is_chosen() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let open = listener.local_addr().expect("a listener has an address");
    // Bound, and do not listen: no other socket is given their ports.
    let closed = [(); 2].map(|()| TcpSocket::v4().expect("a socket"));
    let [one, other] = closed.each_ref().map(|socket| {
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a port is free");
        socket.local_addr().expect("a bound socket has an address")
    });
    let chosen = |addresses: &[SocketAddr]| choose(addresses, Protocol::Tcp);
    assert_eq!(chosen(&[one, open]), Some(open));
    assert_eq!(chosen(&[one, other]), Some(one));
    assert_eq!((chosen(&[one]), chosen(&[])), (Some(one), None));
}

#[test]
fn a_lookup_that_does_not_end_is_given_up_by_an_interrupt_and_in_time() {
    let (_busy, told) = mpsc::channel::<io::Result<()>>();
    let (now, interrupt) = (Instant::now(), Interrupt::default());
    let late = hear(&told, now, &interrupt).expect_err("nothing was found");
    assert!(late.to_string().contains("was not found within"), "{late}");
    interrupt.raise();
    let ended = hear(&told, now + Duration::from_secs(3600), &interrupt).expect_err("the user wants the end");
    assert_eq!(ended.kind(), io::ErrorKind::Interrupted);
}

#[test]
fn the_greeting_tells_the_address() {
    let address = |line| parse_greeting(line).map(|address| address.port()).ok();
    assert_eq!(address("listening on 127.0.0.1:4000"), Some(4000));
    assert_eq!(address("echo_server listening on [::1]:80 (1 worker)"), Some(80));
    assert_eq!(address("hello"), None);
}
