//! The example `resp_server`, talked to as the clients of Redis do, and as others do.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::client::{ends, payload};
use crate::common::resp::{ask, pack, reply};
use crate::common::server::Server;
use crate::common::{HANG, example, until};

/// What the server must still do after whatever was done to it.
fn serves(server: &Server) {
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &["PING"]), b"+PONG\r\n");
    assert_eq!(ask(&mut stream, &["SET", "serves", "it does"]), b"+OK\r\n");
    assert_eq!(ask(&mut stream, &["GET", "serves"]), b"$7\r\nit does\r\n");
}

/// Sees to it that each request, which is its words, has its answer; one after the other on a server that knows nothing.
fn answers(dialogue: &[(&str, &str)]) {
    // As people type, and as clients send.
    let typed: fn(&str) -> Vec<u8> = |words| format!("{words}\r\n").into_bytes();
    let packed: fn(&str) -> Vec<u8> = |words| pack(&words.split(' ').collect::<Vec<_>>());
    for form in [typed, packed] {
        let server = Server::start("resp_server");
        let mut stream = server.connect();
        for (request, due) in dialogue {
            stream.write_all(&form(request)).expect("sent");
            let reply = String::from_utf8_lossy(&reply(&mut stream)).into_owned();
            match (request.starts_with("TTL"), seconds(due)) {
                // Some may have passed.
                (true, Some(due @ 1..)) => {
                    let left = seconds(&reply).unwrap_or_else(|| panic!("{request}: {reply}"));
                    assert!((due - HANG.as_secs() as i64..=due).contains(&left), "{request}: {reply}");
                }
                _ => assert_eq!(reply, *due, "{request}"),
            }
        }
    }
}

fn seconds(reply: &str) -> Option<i64> {
    reply.strip_prefix(':')?.trim().parse().ok()
}

const OK: &str = "+OK\r\n";
const NIL: &str = "$-1\r\n";
const NO_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &str = "-ERR increment or decrement would overflow\r\n";
const SYNTAX: &str = "-ERR syntax error\r\n";

#[test]
fn values_are_set_read_and_deleted() {
    answers(&[
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        ("Echo hello", "$5\r\nhello\r\n"),
        ("GET a", NIL),
        ("SET a 1", OK),
        ("get a", "$1\r\n1\r\n"),
        ("SET a another", OK),
        ("GET a", "$7\r\nanother\r\n"),
        ("SET b 2", OK),
        ("EXISTS a b c a", ":3\r\n"),
        ("DEL a b c a", ":2\r\n"),
        ("EXISTS a b", ":0\r\n"),
    ]);
}

#[test]
fn a_value_is_set_only_if_there_is_one_or_none_when_asked_so() {
    answers(&[
        ("SET a 1 XX", NIL),
        ("GET a", NIL),
        ("SET a 1 NX", OK),
        ("SET a 2 nx", NIL),
        ("GET a", "$1\r\n1\r\n"),
        ("SET a 3 xx EX 100", OK),
        ("TTL a", ":100\r\n"),
        ("SET a 4 PX 100000 XX", OK),
        ("GET a", "$1\r\n4\r\n"),
        ("TTL a", ":100\r\n"),
        // A value that is set anew stays.
        ("SET a 5", OK),
        ("TTL a", ":-1\r\n"),
    ]);
}

#[test]
fn numbers_are_counted_up_and_down_to_the_last() {
    answers(&[
        ("INCR n", ":1\r\n"),
        ("INCRBY n 41", ":42\r\n"),
        ("DECR n", ":41\r\n"),
        ("DECRBY n -1", ":42\r\n"),
        ("DECRBY n 100", ":-58\r\n"),
        ("GET n", "$3\r\n-58\r\n"),
        ("INCRBY n x", NO_INTEGER),
        ("SET n 9223372036854775807", OK),
        ("INCR n", OVERFLOW),
        ("DECRBY n -1", OVERFLOW),
        ("GET n", "$19\r\n9223372036854775807\r\n"),
        ("SET n -9223372036854775808", OK),
        ("DECR n", OVERFLOW),
        ("DECRBY n -9223372036854775808", OVERFLOW),
        ("SET n 9223372036854775808", OK),
        ("INCR n", NO_INTEGER),
        ("SET n 1.5", OK),
        ("INCR n", NO_INTEGER),
        ("SET n +1", OK),
        ("INCR n", NO_INTEGER),
        ("SET n 01", OK),
        ("DECR n", NO_INTEGER),
        ("SET n -0", OK),
        ("DECR n", NO_INTEGER),
        ("SET n 5 EX 100", OK),
        ("INCR n", ":6\r\n"),
        ("TTL n", ":100\r\n"),
    ]);
}

