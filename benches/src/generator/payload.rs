//! The bytes of a request: different for every request of every connection, and cheap to make.

/// Fills `request` with the bytes of request `number` of `connection`.
///
/// The first eight bytes name the two, so that no two requests of a run are alike (where they have eight
/// bytes); the rest is noise that depends on both, so that a reply put together of parts of others is found
/// out.
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
mod tests;
