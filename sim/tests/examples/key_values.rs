//! The example `resp_server`: clients that pipeline, crash, and talk nonsense.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::Duration;

use fibra::net::TcpStream;
use fibra::time;
use fibra_sim::{Host, host, random_below};

use crate::weather::{Storm, Weather, any, up_to};
use crate::{SECOND, Shared, check_determinism, resp_server};

const ADDRESS: &str = "0.0.0.0:6379";
const STORE: &str = "server:6379";
/// Longer than what is lost many times in a row takes.
const PATIENCE: Duration = Duration::from_secs(300);
/// The keys of a session.
const KEYS: u64 = 4;
const NO_INTEGER: &str = "-ERR value is not an integer or out of range\r\n";
const OVERFLOW: &str = "-ERR increment or decrement would overflow\r\n";

/// A store, as a session knows it: it alone writes its keys.
type Model = BTreeMap<u64, String>;

#[derive(Clone, Debug)]
enum Command {
    Set(u64, String),
    SetUnlessThere(u64, String),
    SetIfThere(u64, String),
    Get(u64),
    Add(u64, i64),
    Delete(u64),
    /// It expires at once.
    Expire(u64),
    Exists(u64),
    Echo(usize),
    Unknown,
}

/// The commands of one connection.
#[derive(Default)]
struct Session {
    /// The number of the server's process when the session began.
    process: u64,
    sent: Vec<Command>,
    answered: usize,
}

/// The sessions by their names, which begin their keys.
type Sessions = Shared<BTreeMap<String, Session>>;

#[fibra::test(seeds = 50)]
fn resp_server_answers_as_the_model_does() {
    program();
}

#[test]
fn resp_server_takes_one_course_for_each_seed() {
    check_determinism(program);
}

fn program() {
    fibra::timeout(3600 * SECOND, simulate).expect("a client or the server hangs");
}

fn simulate() {
    let (weather, sessions) = (Weather::choose(), Sessions::default());
    let (processes, kept, checked) =
        (Shared::<u64>::default(), Shared::<usize>::default(), Shared::<usize>::default());
    let server = {
        let (processes, kept) = (processes.clone(), kept.clone());
        host("server", move || {
            *processes.lock() += 1;
            *kept.lock() = resp_server::serve(ADDRESS, PATIENCE).unwrap();
        })
    };
    // It begins to listen.
    time::sleep(SECOND);
    let clients: Vec<Host> = (0..2 + random_below(3))
        .map(|number| {
            let (weather, sessions) = (weather.clone(), sessions.clone());
            let (processes, checked) = (processes.clone(), checked.clone());
            host(&format!("client-{number}"), move || {
                client(number, &weather, &sessions, &processes, &checked);
            })
        })
        .collect();
    let nonsense = {
        let weather = weather.clone();
        host("nonsense", move || talk_nonsense(&weather))
    };
    let links = clients.iter().map(|client| [&server, client]).collect();
    weather.storm(&Storm { links, mortal: clients.iter().chain([&server]).collect() });

    while *checked.lock() < clients.len() {
        time::sleep(SECOND);
    }
    nonsense.join();
    // What crashed clients have sent is answered.
    time::sleep(60 * SECOND);
    let keys = check_sessions(&sessions, *processes.lock());
    // The last clients still wait, or send requests without a pause.
    server.ctrl_c();
    server.join();
    assert!(*kept.lock() >= keys, "{} keys of {keys}", kept.lock());
    clients.into_iter().for_each(Host::join);
    assert!(TcpStream::connect(STORE).is_err(), "the server listens no more");
}

/// Begins sessions until one has ended in calm weather, and waits for the end of the server then.
fn client(
    number: u64,
    weather: &Weather,
    sessions: &Sessions,
    processes: &Shared<u64>,
    checked: &Shared<usize>,
) {
    loop {
        let is_last = weather.is_over();
        let name = begin(number, sessions, *processes.lock());
        let worked = TcpStream::connect(STORE).and_then(|stream| {
            work(&stream, &name, sessions)?;
            Ok(stream)
        });
        match worked {
            Ok(stream) if is_last => {
                *checked.lock() += 1;
                return wait_for_the_end(&stream);
            }
            Err(error) if is_last => panic!("{name}: {error}"),
            _ => time::sleep(up_to(1000)),
        }
    }
}

