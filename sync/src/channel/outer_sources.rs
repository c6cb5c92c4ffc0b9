//! The cancellation token, and the receivers of other channels, as sources of a select.
//!
//! Such a receiver has one owner, so what it has been told of stays there for it. The select takes nothing: its case receives.

#![forbid(unsafe_code)]

use std::sync::Arc;

use fibra_runtime::CancelToken;

use super::selectable::{Selectable, sealed};
use crate::wait::QueueArm;
use crate::{broadcast, oneshot, watch};

type OneshotArm<'a, T> = QueueArm<'a, oneshot::State<T>, (), 2, oneshot::Half<T>>;
type BroadcastArm<'a, T> = QueueArm<'a, broadcast::State<Arc<T>>, (), 2, broadcast::Receiver<T>>;
type WatchArm<'a, T> = QueueArm<'a, watch::Counts, (), 3, watch::Receiver<T>>;

source!([] CancelToken, QueueArm<'a, bool, ()>, it => it.queue_arm(), it.is_cancelled());
source!([T] oneshot::Receiver<T>, OneshotArm<'a, T>, it => it.queue_arm(), it.has_outcome());
source!([T] broadcast::Receiver<T>, BroadcastArm<'a, T>, it => it.queue_arm(), it.has_outcome());
source!([T] watch::Receiver<T>, WatchArm<'a, T>, it => it.queue_arm(), it.has_outcome());
