//! The texts of error types, and what a type shows of itself.

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

/// Implements `Debug` for a type by its name, and the fields that are listed.
/// So messages need not be `Debug`.
macro_rules! shown {
    (
        $([$value:ident])? $type:ident $(<$($argument:tt),+>)?
        $(: $this:ident => $($field:ident: $shown:expr),+ $(,)?)?
    ) => {
        impl$(<$value>)? std::fmt::Debug for $type$(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct(stringify!($type));
                $(
                    let $this = self;
                    $(shown.field(stringify!($field), &$shown);)+
                )?
                shown.finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use {messages, shown, text};
