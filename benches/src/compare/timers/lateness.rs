//! The lateness of the sleepers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::compare::question::{Answer, Measure};
use crate::sys;

/// Where each sleeper writes by how many nanoseconds it woke too late.
#[derive(Clone)]
pub(in crate::compare) struct Wakes(Arc<[AtomicU64]>);

/// The wall and the processor clock at the beginning.
pub(in crate::compare) struct Begin {
    wall: Instant,
    cpu: Duration,
}

impl Wakes {
    pub(in crate::compare) fn of(tasks: u64) -> Self {
        Wakes((0..tasks).map(|_| AtomicU64::new(0)).collect())
    }

    /// How long a sleeper sleeps: 1 to 100 ms, spread evenly, neighbours far apart.
    pub(in crate::compare) fn duration(number: usize) -> Duration {
        const SPAN: u64 = 99_000;
        let micros = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        Duration::from_micros(1_000 + micros % SPAN)
    }

    pub(in crate::compare) fn wake(&self, number: usize, begin: Instant) {
        let late = begin.elapsed().saturating_sub(Wakes::duration(number));
        // Relaxed: it is read when the task has been joined.
        self.0[number].store(late.as_nanos() as u64, Relaxed);
    }
}

impl Begin {
    pub(in crate::compare) fn now() -> Self {
        Begin { wall: Instant::now(), cpu: sys::own_cpu_time() }
    }

    /// Returns the time since the beginning, and how late the sleepers woke.
    pub(in crate::compare) fn end(self, wakes: &Wakes) -> Answer {
        let (elapsed, cpu) = (self.wall.elapsed(), sys::own_cpu_time() - self.cpu);
        let mut late: Vec<u64> = wakes.0.iter().map(|late| late.load(Relaxed)).collect();
        late.sort_unstable();
        let at = |share: f64| late[((late.len() - 1) as f64 * share) as usize] as f64;
        let each = cpu.as_secs_f64() * 1e9 / late.len() as f64;
        let figures = [(Measure::Cpu, each), (Measure::Lateness, at(0.5)), (Measure::LatenessTail, at(0.99))];
        Answer { figures: figures.into(), ..elapsed.into() }
    }
}

#[cfg(test)]
mod tests;