/// Adds a session. Returns its name.
fn begin(number: u64, sessions: &Sessions, process: u64) -> String {
    let mut sessions = sessions.lock();
    let name = (0..).map(|session| format!("{number}.{session}")).find(|name| !sessions.contains_key(name));
    let name = name.expect("there are enough names");
    sessions.insert(name.clone(), Session { process, ..Session::default() });
    name
}

/// Sends batches of commands, and compares the answers.
fn work(mut stream: &TcpStream, name: &str, sessions: &Sessions) -> io::Result<()> {
    let (mut answers, mut model) = (BufReader::new(stream), Model::new());
    for _ in 0..1 + random_below(8) {
        let batch: Vec<Command> = (0..1 + random_below(20)).map(|_| Command::any()).collect();
        let requests: String = batch.iter().map(|command| command.request(name)).collect();
        sessions.lock().get_mut(name).expect("it has begun").sent.extend(batch.iter().cloned());
        // In two pieces, cut anywhere.
        let (first, second) = requests.as_bytes().split_at(random_below(requests.len() as u64) as usize);
        stream.write_all(first)?;
        time::sleep(up_to(any(&[0, 500])));
        stream.write_all(second)?;
        for command in &batch {
            let answer = answer(&mut answers)?;
            assert_eq!(answer, command.apply(&mut model), "{name}: {command:?}");
            sessions.lock().get_mut(name).expect("it has begun").answered += 1;
        }
        time::sleep(up_to(1000));
    }
    expire(stream, &mut answers, name)
}

/// Sets a value that is there for half a second.
fn expire(mut stream: &TcpStream, answers: &mut impl BufRead, name: &str) -> io::Result<()> {
    let key = format!("{name}:fleeting");
    stream.write_all(pack(&["SET", &key, "x", "PX", "500"]).as_bytes())?;
    assert_eq!(answer(answers)?, "+OK\r\n");
    time::sleep(SECOND / 2);
    stream.write_all(pack(&["GET", &key]).as_bytes())?;
    assert_eq!(answer(answers)?, "$-1\r\n", "{key} has expired");
    Ok(())
}

/// Reads until the server ends. Some clients send requests all the time: each answer is whole.
fn wait_for_the_end(mut stream: &TcpStream) {
    if random_below(2) == 0 {
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "nothing was asked");
        return;
    }
    let mut answers = BufReader::new(stream);
    let request = pack(&["ECHO", "hello"]);
    while stream.write_all(request.as_bytes()).is_ok() {
        match answer(&mut answers) {
            Ok(answer) => assert_eq!(answer, "$5\r\nhello\r\n"),
            Err(_) => return,
        }
        time::sleep(up_to(50));
    }
}

/// Compares the values of all sessions with those that their commands have left. Returns how many there are.
fn check_sessions(sessions: &Sessions, process: u64) -> usize {
    let mut stream = TcpStream::connect(STORE).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let sessions = std::mem::take(&mut *sessions.lock());
    let mut count = 0;
    for (name, session) in sessions {
        let mut found = Model::new();
        for key in 0..KEYS {
            stream.write_all(Command::Get(key).request(&name).as_bytes()).unwrap();
            let answer = answer(&mut answers).unwrap();
            if let Some((_, value)) = answer.split_once("\r\n").filter(|(length, _)| *length != "$-1") {
                found.insert(key, value.trim_end().to_owned());
            }
        }
        count += found.len();
        // Of those that were not answered some were executed, in their order.
        let mut model = Model::new();
        let mut possible = vec![];
        for (place, command) in session.sent.iter().enumerate() {
            if place >= session.answered {
                possible.push(model.clone());
            }
            command.apply(&mut model);
        }
        possible.push(model);
        if session.process != process {
            possible.push(Model::new());
        }
        let Session { sent, answered, .. } = session;
        assert!(possible.contains(&found), "{name}: {found:?} after {answered} answers to {sent:?}");
    }
    count
}

impl Command {
    fn any() -> Command {
        let (key, value) = (random_below(KEYS), any(&["", "7", "-40", "9223372036854775807", "a word"]));
        let value = value.to_owned();
        match random_below(13) {
            0 => Command::Set(key, value),
            1 => Command::SetUnlessThere(key, value),
            2 => Command::SetIfThere(key, value),
            3 | 4 => Command::Get(key),
            5..=7 => Command::Add(key, any(&[1, -1, 100])),
            8 => Command::Delete(key),
            9 => Command::Expire(key),
            10 => Command::Exists(key),
            11 => Command::Echo(random_below(40_000) as usize),
            _ => Command::Unknown,
        }
    }

