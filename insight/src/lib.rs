#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod library;
mod modules;
#[cfg_attr(not(test), expect(dead_code, reason = "the encoders that use it come next"))]
mod protobuf;
mod sample;
mod symbols;
mod sys;
mod unwinder;
mod walk;

pub use unwinder::{install, sample_by, unwinder};
