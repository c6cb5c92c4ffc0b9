//! The numbers of a runtime in the crate `metrics`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use fibra::Runtime;
use fibra::metrics::record;
use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit, with_local_recorder,
};

/// A recorder that keeps what it is told.
#[derive(Default)]
struct Kept {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    descriptions: Mutex<BTreeMap<String, String>>,
}

/// Names a number as Prometheus' text does.
fn full_name(key: &Key) -> String {
    let mut name = key.name().to_owned();
    for label in key.labels() {
        write!(name, "{{{}={:?}}}", label.key(), label.value()).unwrap();
    }
    name
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.descriptions.lock().unwrap().insert(format!("counter {}", name.as_str()), text.into_owned());
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.descriptions.lock().unwrap().insert(format!("gauge {}", name.as_str()), text.into_owned());
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("{} is a histogram", name.as_str());
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Arc::clone(self.counters.lock().unwrap().entry(full_name(key)).or_default()))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Arc::clone(self.gauges.lock().unwrap().entry(full_name(key)).or_default()))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("{} is a histogram", key.name());
    }
}

#[test]
fn each_number_of_the_text_is_recorded_under_the_same_name() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    runtime.run(|| fibra::spawn(fibra::yield_now).join().unwrap());
    let (metrics, kept) = (runtime.metrics(), Kept::default());
    // Twice: a counter is set, not added to.
    (0..2).for_each(|_| with_local_recorder(&kept, || record(&metrics)));
    let (counters, gauges) = (kept.counters.lock().unwrap(), kept.gauges.lock().unwrap());
    let counted = |name: &str| counters.get(name).map(|value| value.load(Ordering::Relaxed) as f64);
    let gauged = |name: &str| gauges.get(name).map(|value| f64::from_bits(value.load(Ordering::Relaxed)));
    let text = metrics.to_prometheus();
    let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    for line in &samples {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let is_counter = name.contains("_total") && !name.contains("_seconds_total");
        let kept = if is_counter { counted(name) } else { gauged(name) };
        assert_eq!(kept, value.parse().ok(), "{name}");
    }
    assert_eq!(samples.len(), counters.len() + gauges.len());
    assert_eq!(counted("fibra_tasks_spawned_total"), Some(2.0));
}

#[test]
fn each_number_is_described_once_and_as_what_it_is() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let kept = Kept::default();
    with_local_recorder(&kept, || record(&runtime.metrics()));
    let descriptions = kept.descriptions.lock().unwrap();
    let described = |name: &str| descriptions.get(name).map(String::as_str);
    assert_eq!(described("counter fibra_worker_runs_total"), Some("Runs of tasks."));
    assert_eq!(described("gauge fibra_tasks"), Some("Tasks by state."));
    assert_eq!(
        described("gauge fibra_worker_lock_wait_seconds_total"),
        Some("How long waits for locks took, in all."),
        "a counter is a whole number"
    );
    assert!(descriptions.values().all(|text| !text.is_empty()));
}
