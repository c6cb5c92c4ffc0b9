//! The run of a worker, as a watch sees it.

use std::sync::Arc;

use loom::thread;

use crate::primitive::check;
use crate::run_watch::Run;
use crate::task::{Header, TaskRef};
use crate::wait::Lock;

struct Model {
    run: Run,
    /// At this address is one task after the other.
    address: Header,
    /// Which of them is in the registry: that of the first run or of the second.
    registry: Lock<Option<u64>>,
}

// SAFETY: the models reach the header for its address only.
unsafe impl Sync for Model {}
// SAFETY: as above.
unsafe impl Send for Model {}

impl Model {
    /// A worker in its first run.
    fn new() -> Arc<Self> {
        let model = Model { run: Run::default(), address: Header::new(), registry: Lock::new(None) };
        assert!(!model.run.look().is_of_a_run());
        *model.registry.lock() = Some(1);
        model.run.begin(TaskRef::of(&model.address));
        Arc::new(model)
    }

    /// The worker ends the first run and its task, and begins the second: as `finish`, `bind` and `resume`.
    fn next_run(&self) {
        self.run.end();
        *self.registry.lock() = None;
        *self.registry.lock() = Some(2);
        self.run.begin(TaskRef::of(&self.address));
    }

    /// The task that the watch names for a run that it has seen before.
    fn named(&self) -> Option<(u64, u64)> {
        let seen = self.run.look().number;
        let sight = self.run.look();
        if !sight.is_of_a_run() || sight.number != seen {
            return None;
        }
        self.run.task_of(sight, |_address| *self.registry.lock()).map(|task| (seen, task))
    }
}

/// Finds: a task that is named for the run of an earlier task at its address.
#[test]
fn the_watch_names_the_task_of_the_run_that_it_saw() {
    check(|| {
        let model = Model::new();
        let worker = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.next_run())
        };
        if let Some((run, task)) = model.named() {
            assert_eq!(run, task);
        }
        worker.join().unwrap();
        assert_eq!(model.named(), Some((2, 2)));
    });
}
