//! The reactor without a runtime: parks, unparks, tokens, and what a source hears.

#![forbid(unsafe_code)]

use std::future::Future;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use fibra_runtime::driver::{Driver, Ready};
use fibra_runtime::wait::{self, Polled, Waking};

use super::Reactor;
use crate::readiness::set::Reliance;
use crate::readiness::source::{Source, Waiter, link};
use crate::readiness::{Clearing, Edge};
use crate::sys::Direction;
use crate::waiting::registration::Registered;

const LONG: Duration = Duration::from_secs(20);

fn park(reactor: &mut Reactor, timeout: Option<Duration>) -> Duration {
    let start = Instant::now();
    let mut ready = Ready::new();
    reactor.park(timeout, &mut ready).unwrap();
    assert!(ready.is_empty(), "no source waits in these tests");
    start.elapsed()
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn the_note_on_scaling_tells_how_large_a_source_is() {
    let said = format!("source in the reactor: {} bytes,", size_of::<Source>());
    assert!(include_str!("../../../SCALING.md").contains(&said), "it does not say: {said}");
}

/// A source of which the reactor hears, and of which it is known that nothing can be read.
fn drained(reactor: &Reactor, fd: RawFd) -> (Arc<Registered>, Reliance) {
    let source = Arc::new(Registered::new(-1));
    let reliance = source.attach(fd, reactor.handle()).unwrap();
    clear(&source, Direction::Read);
    (source, reliance)
}

fn clear(source: &Source, direction: Direction) {
    assert_eq!(source.readiness().blocked(direction, source.readiness().load()), Clearing::Cleared);
}

fn is_readable(source: &Source) -> bool {
    source.readiness().load().is_ready(Direction::Read)
}

#[test]
fn a_zero_timeout_only_polls() {
    let mut reactor = Reactor::new(None).unwrap();
    assert!(park(&mut reactor, Some(Duration::ZERO)) < LONG);
}

#[test]
fn an_unpark_that_comes_first_is_kept() {
    let mut reactor = Reactor::new(None).unwrap();
    reactor.unparker().unpark();
    assert!(park(&mut reactor, Some(LONG)) < LONG);
    reactor.unparker().unpark();
    park(&mut reactor, None);
}

#[test]
fn a_look_without_sources_leaves_an_unpark_for_the_next_park() {
    let mut reactor = Reactor::new(None).unwrap();
    reactor.unparker().unpark();
    park(&mut reactor, Some(Duration::ZERO));
    assert!(park(&mut reactor, Some(LONG)) < LONG);
}

#[test]
fn a_look_hears_of_the_first_source_and_after_the_last() {
    let mut reactor = Reactor::new(None).unwrap();
    let (mut near, far) = pair();
    let source = Arc::new(Registered::new(-1));
    park(&mut reactor, Some(Duration::ZERO));
    let registration = reactor.handle().register(far.as_raw_fd(), source.source()).unwrap();
    near.write_all(b"x").unwrap();
    clear(&source, Direction::Read);
    while !is_readable(&source) {
        park(&mut reactor, Some(Duration::ZERO));
    }
    registration.cancel(far.as_raw_fd());
    assert!(reactor.handle().registrations.is_empty());
    park(&mut reactor, Some(Duration::ZERO));
}

#[test]
fn an_unpark_breaks_a_park_from_another_thread() {
    let mut reactor = Reactor::new(None).unwrap();
    let unparker = reactor.unparker();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        unparker.unpark();
    });
    park(&mut reactor, None);
    thread.join().unwrap();
}

#[test]
fn an_unpark_breaks_a_brief_park_too() {
    let mut reactor = Reactor::new(None).unwrap();
    reactor.unparker().unpark();
    let brief = Duration::from_micros(1900);
    // The park that follows finds the event consumed, and lasts.
    park(&mut reactor, Some(brief));
    assert!(park(&mut reactor, Some(brief)) >= brief);
}

/// The shortest park of a thousand, or of those up to the first that is short enough: a busy machine makes most of them late.
fn best_of_parks(reactor: &mut Reactor, timeout: Duration, enough: Duration) -> Duration {
    let mut parks = (0..1000).map(|_| park(reactor, Some(timeout)));
    let mut best = parks.next().unwrap();
    while best >= enough
        && let Some(took) = parks.next()
    {
        best = best.min(took);
    }
    best
}

#[test]
fn a_park_of_microseconds_is_not_a_millisecond() {
    let mut reactor = Reactor::new(None).unwrap();
    let brief = Duration::from_micros(100);
    let best = best_of_parks(&mut reactor, brief, Duration::from_millis(1));
    assert!(best >= brief && best < Duration::from_millis(1), "{best:?}");
}

