//! The line that reports an overflow, put together on little stack: an alternate stack may have 8 KiB.
//!
//! By hand: the frames of `core::fmt` do not fit there in a build for AddressSanitizer.

#![forbid(unsafe_code)]

/// The longest name that is printed in full, in bytes.
const NAME: usize = 120;

/// A buffer that cuts off what does not fit.
pub(super) struct Line {
    bytes: [u8; 384],
    len: usize,
}

impl Line {
    /// Formats the report: the task, the bytes of its stack, and what to do.
    pub(super) fn report(id: u64, name: &[u8], stack_size: usize) -> Self {
        let mut line = Self { bytes: [0; 384], len: 0 };
        line.text(b"fibra: task ");
        if !name.is_empty() {
            line.text(b"'");
            line.name(name);
            line.text(b"' ");
        }
        line.text(b"(id ");
        line.number(id);
        line.text(b") overflowed its stack of ");
        line.size(stack_size);
        line.text(b"; raise it with task::Builder::stack_size or Runtime::builder().stack_size\n");
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
