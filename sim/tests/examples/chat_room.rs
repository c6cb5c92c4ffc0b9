//! The example `chat`: guests that come, talk, leave, and crash.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, BufRead, BufReader, Write};
use std::net::Shutdown;
use std::time::Duration;

use fibra::net::TcpStream;
use fibra::time;
use fibra_sim::{Host, host, random_below};

use crate::weather::{Storm, Weather, up_to};
use crate::{SECOND, Shared, chat, check_determinism};

const ADDRESS: &str = "0.0.0.0:7777";
const ROOM: &str = "server:7777";
/// The exclamation marks of a loud message.
const LOUDNESS: usize = 1000;
/// What slow guests have to read the goodbye.
const GRACE: Duration = Duration::from_secs(2);
const CLOSED: &str = "* the room is closed";

/// The visits of all guests by their names, which no two of them share.
type Visits = Shared<BTreeMap<String, Visit>>;

/// One connection of a guest.
#[derive(Default)]
struct Visit {
    /// The lines that it has read.
    lines: Vec<String>,
    /// How many messages it has said if the room has surely heard all of them.
    said: Option<u64>,
}

#[fibra::test(seeds = 50)]
fn chat_guests_see_each_other_in_order_and_a_goodbye() {
    program();
}

#[test]
fn chat_takes_one_course_for_each_seed() {
    check_determinism(program);
}

fn program() {
    fibra::timeout(3600 * SECOND, simulate).expect("a guest or the room hangs");
}

fn simulate() {
    let (weather, visits) = (Weather::choose(), Visits::default());
    let (report, talked_out) = (Shared::<String>::default(), Shared::<usize>::default());
    let told = report.clone();
    let server = host("server", move || *told.lock() = chat::open(ADDRESS).unwrap());
    // Some guests say so much that others fall behind.
    let is_loud = random_below(4) == 0;
    // It begins to listen.
    time::sleep(SECOND);
    let guests: Vec<Host> = (0..2 + random_below(3))
        .map(|number| {
            let (weather, visits, talked_out) = (weather.clone(), visits.clone(), talked_out.clone());
            host(&format!("guest-{number}"), move || guest(number, is_loud, &weather, &visits, &talked_out))
        })
        .collect();
    let links = guests.iter().map(|guest| [&server, guest]).collect();
    weather.storm(&Storm { links, mortal: guests.iter().chain([&server]).collect() });

    let deaf = is_loud.then(|| {
        host("deaf", || {
            let stream = TcpStream::connect(ROOM).unwrap();
            (&stream).write_all(b"deaf\n").unwrap();
            fibra::task::park();
        })
    });
    while *talked_out.lock() < guests.len() {
        time::sleep(SECOND);
    }
    // What was said last arrives.
    time::sleep(60 * SECOND);
    let begin = time::now();
    server.ctrl_c();
    server.join();
    let taken = time::now() - begin;
    guests.into_iter().for_each(Host::join);
    deaf.into_iter().for_each(|deaf| deaf.crash());
    // The deaf guest may have come too late for the noise.
    let cut_off = usize::from(taken >= GRACE);
    assert!(cut_off == 0 || is_loud, "the room waits for nobody");
    assert_eq!(*report.lock(), format!("{cut_off} guests had to be cut off"));
    assert!(taken < cut_off as u32 * GRACE + SECOND / 10, "the room closes in time: {taken:?}");
    check(&visits.lock());
}

/// Visits the room again and again. Stays at the last visit until the room closes.
fn guest(number: u64, is_loud: bool, weather: &Weather, visits: &Visits, talked_out: &Shared<usize>) {
    loop {
        let (is_last, name) = (weather.is_over(), name(number, visits));
        let count = if is_loud { 600 } else { random_below(20) };
        let visited = visit(
            &name,
            count,
            is_loud,
            visits,
            || match is_last {
                true => *talked_out.lock() += 1,
                false => time::sleep(up_to(2000)),
            },
            is_last,
        );
        if is_last {
            visited.unwrap();
            let visits = visits.lock();
            assert_eq!(visits[&name].lines.last().map(String::as_str), Some(CLOSED), "{name} was told");
            return;
        }
        time::sleep(up_to(1000));
    }
}

/// Returns a name that no visit had before.
fn name(number: u64, visits: &Visits) -> String {
    let mut visits = visits.lock();
    let name = (0..).map(|visit| format!("{number}.{visit}")).find(|name| !visits.contains_key(name));
    let name = name.expect("there are enough names");
    visits.insert(name.clone(), Visit::default());
    name
}

