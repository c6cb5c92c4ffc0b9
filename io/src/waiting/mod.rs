//! Waits for descriptors and manual sources, and the parts that all types share.

#![forbid(unsafe_code)]

pub(crate) mod attempt;
pub(crate) mod cancel;
pub(crate) mod convert;
pub(crate) mod descriptor;
pub(crate) mod edge_wait;
pub(crate) mod helper;
pub(crate) mod looks;
pub(crate) mod manual;
pub(crate) mod op;
pub(crate) mod registration;
pub(crate) mod second_pool;
pub(crate) mod set;
pub(crate) mod stream_file;
pub(crate) mod timeouts;