#[test]
fn a_long_park_never_outlasts_its_timeout_by_a_rounding() {
    let mut reactor = Reactor::new(None).unwrap();
    let timeout = Duration::from_micros(3_900);
    // Three whole milliseconds, and the caller comes again for the rest.
    let best = best_of_parks(&mut reactor, timeout, timeout);
    assert!(best >= Duration::from_millis(3) && best < timeout, "{best:?}");
}

#[test]
fn registering_reports_what_is_ready_already() {
    let mut reactor = Reactor::new(None).unwrap();
    let (mut client, server) = pair();
    client.write_all(b"early").unwrap();
    let source = Arc::new(Registered::new(-1));
    clear(&source, Direction::Read);
    source.attach(server.as_raw_fd(), reactor.handle()).unwrap();
    while !is_readable(&source) {
        park(&mut reactor, Some(LONG));
    }
    source.detach(server.as_raw_fd());
}

/// Parks until a short read does not mean that there is no more. What tells it may come a moment behind the data.
fn stays_readable(reactor: &mut Reactor, source: &Source) {
    let start = Instant::now();
    loop {
        source.readiness().drained(Direction::Read, source.readiness().load());
        if is_readable(source) {
            return;
        }
        assert!(start.elapsed() < LONG, "{:?}", source.readiness().load());
        park(reactor, Some(Duration::from_millis(10)));
    }
}

#[test]
fn the_end_of_the_stream_makes_short_reads_prove_nothing() {
    let mut reactor = Reactor::new(None).unwrap();
    let (mut client, server) = pair();
    client.write_all(b"all").unwrap();
    drop(client);
    let source = Arc::new(Registered::new(-1));
    clear(&source, Direction::Read);
    source.attach(server.as_raw_fd(), reactor.handle()).unwrap();
    stays_readable(&mut reactor, &source);
    source.detach(server.as_raw_fd());
}

#[cfg(target_os = "linux")]
#[test]
fn urgent_data_makes_short_reads_prove_nothing() {
    let mut reactor = Reactor::new(None).unwrap();
    let (client, server) = pair();
    let source = Arc::new(Registered::new(-1));
    source.attach(server.as_raw_fd(), reactor.handle()).unwrap();
    socket2::SockRef::from(&client).send_out_of_band(b"!").unwrap();
    stays_readable(&mut reactor, &source);
    source.detach(server.as_raw_fd());
}

#[test]
fn a_detached_source_hears_nothing() {
    let mut reactor = Reactor::new(None).unwrap();
    let (mut client, server) = pair();
    let source = Arc::new(Registered::new(-1));
    source.attach(server.as_raw_fd(), reactor.handle()).unwrap();
    park(&mut reactor, Some(Duration::from_millis(5)));
    source.detach(server.as_raw_fd());
    assert_eq!(Arc::strong_count(&source), 1, "the registrations has let it go");
    clear(&source, Direction::Read);
    client.write_all(b"late").unwrap();
    park(&mut reactor, Some(Duration::from_millis(20)));
    assert!(!is_readable(&source));
}

#[test]
fn a_source_without_waiters_moves_at_the_first_wait_from_elsewhere() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let source = Arc::new(Registered::new(-1));
    for reactor in [&one, &two, &one] {
        source.attach(fd, reactor.handle()).unwrap();
        assert_eq!(source.reactors(), [reactor.handle().id()]);
    }
    source.detach(fd);
    assert_eq!(Arc::strong_count(&source), 1);
}

/// Begins a wait that relies on `reliance`.
fn waiting(source: &Arc<Registered>, reliance: Reliance) -> Pin<Box<impl Future<Output = Waking>>> {
    let waiter = Waiter::new(Arc::clone(source.source()), Direction::Read, reliance, link());
    let mut polled = Box::pin(Polled::new(waiter));
    assert!(!is_over(&mut polled));
    polled
}