#[test]
fn keys_live_as_long_as_they_are_told_to() {
    answers(&[
        ("TTL a", ":-2\r\n"),
        ("PTTL a", ":-2\r\n"),
        ("EXPIRE a 100", ":0\r\n"),
        ("PERSIST a", ":0\r\n"),
        ("SET a 1", OK),
        ("TTL a", ":-1\r\n"),
        ("PTTL a", ":-1\r\n"),
        ("PERSIST a", ":0\r\n"),
        ("EXPIRE a 100", ":1\r\n"),
        ("TTL a", ":100\r\n"),
        ("PEXPIRE a 200000", ":1\r\n"),
        ("TTL a", ":200\r\n"),
        ("PERSIST a", ":1\r\n"),
        ("TTL a", ":-1\r\n"),
        ("EXPIRE a -1", ":1\r\n"),
        ("GET a", NIL),
        ("SET a 1 EX 100", OK),
        ("PEXPIRE a 0", ":1\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("SET a 1 EX 100", OK),
        ("DEL a", ":1\r\n"),
        ("SET a 1", OK),
        ("TTL a", ":-1\r\n"),
    ]);
}

#[test]
fn each_mistake_has_its_error_and_the_connection_stays() {
    answers(&[
        ("NONE", "-ERR unknown command 'NONE'\r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("get a b", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("SET a", "-ERR wrong number of arguments for 'set' command\r\n"),
        ("DEL", "-ERR wrong number of arguments for 'del' command\r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
        ("SET a 1 NX XX", SYNTAX),
        ("SET a 1 EX 1 PX 1", SYNTAX),
        ("SET a 1 EX", SYNTAX),
        ("SET a 1 what", SYNTAX),
        ("SET a 1 EX x", NO_INTEGER),
        ("SET a 1 EX 1.5", NO_INTEGER),
        ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command\r\n"),
        ("SET a 1 PX -5", "-ERR invalid expire time in 'set' command\r\n"),
        ("SET a 1 EX 9223372036854775807", "-ERR invalid expire time in 'set' command\r\n"),
        ("EXPIRE a x", NO_INTEGER),
        ("EXPIRE a 9223372036854775807", "-ERR invalid expire time in 'expire' command\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("SELECT 0", OK),
        ("SELECT 1", "-ERR DB index is out of range\r\n"),
        ("HELLO 3", "-NOPROTO unsupported protocol version\r\n"),
        ("PING", "+PONG\r\n"),
    ]);
}

#[test]
fn clients_are_told_what_they_ask_before_they_begin() {
    answers(&[
        ("COMMAND", "*0\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n"),
        ("CONFIG GET none", "*0\r\n"),
        ("CLIENT SETNAME me", OK),
        ("CLIENT SETINFO LIB-NAME mine", OK),
    ]);
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    for request in [&["HELLO"][..], &["HELLO", "2"]] {
        let reply = ask(&mut stream, request);
        assert!(reply.starts_with(b"*10\r\n$6\r\nserver\r\n$5\r\nfibra\r\n"), "{:?}", reply.escape_ascii());
    }
    assert!(ask(&mut stream, &["INFO"]).starts_with(b"$"));
    assert_eq!(ask(&mut stream, &["QUIT"]), OK.as_bytes());
    ends(&mut stream);
}

#[test]
fn inline_commands_may_be_quoted() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    for (line, echoed) in [
        (&b"echo plain"[..], &b"plain"[..]),
        (b"  echo\t\"two words\"  ", b"two words"),
        (b"echo ''", b""),
        (br#"echo "\"\\\n\r\t\a\b\x00\xfF\z\x0""#, b"\"\\\n\r\t\x07\x08\x00\xffzx0"),
        (br#"echo 'it\'s \n'"#, br"it's \n"),
        (br#"echo a"b c""#, b"ab c"),
        (b"\"echo\" \xff\x00\xfe", b"\xff\x00\xfe"),
    ] {
        stream.write_all(&[line, b"\n"].concat()).expect("sent");
        let due = [format!("${}\r\n", echoed.len()).as_bytes(), echoed, b"\r\n"].concat();
        let reply = reply(&mut stream);
        assert_eq!(
            reply.escape_ascii().to_string(),
            due.escape_ascii().to_string(),
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn keys_and_values_are_any_bytes() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    let all: Vec<u8> = (0..=255).collect();
    let keys = [&all[..], b"", b"\r\n", b"$-1\r\n", b" ", b"\0", b"\0\0", b"\xff\xfe"];
    for (number, key) in keys.iter().enumerate() {
        let value = [*key, &[number as u8], &all].concat();
        assert_eq!(ask(&mut stream, &[b"SET", *key, &value]), OK.as_bytes());
    }
    for (number, key) in keys.iter().enumerate() {
        let value = [*key, &[number as u8], &all].concat();
        let due = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(ask(&mut stream, &[b"GET", *key]), due, "{}", key.escape_ascii());
        assert_eq!(ask(&mut stream, &[b"DEL", *key]), b":1\r\n");
    }
    // What is no name of a command is shown so that the answer stays one line.
    assert_eq!(ask(&mut stream, &[b"\r\n\xff'"]), b"-ERR unknown command '\\r\\n\\xff\\''\r\n");
}

#[test]
fn ten_thousand_requests_in_one_write_are_answered_in_order() {
    const REQUESTS: usize = 10_000;
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
    let requests: Vec<u8> = (0..REQUESTS)
        .flat_map(|number| match number % 4 {
            0 => pack(&["SET", "key", &number.to_string()]),
            1 => pack(&["INCR", "key"]),
            2 => b"GET key\r\n".to_vec(),
            _ => pack(&["ECHO", "x"]),
        })
        .collect();
    thread::scope(|scope| {
        scope.spawn(|| stream.write_all(&requests).expect("sent"));
        for number in 0..REQUESTS {
            let reply = reply(&mut reader);
            let due = match number % 4 {
                0 => OK.to_owned(),
                1 => format!(":{number}\r\n"),
                2 => format!("${}\r\n{}\r\n", (number - 1).to_string().len(), number - 1),
                _ => "$1\r\nx\r\n".to_owned(),
            };
            assert_eq!(String::from_utf8_lossy(&reply), due, "request {number}");
        }
    });
    serves(&server);
}

#[test]
#[cfg(target_os = "linux")]
fn requests_that_come_together_are_answered_together() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &["PING"]), b"+PONG\r\n");
    let before = segments(&stream);
    // They fit into one segment, and so do the answers.
    stream.write_all(&b"PING\r\n".repeat(1000)).expect("sent");
    (0..1000).for_each(|_| assert_eq!(reply(&mut stream), b"+PONG\r\n"));
    assert_eq!(segments(&stream) - before, 1);
}

/// How many segments with data have come on a connection.
#[cfg(target_os = "linux")]
fn segments(stream: &TcpStream) -> u32 {
    use std::mem::MaybeUninit;
    use std::os::fd::AsRawFd;

    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (fd, place) = (stream.as_raw_fd(), info.as_mut_ptr().cast());
    // SAFETY: the descriptor is open, and there is so much place for what is written there.
    let outcome = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut length) };
    assert_eq!(outcome, 0);
    // SAFETY: all of it are numbers, for which zeroes will do where the kernel wrote nothing.
    unsafe { info.assume_init() }.tcpi_data_segs_in
}

#[test]
fn a_request_may_be_split_anywhere() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    let value = b"a\r\nvalue";
    let set = pack(&[b"SET", b"key", &value[..]]);
    for split in 0..=set.len() {
        assert_eq!(ask(&mut stream, &["DEL", "key"]), if split == 0 { b":0\r\n" } else { b":1\r\n" });
        for part in [&set[..split], &set[split..]] {
            stream.write_all(part).expect("sent");
            thread::yield_now();
        }
        assert_eq!(reply(&mut stream), OK.as_bytes(), "split at {split}");
        assert_eq!(ask(&mut stream, &["GET", "key"]), b"$8\r\na\r\nvalue\r\n", "split at {split}");
    }
    for byte in [&set[..], b"GET key\r\n"].concat() {
        stream.write_all(&[byte]).expect("sent");
    }
    assert_eq!(reply(&mut stream), OK.as_bytes());
    assert_eq!(reply(&mut stream), b"$8\r\na\r\nvalue\r\n");
}

#[test]
fn values_are_as_long_as_the_limit_and_no_longer() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    for length in [0, 1, 16 * 1024 - 1, 16 * 1024, 100_000, 1 << 20] {
        let value = payload(length);
        assert_eq!(ask(&mut stream, &[b"SET", b"key", &value[..]]), OK.as_bytes(), "{length}");
        let due = [format!("${length}\r\n").as_bytes(), &value, b"\r\n"].concat();
        // Several, which are more than the server keeps before it sends.
        stream.write_all(&pack(&["GET", "key"]).repeat(5)).expect("sent");
        (0..5)
            .for_each(|_| assert!(reply(&mut stream) == due, "{length} bytes, or others, do not come back"));
    }
    let keys = vec!["key"; 1023];
    assert_eq!(ask(&mut stream, &[&["EXISTS"], &keys[..]].concat()), b":1023\r\n");
    let longest = vec![b'x'; 1 << 20];
    for (request, due) in [
        (pack(&[b"SET", b"key", &[&longest[..], b"x"].concat()[..]]), "invalid bulk length"),
        (pack(&[&["EXISTS", "key"], &keys[..]].concat()), "invalid multibulk length"),
        (pack(&[b"EXISTS", &longest[..], &longest, &longest, &longest]), "too big request"),
    ] {
        refuses(&server, &request, due);
    }
    serves(&server);
}

/// Sees the request refused as one that breaks the protocol, and the end of the connection.
fn refuses(server: &Server, request: &[u8], due: &str) {
    let mut stream = server.connect();
    stream.write_all(request).expect("sent");
    let begin = request[..request.len().min(40)].escape_ascii();
    let due = format!("-ERR Protocol error: {due}\r\n");
    assert_eq!(String::from_utf8_lossy(&reply(&mut stream)), due, "{begin}");
    ends(&mut stream);
}

#[test]
fn a_protocol_error_is_named_and_the_server_goes_on() {
    let server = Server::start("resp_server");
    for (request, due) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*1\n", "invalid multibulk length"),
        (b"*1025\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*111111111111111111111111111111111111", "too big mbulk count string"),
        (b"*1\r\n:1\r\n", "expected '$', for arguments are byte strings"),
        (b"*1\r\n*1\r\n$4\r\nPING\r\n", "expected '$', for arguments are byte strings"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$1048577\r\n", "invalid bulk length"),
        (b"*1\r\n$ 4\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$111111111111111111111111111111111111", "too big bulk count string"),
        (b"*1\r\n$3\r\nPING\r\n", "expected the end of a line behind an argument"),
        (b"get \"a\r\n", "unbalanced quotes in request"),
        (b"get 'a'b\r\n", "unbalanced quotes in request"),
        (b"get \"\\\r\n", "unbalanced quotes in request"),
        (&[b'x'; 4096], "too big inline request"),
        (&[&b"x ".repeat(1025)[..], b"\r\n"].concat(), "too many words"),
    ] {
        refuses(&server, request, due);
    }
    serves(&server);
    // What was asked before is answered, and what comes after is not.
    let mut stream = server.connect();
    stream.write_all(b"SET a 1\r\nINCR a\r\n*1\r\nPING\r\nSET a 5\r\n").expect("sent");
    let mut replies = String::new();
    stream.read_to_string(&mut replies).expect("an orderly end");
    let due = "+OK\r\n:2\r\n-ERR Protocol error: expected '$', for arguments are byte strings\r\n";
    assert_eq!(replies, due);
    assert_eq!(ask(&mut server.connect(), &["GET", "a"]), b"$1\r\n2\r\n");
    // Nor is a browser.
    let mut stream = server.connect();
    stream.write_all(b"POST / HTTP/1.1\r\n\r\nSET a 5\r\n").expect("sent");
    ends(&mut stream);
    assert_eq!(ask(&mut server.connect(), &["GET", "a"]), b"$1\r\n2\r\n");
    serves(&server);
}

#[test]
fn an_expired_key_is_not_seen_and_is_removed() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    assert_eq!(ask(&mut stream, &["SET", "a", "1", "PX", "30"]), OK.as_bytes());
    until(|| match &*ask(&mut stream, &["GET", "a"]) {
        b"$-1\r\n" => Ok(()),
        other => Err(format!("there is {}", other.escape_ascii())),
    });
    assert_eq!(ask(&mut stream, &["EXISTS", "a"]), b":0\r\n");
    assert_eq!(ask(&mut stream, &["TTL", "a"]), b":-2\r\n");
    assert_eq!(ask(&mut stream, &["SET", "a", "1", "XX"]), NIL.as_bytes());
    assert_eq!(ask(&mut stream, &["INCR", "a"]), b":1\r\n");
    assert_eq!(ask(&mut stream, &["TTL", "a"]), b":-1\r\n");
    // More than one sweep takes from a shard at once; each told twice when to go.
    for number in 0..10_000 {
        let key = format!("key {number}");
        let mut both = pack(&["SET", &key, "1", "EX", "1000"]);
        both.extend(pack(&["PEXPIRE", &key, "1"]));
        stream.write_all(&both).expect("sent");
        assert_eq!(reply(&mut stream), OK.as_bytes());
        assert_eq!(reply(&mut stream), b":1\r\n");
    }
    until(|| match &*keys(&mut stream) {
        "keys=1,expires=0,avg_ttl=0" => Ok(()),
        other => Err(format!("there are {other}")),
    });
}