/// Says so many messages, and reads all that comes.
fn visit(
    name: &str,
    count: u64,
    is_loud: bool,
    visits: &Visits,
    then: impl Fn() + Sync,
    stays: bool,
) -> io::Result<()> {
    let stream = &TcpStream::connect(ROOM)?;
    fibra::scope(|scope| {
        let talk = scope.spawn(|| {
            talk(stream, name, count, is_loud)?;
            then();
            if stays { Ok(()) } else { stream.shutdown(Shutdown::Write) }
        });
        let patience = Duration::from_millis(if is_loud { random_below(5) } else { 0 });
        let read = listen(stream, name, patience, visits);
        talk.join().unwrap().and(read)
    })?;
    let mut visits = visits.lock();
    let visit = visits.get_mut(name).expect("it has begun");
    if visit.lines.last().is_some_and(|line| line != CLOSED) {
        visit.said = Some(count);
    }
    Ok(())
}

fn talk(mut stream: &TcpStream, name: &str, count: u64, is_loud: bool) -> io::Result<()> {
    stream.write_all(format!("{name}\n").as_bytes())?;
    for number in 0..count {
        let loudness = if is_loud { LOUDNESS } else { 0 };
        stream.write_all(format!("{number}{}\n", "!".repeat(loudness)).as_bytes())?;
        match is_loud {
            true if number % 8 == 0 => time::sleep(up_to(4)),
            true => {}
            false => time::sleep(up_to(300)),
        }
    }
    Ok(())
}

fn listen(stream: &TcpStream, name: &str, patience: Duration, visits: &Visits) -> io::Result<()> {
    for line in BufReader::new(stream).lines() {
        let mut line = line?;
        if let Some(begin) = line.find('!') {
            assert_eq!(line.split_off(begin), "!".repeat(LOUDNESS), "{line} is whole");
        }
        visits.lock().get_mut(name).expect("it has begun").lines.push(line);
        if !patience.is_zero() {
            time::sleep(patience);
        }
    }
    Ok(())
}

/// Checks what the guests have read.
fn check(visits: &BTreeMap<String, Visit>) {
    for (name, visit) in visits {
        check_visit(name, visit, visits);
        let shared = visit.lines.iter().enumerate().filter(|(_, line)| !is_own(line));
        let places: HashMap<&str, usize> = shared.map(|(place, line)| (line.as_str(), place)).collect();
        for (other, later) in visits.range(name.clone()..).skip(1) {
            let common = later.lines.iter().filter_map(|line| places.get(line.as_str()));
            assert!(common.is_sorted(), "{name} and {other} saw messages in other orders");
        }
    }
}

/// Checks that a guest has seen the messages of each other one from the first to the last, except missed ones.
fn check_visit(reader: &str, visit: &Visit, visits: &BTreeMap<String, Visit>) {
    let mut missed = 0;
    // The number of the next message, for each guest that was seen. None after it has gone.
    let mut next = BTreeMap::<&str, Option<u64>>::new();
    // The guests that were seen to come.
    let mut came = BTreeSet::new();
    for (place, line) in visit.lines.iter().enumerate() {
        let fail = || -> ! { panic!("{reader}, line {place}: {line}\nof {:#?}", visit.lines) };
        if place == 0 {
            assert!(line.starts_with(&format!("* welcome, {reader}, you are one of ")), "{line}");
        } else if line == CLOSED {
            assert_eq!(place, visit.lines.len() - 1, "nothing follows");
        } else if let Some(count) = line.strip_prefix("* you have missed ") {
            missed +=
                count.split(' ').next().and_then(|count| count.parse::<u64>().ok()).unwrap_or_else(|| fail());
        } else if let Some(name) = line.strip_suffix(" comes").and_then(|line| line.strip_prefix("* ")) {
            if name == reader || next.insert(name, Some(0)).is_some() {
                fail();
            }
            came.insert(name);
        } else if let Some(name) = line.strip_suffix(" goes").and_then(|line| line.strip_prefix("* ")) {
            let said = next.insert(name, None).unwrap_or(Some(0)).unwrap_or_else(|| fail());
            let all = visits.get(name).and_then(|visit| visit.said);
            if missed == 0 && came.contains(name) && all.is_some_and(|all| all != said) {
                fail();
            }
        } else {
            let (name, text) = line.split_once(": ").unwrap_or_else(|| fail());
            let number = text.parse::<u64>().unwrap_or_else(|_| fail());
            let due = next.insert(name, Some(number + 1)).unwrap_or(Some(number)).unwrap_or_else(|| fail());
            if name == reader || number < due || number - due > missed {
                fail();
            }
            missed -= number - due;
        }
    }
}

/// Returns true for lines that several guests may read at different places.
fn is_own(line: &str) -> bool {
    line == CLOSED || line.starts_with("* you have missed ")
}
