//! Faults of hosts and links, by the seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fibra_sim::{Host, net, random_below};

/// What has happened so far.
#[derive(Clone, Default)]
pub(crate) struct Weather(Arc<State>);

#[derive(Default)]
struct State {
    damages: AtomicU64,
    /// How many hosts are down.
    down: AtomicU64,
    is_over: AtomicBool,
}

/// How many faults there were that break connections. None while a host is down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark(Option<u64>);

/// The faults that a storm makes.
pub(crate) struct Storm<'a> {
    /// Links that are cut, held, and reset.
    pub(crate) links: Vec<[&'a Host; 2]>,
    /// Hosts that crash and come back.
    pub(crate) mortal: Vec<&'a Host>,
}

/// Returns a random time below so many milliseconds.
pub(crate) fn up_to(millis: u64) -> Duration {
    Duration::from_millis(random_below(millis + 1))
}

/// Returns a random one of some values.
pub(crate) fn any<T: Copy>(values: &[T]) -> T {
    values[random_below(values.len() as u64) as usize]
}

impl Weather {
    /// Chooses how slow and how bad the links are.
    pub(crate) fn choose() -> Weather {
        net::latency(Duration::ZERO..=Duration::from_millis(any(&[1, 10, 100])));
        net::loss(any(&[0.0, 0.01, 0.1, 0.2]));
        Weather::default()
    }

    /// Returns a mark of the present time.
    pub(crate) fn mark(&self) -> Mark {
        let State { damages, down, .. } = &*self.0;
        Mark((down.load(Ordering::Relaxed) == 0).then(|| damages.load(Ordering::Relaxed)))
    }

    /// Returns true if nothing has broken connections since a mark.
    pub(crate) fn was_calm_since(&self, mark: Mark) -> bool {
        mark.0.is_some() && mark == self.mark()
    }

    /// Returns true once no fault but latency and loss follows.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    /// Makes faults for a while, two at a time. In the end all is mended.
    pub(crate) fn storm(&self, storm: &Storm<'_>) {
        fibra::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..random_below(5)).for_each(|_| self.fault(storm)));
            }
        });
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    fn fault(&self, storm: &Storm<'_>) {
        fibra::sleep(up_to(5000));
        if random_below(3) == 0 && !storm.mortal.is_empty() {
            let host = any(&storm.mortal);
            self.0.down.fetch_add(1, Ordering::Relaxed);
            self.damage();
            host.crash();
            fibra::sleep(up_to(3000));
            host.restart();
            // It begins to listen.
            fibra::sleep(Duration::from_secs(1));
            self.0.down.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let [a, b] = any(&storm.links).map(Host::name);
        match random_below(3) {
            0 => {
                net::partition(a, b);
                fibra::sleep(up_to(20_000));
                net::heal(a, b);
            }
            1 => {
                net::hold(a, b);
                fibra::sleep(up_to(2000));
                net::release(a, b);
            }
            _ => {
                self.damage();
                net::reset(a, b);
            }
        }
    }

    /// Counts a fault that is about to break connections.
    fn damage(&self) {
        self.0.damages.fetch_add(1, Ordering::Relaxed);
    }
}
