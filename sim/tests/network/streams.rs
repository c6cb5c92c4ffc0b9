//! Streams of the simulated network: how they carry, end and are reset.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;

use fibra::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};
use fibra::time;
use fibra_sim::{Sim, host, net};

use crate::{MILLI, SECOND, connect, echo, echo_server, simulate};

#[test]
fn a_packet_takes_the_latency() {
    simulate(|| {
        net::latency(20 * MILLI..=20 * MILLI);
        let _server = echo_server();
        let mut stream = connect();
        let begin = time::now();
        echo(&mut stream);
        let taken = time::now() - begin;
        assert!(taken >= 40 * MILLI && taken < 41 * MILLI, "{taken:?}");
    });
}

#[test]
fn an_advance_delivers_what_arrives_on_the_way() {
    simulate(|| {
        net::latency(20 * MILLI..=20 * MILLI);
        let _server = echo_server();
        let mut stream = connect();
        let begin = time::now();
        let echoing = fibra::spawn(move || {
            echo(&mut stream);
            time::now()
        });
        time::advance(SECOND);
        assert!(echoing.is_finished());
        let taken = echoing.join().unwrap() - begin;
        assert!(taken >= 40 * MILLI && taken < 50 * MILLI, "{taken:?}");
    });
}

#[test]
fn much_is_carried_through_small_buffers_and_a_slow_reader_slows_the_writer() {
    simulate(|| {
        const LEN: usize = 3 << 20;
        let reader = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let (mut buf, mut at) = (vec![0; 100_000], 0);
            loop {
                let n = stream.read(&mut buf).unwrap();
                if n == 0 {
                    break;
                }
                assert!(buf[..n].iter().enumerate().all(|(i, byte)| *byte == ((at + i) % 251) as u8));
                at += n;
                time::sleep(100 * MILLI);
            }
            assert_eq!(at, LEN);
        });
        net::loss(0.1);
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        let bytes: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
        let begin = time::now();
        stream.write_all(&bytes).unwrap();
        drop(stream);
        let taken = time::now() - begin;
        assert!(taken > SECOND, "the writer is slowed: {taken:?}");
        reader.join();
    });
}

#[test]
fn a_reset_is_econnreset() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        net::reset("main", "server");
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ECONNRESET));
        assert_eq!(stream.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_reader_that_sleeps_hears_of_the_reset() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        let reader = fibra::spawn(move || stream.read(&mut [0]).unwrap_err().kind());
        time::sleep(SECOND);
        net::reset("main", "server");
        assert_eq!(reader.join().unwrap(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn one_direction_ends_and_the_other_goes_on() {
    simulate(|| {
        let server = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let mut request = String::new();
            stream.read_to_string(&mut request).unwrap();
            time::sleep(SECOND);
            stream.write_all(request.to_uppercase().as_bytes()).unwrap();
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        stream.write_all(b"request").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "REQUEST");
        server.join();
    });
}

#[test]
fn a_stream_that_both_sides_have_ended_is_read_to_its_end() {
    simulate(|| {
        let server = host("server", || {
            let (mut stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            let mut request = String::new();
            stream.read_to_string(&mut request).unwrap();
            stream.write_all(request.to_uppercase().as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            time::sleep(2 * SECOND);
            assert_eq!(stream.read(&mut [0]).unwrap(), 0);
            assert_eq!(stream.local_addr().unwrap().port(), 80);
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        let local = stream.local_addr().unwrap();
        stream.write_all(b"request").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        time::sleep(SECOND);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!((answer.as_str(), stream.local_addr().unwrap()), ("REQUEST", local));
        server.join();
    });
}

#[test]
fn a_close_with_unread_bytes_resets() {
    simulate(|| {
        let server = host("server", || {
            let (stream, _) = TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap();
            time::sleep(SECOND);
            drop(stream);
        });
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        stream.write_all(b"never read").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
        server.join();
    });
}

#[test]
fn a_write_to_a_closed_connection_fails_in_the_end() {
    simulate(|| {
        let server = host("server", || drop(TcpListener::bind("0.0.0.0:80").unwrap().accept().unwrap()));
        time::sleep(SECOND);
        let mut stream = TcpStream::connect("server:80").unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        stream.write_all(b"into the void").unwrap();
        time::sleep(SECOND);
        let error = stream.write(b"x").unwrap_err().kind();
        assert!(matches!(error, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{error:?}");
        server.join();
    });
}

#[test]
fn a_program_that_reads_no_more_keeps_its_connection() {
    simulate(|| {
        let _server = echo_server();
        let mut stream = connect();
        echo(&mut stream);
        stream.shutdown(Shutdown::Read).unwrap();
        for _ in 0..10 {
            stream.write_all(b"x").unwrap();
            time::sleep(MILLI);
        }
        stream.shutdown(Shutdown::Both).unwrap();
        time::sleep(SECOND);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn sockets_leave_nothing_behind() {
    Sim::builder().run(|| {
        let _server = echo_server();
        // More than there are ports to choose from.
        for _ in 0..20_000 {
            UdpSocket::bind("0.0.0.0:0").unwrap();
        }
        for _ in 0..3 {
            time::sleep(SECOND);
            let socket = TcpSocket::v4().unwrap();
            socket.bind("0.0.0.0:99".parse().unwrap()).unwrap();
            let server = fibra::net::lookup_host("server:7").unwrap().next().unwrap();
            let mut stream = socket.connect(server).unwrap();
            echo(&mut stream);
            net::reset("main", "server");
        }
    });
}

#[test]
fn a_small_buffer_does_not_stop_a_writer() {
    simulate(|| {
        let _server = echo_server();
        let stream = connect();
        stream.set_send_buffer_size(4096).unwrap();
        let writer = stream.try_clone().unwrap();
        let writer = fibra::spawn(move || {
            (&writer).write_all(&[7; 100_000]).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut bytes = Vec::new();
        (&stream).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, [7; 100_000]);
        writer.join().unwrap();
    });
}
