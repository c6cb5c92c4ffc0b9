//! The example `graceful_shutdown`: quick requests, long ones, and late ones.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fibra::net::{TcpListener, lookup_host};
use fibra::sync::WaitGroup;
use fibra::{CancelToken, time};
use fibra_sim::{Host, host, net, random_below};

use crate::graceful_shutdown::{GRACE, ask, serve};
use crate::weather::{Storm, Weather, any, up_to};
use crate::{SECOND, Shared, check_determinism};

/// More requests than any run has.
const MANY: usize = 1 << 20;

/// What clients have asked, and what became of it.
type Requests = Shared<Vec<Request>>;

struct Request {
    begun: Instant,
    ended: Instant,
    millis: u64,
    /// It had no faults but latency and loss.
    is_calm: bool,
    outcome: io::Result<String>,
}

#[fibra::test(seeds = 50)]
fn graceful_shutdown_answers_quick_requests_and_cuts_off_others() {
    program();
}

#[test]
fn graceful_shutdown_takes_one_course_for_each_seed() {
    check_determinism(program);
}

fn program() {
    fibra::timeout(3600 * SECOND, simulate).expect("a client or the server hangs");
}

fn simulate() {
    let (weather, requests, report) = (Weather::choose(), Requests::default(), Shared::<String>::default());
    // How long a request or an answer takes at the most, where that is known.
    let travel = any(&[None, Some(Duration::from_millis(100))]);
    if let Some(travel) = travel {
        net::latency(Duration::ZERO..=travel);
        net::loss(0.0);
    }
    let told = report.clone();
    let server = host("server", move || {
        let (stop, begun) = (CancelToken::new(), Arc::new(WaitGroup::new()));
        begun.add(MANY);
        let listener = TcpListener::bind("0.0.0.0:80").unwrap();
        let handler = {
            let stop = stop.clone();
            fibra::spawn(move || {
                fibra::signal::ctrl_c().unwrap();
                stop.cancel();
            })
        };
        *told.lock() = serve(listener, &stop, &begun);
        handler.join().unwrap();
    });
    let address = lookup_host("server:80").unwrap().next().unwrap();
    // It begins to listen.
    time::sleep(SECOND);
    let clients: Vec<Host> = (0..2 + random_below(3))
        .map(|number| {
            let (weather, requests) = (weather.clone(), requests.clone());
            host(&format!("client-{number}"), move || client(address, &weather, &requests))
        })
        .collect();
    let links = clients.iter().map(|client| [&server, client]).collect();
    weather.storm(&Storm { links, mortal: clients.iter().chain([&server]).collect() });

    time::sleep(up_to(5000));
    let stopped = time::now();
    server.ctrl_c();
    server.join();
    let taken = time::now() - stopped;
    assert!(taken < GRACE + SECOND / 10, "the server ends in time: {taken:?}");
    clients.into_iter().for_each(Host::join);
    check(&requests.lock(), stopped, travel, taken);
    check_report(&report.lock(), taken);
}

/// Asks until nothing listens any more.
fn client(address: SocketAddr, weather: &Weather, requests: &Requests) {
    fibra::scope(|scope| {
        loop {
            let request = move || {
                let (begun, is_calm) = (time::now(), weather.is_over());
                let millis = any(&[0, 10, 100, 1000, 1900, 2500, 60_000]);
                let outcome = ask(address, millis);
                let ended = time::now();
                requests.lock().push(Request { begun, ended, millis, is_calm, outcome });
            };
            scope.spawn(request);
            time::sleep(up_to(1000));
            if weather.is_over() && requests.lock().last().is_some_and(Request::is_refused) {
                return;
            }
        }
    });
}

impl Request {
    fn is_refused(&self) -> bool {
        let error = self.outcome.as_ref().err().map(io::Error::kind);
        error == Some(io::ErrorKind::ConnectionRefused)
    }
}

/// Checks what became of the requests, where each message has taken `travel` at the most.
fn check(requests: &[Request], stopped: Instant, travel: Option<Duration>, taken: Duration) {
    for Request { begun, ended, millis, is_calm, outcome } in requests {
        let (begun, ended, work) = (*begun, *ended, Duration::from_millis(*millis));
        let told =
            || format!("{begun:?} {ended:?} {work:?} {outcome:?}, stopped at {stopped:?}, took {taken:?}");
        let answer = outcome.as_ref().ok().filter(|answer| !answer.is_empty());
        if let Some(answer) = answer {
            assert_eq!(*answer, format!("worked for {millis} ms"));
            assert!(ended >= begun + work, "the server has worked: {}", told());
            assert!(begun + work <= stopped + GRACE, "it is cut off: {}", told());
            assert!(begun <= stopped, "it came too late: {}", told());
        }
        let Some(travel) = travel.filter(|_| *is_calm) else { continue };
        // There and back to connect, and there once more.
        let read = begun + 3 * travel;
        if read < stopped && read + work < stopped + GRACE {
            assert!(answer.is_some(), "it was quick enough: {}", told());
            assert!(ended <= begun + work + 5 * travel, "the answer comes at once: {}", told());
        }
        if begun > stopped {
            assert!(outcome.is_err(), "it came too late: {}", told());
            assert!(ended <= begun + 2 * travel, "it is refused at once: {}", told());
        }
    }
}

/// Checks what the server has told.
fn check_report(report: &str, taken: Duration) {
    let cancelled = report.split(", ").nth(1).and_then(|part| part.strip_suffix(" had to be cancelled"));
    let cancelled: usize = cancelled.and_then(|number| number.parse().ok()).expect("a number");
    assert_eq!(cancelled > 0, taken >= GRACE, "{report} after {taken:?}");
}
