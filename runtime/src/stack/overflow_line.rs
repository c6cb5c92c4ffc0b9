//! The line that reports an overflow, put together in a handler: without an allocation, on little stack.
//!
//! By hand: the frames of `core::fmt` do not fit there in a build for AddressSanitizer.

#![forbid(unsafe_code)]

/// Identifies the task that overflowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overflow<'a> {
    /// The task's number.
    pub(crate) id: u64,
    pub(crate) name: Option<&'a str>,
    /// The file and the line of its spawn.
    pub(crate) place: Option<(&'a str, u32)>,
    /// The size of its stack in bytes, as the user knows it: [`Stack::size`](crate::stack::handle::Stack::size).
    pub(crate) stack_size: usize,
    pub(crate) knob: Knob,
}

/// What sets the size of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knob {
    Builder,
    /// The knob of the main task.
    Main,
    /// The argument of `on_big_stack`.
    BigStack,
}

impl Knob {
    fn advice(self) -> &'static [u8] {
        match self {
            Knob::Builder => {
                b"raise it with task::Builder::stack_size or Runtime::builder().stack_size, or run deep code in \
                  task::on_big_stack\n"
            }
            Knob::Main => {
                b"raise it with Runtime::builder().main_stack_size, or run deep code in task::on_big_stack\n"
            }
            Knob::BigStack => b"give task::on_big_stack a larger size\n",
        }
    }
}

/// The longest name or path that is printed in full, in bytes.
const NAME: usize = 120;

/// Room for a name of the longest length, or for a path of that length, and the rest of the line.
const LINE: usize = 384;

/// A buffer that cuts off what does not fit.
pub(super) struct Line {
    bytes: [u8; LINE],
    len: usize,
}

impl Line {
    /// Formats the report: the task, the bytes of its stack, and what to do.
    pub(super) fn report(overflow: &Overflow<'_>) -> Self {
        let mut line = Self { bytes: [0; LINE], len: 0 };
        line.text(b"fibra: task ");
        if let Some(name) = overflow.name {
            line.text(b"'");
            line.name(name.as_bytes());
            line.text(b"' ");
        }
        line.text(b"(id ");
        line.number(overflow.id);
        if let (None, Some((file, number))) = (overflow.name, overflow.place) {
            line.text(b", spawned at ");
            line.name(file.as_bytes());
            line.text(b":");
            line.number(number.into());
        }
        line.text(b") overflowed its stack of ");
        line.size(overflow.stack_size);
        line.text(b"; ");
        line.text(overflow.knob.advice());
        line
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn text(&mut self, text: &[u8]) {
        text.iter().for_each(|byte| self.byte(*byte));
    }

    fn byte(&mut self, byte: u8) {
        if let Some(free) = self.bytes.get_mut(self.len) {
            *free = byte;
            self.len += 1;
        }
    }

    /// A name of any bytes stays within the one line.
    fn name(&mut self, name: &[u8]) {
        for byte in name.iter().take(NAME) {
            self.byte(if byte.is_ascii_control() { b'?' } else { *byte });
        }
        if name.len() > NAME {
            self.text(b"...");
        }
    }

    fn size(&mut self, bytes: usize) {
        let (number, unit): (usize, &[u8]) = match bytes {
            _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => (bytes >> 20, b" MiB"),
            _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => (bytes >> 10, b" KiB"),
            _ => (bytes, b" bytes"),
        };
        self.number(number as u64);
        self.text(unit);
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.text(&digits[first..]);
    }
}
