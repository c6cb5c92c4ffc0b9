//! Websockets over the simulated network.

use std::time::Duration;

use fibra::net::{TcpListener, TcpStream};
use fibra_sim::{host, net};
use tungstenite::{Error, Message};

/// tungstenite takes random masks from the system, so runs of one seed differ in what they carry.
#[fibra::test(seeds = 20)]
fn tungstenite_over_the_simulated_net() {
    net::latency(Duration::ZERO..=Duration::from_millis(50));
    net::loss(0.1);
    let server = host("server", serve);
    // It begins to listen.
    fibra::sleep(Duration::from_secs(1));
    let stream = TcpStream::connect("server:80").unwrap();
    let (mut socket, _) = tungstenite::client("ws://server/", stream).unwrap();
    for len in [0, 1, 70_000] {
        let text = "x".repeat(len);
        socket.send(Message::text(text.clone())).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text(text));
    }
    socket.close(None).unwrap();
    while socket.read().is_ok() {}
    assert!(matches!(socket.read(), Err(Error::AlreadyClosed | Error::ConnectionClosed)));
    server.join();
}

/// Echoes the messages of one client until it closes.
fn serve() {
    let (stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
    let mut socket = tungstenite::accept(stream).unwrap();
    loop {
        match socket.read() {
            Ok(message) if message.is_text() => socket.send(message).unwrap(),
            Ok(_) => {}
            Err(Error::ConnectionClosed) => return,
            Err(error) => panic!("{error}"),
        }
    }
}