/// What the server says of its keys.
fn keys(stream: &mut TcpStream) -> String {
    let info = String::from_utf8(ask(stream, &["INFO"])).expect("text");
    info.lines().find_map(|line| line.strip_prefix("db0:")).expect("the keys").to_owned()
}

/// Many keys expire at one time; gives how many were left whenever two connections had been answered, from when some were
/// missing.
fn left_by_a_sweep([stream, other]: &mut [TcpStream; 2], time: Duration) -> Vec<usize> {
    const KEYS: usize = 60_000;
    let end = Instant::now() + time;
    for first in (0..KEYS).step_by(1000) {
        let left = end.saturating_duration_since(Instant::now()).as_millis().max(1).to_string();
        let sets = (first..first + 1000).flat_map(|key| pack(&["SET", &key.to_string(), "", "PX", &left]));
        stream.write_all(&sets.collect::<Vec<u8>>()).expect("sent");
        let mut replies = [0; 1000 * OK.len()];
        stream.read_exact(&mut replies).expect("as many answers");
    }
    let mut counts = Vec::new();
    while counts.last() != Some(&0) {
        assert_eq!(ask(other, &["PING"]), b"+PONG\r\n");
        let text = keys(stream);
        let count = text.strip_prefix("keys=").and_then(|text| text.split_once(',')?.0.parse::<usize>().ok());
        counts.extend(count.filter(|count| *count < KEYS));
    }
    counts
}

