//! The messages of error types.

#![forbid(unsafe_code)]

/// Implements `Display` and `Error` for an error, which has one message for each of its cases.
macro_rules! messages {
    ($error:ident $(<$value:ident>)?: $($case:pat => $message:expr),+ $(,)?) => {
        impl$(<$value>)? std::fmt::Display for $error$(<$value>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self {
                    $($case => $message),+
                })
            }
        }

        impl$(<$value>)? std::error::Error for $error$(<$value>)? {}
    };
}

pub(crate) use messages;
