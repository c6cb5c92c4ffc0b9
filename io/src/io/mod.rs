//! Anonymous pipes, as in [`std::io`], for tasks.

mod pipe;

pub use self::pipe::{PipeReader, PipeWriter, pipe};