#[test]
fn others_are_answered_while_much_is_thrown_away() {
    let server = Server::launch(example::example("resp_server").env("FIBRA_WORKERS", "1"));
    let (mut clients, mut time) = ([server.connect(), server.connect()], Duration::from_secs(1));
    until(|| {
        let mut counts = left_by_a_sweep(&mut clients, time);
        counts.dedup();
        time *= 2;

        // One more than 0 may be there where a sweep came while the first of them expired.
        match counts.len() > 3 {
            true => Ok(()),
            false => Err(format!("they hear of {counts:?} keys")),
        }
    });
    serves(&server);
}

#[test]
fn an_expired_key_is_not_brought_back_by_a_later_deadline() {
    let server = Server::start("resp_server");
    let mut stream = server.connect();
    // Of so many, few are swept between two of the requests.
    for key in 0..50 {
        let (key, expire) = (format!("key {key}"), ["EXPIRE", "PEXPIRE"][key % 2]);
        assert_eq!(ask(&mut stream, &["SET", &key, "old", "PX", "1"]), OK.as_bytes());
        until(|| match &*ask(&mut stream, &["GET", &key]) {
            b"$-1\r\n" => Ok(()),
            other => Err(format!("there is {}", other.escape_ascii())),
        });
        assert_eq!(ask(&mut stream, &[expire, &key, "1000000"]), b":0\r\n");
        assert_eq!(ask(&mut stream, &["GET", &key]), NIL.as_bytes(), "{expire}");
    }
}

