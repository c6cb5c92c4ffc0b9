#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod answers;
mod endpoint;
mod interner;
mod library;
mod modules;
mod object;
mod perfetto;
mod pprof;
mod profile;
mod profiler;
mod protobuf;
mod recorder;
mod request;
mod sample;
mod socket;
mod symbols;
mod sys;
mod trace;
mod unwinder;
mod walk;

pub use endpoint::{Endpoint, Serving, serve};
pub use fibra_runtime::trace::Event;
pub use profile::Profile;
pub use profiler::{Profiler, profile};
pub use recorder::{FlightRecorder, Span, span};
pub use trace::{StallEvent, Trace, TraceEvent};
pub use unwinder::{install, sample_by, unwinder};

/// For readers of other processes and of core files.
#[doc(hidden)]
pub mod outside {
    pub use crate::modules::{Modules, Read};
    pub use crate::object::{Object, Segment};
    pub use crate::symbols::Symbols;
    pub use crate::walk::Walker;
}
