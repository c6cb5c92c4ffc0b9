//! A writer of protobuf messages: <https://protobuf.dev/programming-guides/encoding/>.

#![forbid(unsafe_code)]

/// The kinds of values, which the low bits of a field's key tell.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

/// Holds the bytes of a message, to which fields are appended.
///
/// A repeated field is written once for each value.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// Returns the encoded message.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Appends a number: of type `uint32`, `uint64`, `bool` or an enum, and `int32` or `int64` as `value as u64`.
    pub(crate) fn number(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, VARINT).varint(value)
    }

    /// Appends a number of type `fixed64`.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.key(field, FIXED64).0.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a `string`.
    pub(crate) fn string(&mut self, field: u32, value: &str) -> &mut Self {
        self.key(field, LENGTH_DELIMITED).varint(value.len() as u64).0.extend_from_slice(value.as_bytes());
        self
    }

    /// Appends a message, or a packed list, whose content `write` appends.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Self {
        self.key(field, LENGTH_DELIMITED);
        let begin = self.0.len();
        write(self);
        let (length, used) = encode((self.0.len() - begin) as u64);
        self.0.splice(begin..begin, length[..used].iter().copied());
        self
    }

    /// Appends a number without a key: an element of a packed list.
    pub(crate) fn varint(&mut self, value: u64) -> &mut Self {
        let (bytes, used) = encode(value);
        self.0.extend_from_slice(&bytes[..used]);
        self
    }

    fn key(&mut self, field: u32, kind: u64) -> &mut Self {
        self.varint((u64::from(field) << 3) | kind)
    }
}

/// Returns seven bits a byte, the lowest first, and how many bytes that takes. All but the last have their high bit set.
fn encode(mut value: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut used) = ([0; 10], 0);
    while value > 0x7f {
        (bytes[used], value, used) = (value as u8 | 0x80, value >> 7, used + 1);
    }
    bytes[used] = value as u8;
    (bytes, used + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Message)) -> Vec<u8> {
        let mut message = Message::default();
        write(&mut message);
        message.as_bytes().to_vec()
    }

    #[test]
    fn numbers_take_a_byte_for_seven_bits() {
        assert_eq!(written(|it| _ = it.number(1, 0)), [0x08, 0]);
        assert_eq!(written(|it| _ = it.number(1, 150)), [0x08, 0x96, 0x01]);
        assert_eq!(written(|it| _ = it.number(16, 127)), [0x80, 0x01, 0x7f]);
        let longest = [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(written(|it| _ = it.number(1, u64::MAX)), longest);
        assert_eq!(written(|it| _ = it.number(1, -1_i64 as u64)), longest);
    }

    #[test]
    fn fixed_numbers_are_little_endian() {
        assert_eq!(written(|it| _ = it.fixed64(47, 0x0102)), [0xf9, 0x02, 2, 1, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn strings_have_their_length_in_bytes() {
        assert_eq!(written(|it| _ = it.string(2, "testing")), *b"\x12\x07testing");
        assert_eq!(written(|it| _ = it.string(2, "é")), *b"\x12\x02\xc3\xa9");
    }

    #[test]
    fn messages_nest() {
        let nested = written(|it| _ = it.message(3, |inner| _ = inner.number(1, 150)).number(1, 1));
        assert_eq!(nested, [0x1a, 0x03, 0x08, 0x96, 0x01, 0x08, 1]);
        assert_eq!(written(|it| _ = it.message(3, |_| ())), [0x1a, 0]);
        let list = [3, 270, 86942];
        let packed =
            written(|it| _ = it.message(6, |packed| list.iter().for_each(|&value| _ = packed.varint(value))));
        assert_eq!(packed, [0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05]);
    }

    #[test]
    fn a_long_message_inside_another_has_a_long_length() {
        let text = "x".repeat(300);
        let outer = written(|it| {
            it.message(1, |middle| _ = middle.message(2, |inner| _ = inner.string(3, &text)));
        });
        assert_eq!(outer[..10], [0x0a, 0xb2, 0x02, 0x12, 0xaf, 0x02, 0x1a, 0xac, 0x02, b'x']);
        assert_eq!(outer.len(), 309);
    }
}