#[test]
fn no_increment_of_many_clients_is_lost() {
    const CLIENTS: usize = 8;
    const ROUNDS: usize = 2000;
    let server = Server::start("resp_server");
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut stream = server.connect();
                stream.write_all(&pack(&["INCR", "count"]).repeat(ROUNDS)).expect("sent");
                let mut reader = BufReader::new(stream);
                let counts = (0..ROUNDS).map(|_| reply(&mut reader));
                let counts = counts
                    .map(|count| String::from_utf8_lossy(&count)[1..].trim().parse().expect("a number"));
                assert!(counts.is_sorted_by(|a: &usize, b| a < b), "it counts backwards");
            });
        }
    });
    assert_eq!(ask(&mut server.connect(), &["GET", "count"]), b"$5\r\n16000\r\n");
}

#[test]
fn an_announced_length_costs_nothing_until_its_bytes_come() {
    let server = Server::start("resp_server");
    let before = server.resident();
    let _announced: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = server.connect();
            stream.write_all(b"PING\r\n*1024\r\n$1048576\r\nx").expect("sent");
            assert_eq!(reply(&mut stream), b"+PONG\r\n");
            stream
        })
        .collect();
    let more = server.resident() - before;
    assert!(more < 50 * 1024, "{more} KiB for 200 MiB that were announced");
    serves(&server);
}

