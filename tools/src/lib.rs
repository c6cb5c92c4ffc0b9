#![doc = include_str!("../README.md")]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod core_file;
pub mod dump;
mod elf;
mod image;
mod modules;
pub mod printable;
mod process;
mod sys;
mod tasks;
