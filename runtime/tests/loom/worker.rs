//! A worker, of which there is none: who wakes in a model is a thread.

use crate::task::TaskRef;

pub(crate) enum Worker {}

impl Worker {
    pub(crate) fn notify(&self, _task: TaskRef) {
        match *self {}
    }
}