/// Also if much more comes than the server has read when it refuses.
#[test]
fn a_refused_client_gets_an_error() {
    let server = Server::start("resp_server");
    let more = payload(1 << 20);
    for (last, answer) in [("*x\r\n", "-ERR Protocol error: "), ("QUIT\r\n", "+OK\r\n")] {
        let mut stream = server.connect();
        stream.write_all(&[last.as_bytes(), &more].concat()).expect("sent");
        let mut answers = String::new();
        stream.read_to_string(&mut answers).expect("an orderly end");
        assert!(answers.starts_with(answer), "{answers}");
    }
    serves(&server);
}

#[test]
fn slow_clients_are_cut_off_and_idle_ones_are_not() {
    let server = Server::with_patience("resp_server", 2000);
    let mut silent = server.connect();
    // In one packet, lest it is slow as well.
    assert_eq!(ask(&mut silent, &["SET", "big", &"x".repeat(50_000)]), OK.as_bytes());
    thread::scope(|clients| {
        // Bytes that come in time one by one do not buy more time for the whole.
        clients.spawn(|| {
            let mut drip = server.connect();
            let mut sent = 0;
            while drip.write_all(b"x").is_ok() && sent < 4000 {
                sent += 1;
                thread::sleep(Duration::from_millis(10));
            }
            assert!(sent < 4000, "a request may take for ever");
        });
        // A client that takes no answers is cut off as well, and costs little memory until then.
        clients.spawn(|| {
            let mut greedy = server.connect();
            let many = pack(&["GET", "big"]).repeat(100);
            until(|| match greedy.write_all(&many) {
                Ok(()) => Err("the server takes requests for ever".to_owned()),
                Err(_) => Ok(()),
            });
        });
        let begins = [&b"*"[..], b"*1\r", b"*1\r\n$4\r\nPIN", b"GET a", b"PING\r\nPI"];
        let slow = (0..200).map(|number| {
            let mut stream = server.connect();
            stream.write_all(begins[number % begins.len()]).expect("sent");
            stream
        });
        let slow: Vec<TcpStream> = slow.collect();
        // Others are served meanwhile.
        serves(&server);
        for mut stream in slow {
            let mut replies = String::new();
            stream.read_to_string(&mut replies).expect("the end");
            assert!(["", "+PONG\r\n"].contains(&&*replies), "{replies}");
        }
    });
    serves(&server);
    assert_eq!(ask(&mut silent, &["EXISTS", "big"]), b":1\r\n");
}

#[test]
fn on_ctrl_c_requests_are_answered_and_all_connections_end() {
    let server = Server::start("resp_server");
    let mut silent = server.connect();
    assert_eq!(ask(&mut silent, &["SET", "big", &"x".repeat(1 << 20)]), OK.as_bytes());
    // So much that the server is still busy sending when it is told.
    let mut busy = server.connect();
    busy.write_all(&pack(&["GET", "big"]).repeat(20)).expect("sent");
    let first = reply(&mut busy);
    server.interrupt();
    ends(&mut silent);
    until(|| match server.try_connect() {
        Some(_) => Err("it still takes connections".to_owned()),
        None => Ok(()),
    });
    (1..20).for_each(|_| assert!(reply(&mut busy) == first));
    ends(&mut busy);
    assert_eq!(server.ends(), "1 keys are forgotten\n");
}