    fn request(&self, session: &str) -> String {
        let key = |key: &u64| format!("{session}:{key}");
        match self {
            Command::Set(to, value) => pack(&["SET", &key(to), value]),
            Command::SetUnlessThere(to, value) => pack(&["SET", &key(to), value, "NX"]),
            Command::SetIfThere(to, value) => pack(&["SET", &key(to), value, "XX"]),
            // As people type it.
            Command::Get(of) => format!("get {}\r\n", key(of)),
            Command::Add(to, 1) => pack(&["INCR", &key(to)]),
            Command::Add(to, by) => pack(&["INCRBY", &key(to), &by.to_string()]),
            Command::Delete(of) => pack(&["DEL", &key(of)]),
            Command::Expire(of) => pack(&["PEXPIRE", &key(of), "0"]),
            Command::Exists(of) => pack(&["EXISTS", &key(of)]),
            Command::Echo(len) => pack(&["ECHO", &"x".repeat(*len)]),
            Command::Unknown => pack(&["FROBNICATE"]),
        }
    }

    /// Does to the model what the server is to do. Returns the answer.
    fn apply(&self, model: &mut Model) -> String {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let nil = || "$-1\r\n".to_owned();
        let number = |number: i64| format!(":{number}\r\n");
        let is_there = |key: &u64| model.contains_key(key);
        match self {
            Command::SetUnlessThere(key, _) if is_there(key) => nil(),
            Command::SetIfThere(key, _) if !is_there(key) => nil(),
            Command::Set(key, value)
            | Command::SetUnlessThere(key, value)
            | Command::SetIfThere(key, value) => {
                model.insert(*key, value.clone());
                "+OK\r\n".to_owned()
            }
            Command::Get(key) => model.get(key).map_or_else(nil, |value| bulk(value)),
            Command::Add(key, by) => {
                let Ok(old) = model.get(key).map_or("0", String::as_str).parse::<i64>() else {
                    return NO_INTEGER.to_owned();
                };
                let Some(new) = old.checked_add(*by) else { return OVERFLOW.to_owned() };
                model.insert(*key, new.to_string());
                number(new)
            }
            Command::Delete(key) | Command::Expire(key) => number(model.remove(key).is_some().into()),
            Command::Exists(key) => number(is_there(key).into()),
            Command::Echo(len) => bulk(&"x".repeat(*len)),
            Command::Unknown => "-ERR unknown command 'FROBNICATE'\r\n".to_owned(),
        }
    }
}

/// Returns a request as clients send it: an array of byte strings.
fn pack(words: &[&str]) -> String {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        _ = write!(request, "${}\r\n{word}\r\n", word.len());
    }
    request
}

/// Reads an answer.
fn answer(stream: &mut impl BufRead) -> io::Result<String> {
    let mut answer = String::new();
    stream.read_line(&mut answer)?;
    if let Some(length) = answer.strip_prefix('$').and_then(|length| length.trim_end().parse::<u64>().ok()) {
        stream.take(length + 2).read_to_string(&mut answer)?;
    }
    if answer.ends_with("\r\n") { Ok(answer) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Sends what is no request, again and again: each time an error comes back, and then the end.
fn talk_nonsense(weather: &Weather) {
    const NONSENSE: [&[u8]; 8] = [
        b"*x\r\n",
        b"*2000\r\n",
        b"*1\r\n:5\r\n",
        b"*1\r\n$-5\r\nabc\r\n",
        b"*1\r\n$3\r\nabcdef",
        b"*1\r\n$99999999999\r\n",
        b"GET \"unbalanced\r\n",
        &[b'a'; 5000],
    ];
    loop {
        let (is_last, mark) = (weather.is_over(), weather.mark());
        let nonsense = any(&NONSENSE);
        let answer = TcpStream::connect(STORE).and_then(|mut stream| {
            stream.write_all(nonsense)?;
            // More of it, which the server reads and forgets.
            let more: Vec<u8> = (0..random_below(2000)).map(|_| random_below(256) as u8).collect();
            stream.write_all(&more)?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        match answer {
            Ok(answer) => {
                assert!(
                    answer.starts_with("-ERR Protocol error: ") && answer.lines().count() == 1,
                    "{answer}"
                );
            }
            // The server may have crashed.
            Err(error) => assert!(!weather.was_calm_since(mark), "{error} after {}", nonsense.escape_ascii()),
        }
        if is_last {
            return;
        }
        time::sleep(up_to(2000));
    }
}
