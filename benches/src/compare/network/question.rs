//! The questions.

use std::time::Duration;

use crate::compare::question::{self, Row, Size, When};
use crate::wire::Protocol;

/// How long a sample lasts at the least.
const SAMPLE: Duration = Duration::from_millis(400);

/// So many clients ask, each again as soon as it has its answer: by TCP for 64 bytes to come back, by HTTP
/// for a page of plain text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::compare) struct Question {
    pub(super) protocol: Protocol,
    pub(super) connections: u32,
}

/// More connections than a thread each is started for.
pub(super) const MANY: u32 = 8000;

const fn echo(connections: u32) -> Question {
    Question { protocol: Protocol::Tcp, connections }
}

impl question::Question for Question {
    const ALL: &'static [(&'static str, &'static [Row<Self>])] = &[(
        "network",
        &[
            (When::One, echo(1), "echo, 1 connection", Size::Lasting(SAMPLE)),
            (When::One, echo(64), "echo, 64 connections", Size::Lasting(SAMPLE)),
            (When::One, echo(1000), "echo, 1000 connections", Size::Lasting(SAMPLE)),
            (When::One, echo(MANY), "echo, 8000 connections", Size::Lasting(SAMPLE)),
            (When::One, HTTP, "HTTP, 64 connections", Size::Lasting(SAMPLE)),
        ],
    )];
}

const HTTP: Question = Question { protocol: Protocol::Http, connections: 64 };