fn is_over(wait: &mut Pin<Box<impl Future<Output = Waking>>>) -> bool {
    wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_source_that_is_waited_for_is_heard_of_wherever_it_is() {
    let mut reactors = [Reactor::new(None).unwrap(), Reactor::new(None).unwrap()];
    let ids = reactors.each_ref().map(|reactor| reactor.handle().id());
    let (mut client, server) = pair();
    let fd = server.as_raw_fd();
    let source = Arc::new(Registered::new(-1));
    let reliance = source.attach(fd, reactors[0].handle()).unwrap();
    clear(&source, Direction::Read);
    let there = waiting(&source, reliance);
    let both = source.attach(fd, reactors[1].handle()).unwrap();
    assert_eq!(source.reactors(), ids);
    let here = waiting(&source, both);
    drop((there, here));
    client.write_all(b"for both").unwrap();
    for reactor in &mut reactors {
        clear(&source, Direction::Read);
        while !is_readable(&source) {
            park(reactor, Some(LONG));
        }
    }
    source.detach(fd);
    assert_eq!(Arc::strong_count(&source), 1);
}

#[test]
fn after_some_waits_through_one_reactor_the_other_is_left() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let (source, reliance) = drained(&one, fd);
    let there = waiting(&source, reliance);
    for _ in 0..10 {
        source.attach(fd, two.handle()).unwrap();
        assert_eq!(source.reactors().len(), 2);
    }
    drop(there);
    for _ in 0..3 {
        source.attach(fd, two.handle()).unwrap();
        assert_eq!(source.reactors().len(), 2);
    }
    source.attach(fd, two.handle()).unwrap();
    assert_eq!(source.reactors(), [two.handle().id()]);
    source.detach(fd);
}

#[test]
fn each_of_several_reactors_wakes_its_own_waiters() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let (source, reliance) = drained(&one, fd);
    let mut there = [waiting(&source, reliance), waiting(&source, reliance)];
    let both = source.attach(fd, two.handle()).unwrap();
    let mut here = [waiting(&source, both), waiting(&source, both)];
    let mut anywhere = waiting(&source, Reliance::all(both.set_id));
    let woken_by = |reactor: &Reactor| {
        let mut wakes = Vec::new();
        source.edge(reactor.handle().id(), Edge::new().ready(Direction::Read, true), |wake| wakes.push(wake));
        let count = wakes.len();
        wait::wake_each(wakes);
        count
    };
    assert_eq!(woken_by(&two), 3);
    assert!(here.iter_mut().all(is_over) && is_over(&mut anywhere));
    assert!(!there.iter_mut().any(is_over));
    assert_eq!(woken_by(&one), 2);
    assert!(there.iter_mut().all(is_over));
    source.detach(fd);
}

#[test]
fn a_waiter_that_relies_on_a_reactor_that_has_left_looks_again() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let source = Arc::new(Registered::new(-1));
    let relied_on = source.attach(fd, one.handle()).unwrap();
    let reliance = source.attach(fd, two.handle()).unwrap();
    clear(&source, Direction::Read);
    assert_eq!(source.sleep(Direction::Read, relied_on, None), Waking::Notified);
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(source.sleep(Direction::Read, reliance, Some(soon)), Waking::TimedOut);
    source.detach(fd);
}

#[test]
fn a_moved_source_loses_no_edge() {
    let (one, mut two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (mut client, server) = pair();
    let fd = server.as_raw_fd();
    let (source, _) = drained(&one, fd);
    client.write_all(b"heard by the old set_id, and never fetched").unwrap();
    source.attach(fd, two.handle()).unwrap();
    let start = Instant::now();
    while !is_readable(&source) {
        assert!(start.elapsed() < LONG);
        park(&mut two, Some(Duration::from_millis(10)));
    }
    source.detach(fd);
}

#[test]
fn a_reactor_that_ends_lets_its_sources_go() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let (source, reliance) = drained(&one, fd);
    drop(one);
    assert!(is_readable(&source), "the waiters look again");
    assert_eq!(Arc::strong_count(&source), 1);
    clear(&source, Direction::Read);
    assert_eq!(
        source.sleep(Direction::Read, reliance, None),
        Waking::Notified,
        "no waiter sleeps without a waker"
    );
    let reliance = source.attach(fd, two.handle()).unwrap();
    assert_eq!(source.reactors(), [two.handle().id()]);
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(source.sleep(Direction::Read, reliance, Some(soon)), Waking::TimedOut);
    source.detach(fd);
}

#[test]
fn when_one_of_two_reactors_ends_the_other_hears_alone() {
    let (one, two) = (Reactor::new(None).unwrap(), Reactor::new(None).unwrap());
    let (_client, server) = pair();
    let fd = server.as_raw_fd();
    let (source, reliance) = drained(&one, fd);
    let there = waiting(&source, reliance);
    let both = source.attach(fd, two.handle()).unwrap();
    drop((there, one));
    clear(&source, Direction::Read);
    assert_eq!(
        source.sleep(Direction::Read, both, None),
        Waking::Notified,
        "it looks for waiters that are left"
    );
    let reliance = source.attach(fd, two.handle()).unwrap();
    assert_eq!(source.reactors(), [two.handle().id()]);
    let soon = Instant::now() + Duration::from_millis(5);
    assert_eq!(source.sleep(Direction::Read, reliance, Some(soon)), Waking::TimedOut);
    source.detach(fd);
}
