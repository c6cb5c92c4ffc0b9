//! The bytes of a request: different for every request of every connection, and cheap to make.

/// Fills `request` with the bytes of request `number` of `connection`.
///
/// The first eight bytes name the two, so that no two requests of a run are alike (where they have eight bytes); the rest
/// is noise that depends on both, so that a reply put together of parts of others is found out.
pub(crate) fn fill(request: &mut [u8], connection: u32, number: u32) {
    let name = u64::from(connection) << 32 | u64::from(number);
    let mut noise = name.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut word = name.to_le_bytes();
    for chunk in request.chunks_mut(8) {
        chunk.copy_from_slice(&word[..chunk.len()]);
        // xorshift64 (Marsaglia, 2003).
        noise ^= noise << 13;
        noise ^= noise >> 7;
        noise ^= noise << 17;
        word = noise.to_le_bytes();
    }
}

/// The connection and the number of the request that begins so, if it has eight bytes.
pub(crate) fn name(request: &[u8]) -> Option<(u32, u32)> {
    let word = u64::from_le_bytes(*request.first_chunk()?);
    Some(((word >> 32) as u32, word as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn request(size: usize, connection: u32, number: u32) -> Vec<u8> {
        let mut bytes = vec![0; size];
        fill(&mut bytes, connection, number);
        bytes
    }

    #[test]
    fn no_two_requests_are_alike() {
        let all: HashSet<_> = (0..100).flat_map(|c| (0..100).map(move |n| request(8, c, n))).collect();
        assert_eq!(all.len(), 10_000);
    }

    #[test]
    fn every_word_differs_between_requests() {
        let (one, two) = (request(64, 3, 8), request(64, 3, 9));
        assert!(one.chunks(8).zip(two.chunks(8)).all(|(a, b)| a != b));
    }

    #[test]
    fn a_request_tells_its_name() {
        assert_eq!(name(&request(8, 3, 9)), Some((3, 9)));
        assert_eq!(name(&request(64, u32::MAX, 0)), Some((u32::MAX, 0)));
        assert_eq!(name(&request(7, 1, 1)), None);
    }

    #[test]
    fn any_size_is_filled() {
        assert_eq!(request(1, 0, 7), [7]);
        assert_eq!(request(13, 1, 1).len(), 13);
    }
}
