//! The texts of error types.

#![forbid(unsafe_code)]

/// Implements `Display` and `Error` for an error, which has one message for each of its cases.
macro_rules! messages {
    ($error:ident $(<$value:ident>)?: $($cases:tt)+) => {
        $crate::messages::text!(Display for $error$(<$value>)?: $($cases)+);

        impl$(<$value>)? std::error::Error for $error$(<$value>)? {}
    };
}

/// Implements a trait of `std::fmt` by one text for each case of a type.
macro_rules! text {
    ($format:ident for $type:ident $(<$value:ident>)?: $($case:pat => $text:expr),+ $(,)?) => {
        impl$(<$value>)? std::fmt::$format for $type$(<$value>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&match self {
                    $($case => std::borrow::Cow::from($text)),+
                })
            }
        }
    };
}

pub(crate) use {messages, text};
