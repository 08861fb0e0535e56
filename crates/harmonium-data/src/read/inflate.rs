//! How much packed data hold, counted in small pieces: a header is a few bytes and may claim anything.

/// Claimed lengths up to this multiple of the file's are accepted without unpacking the data first.
pub(crate) const UNCHECKED_RATIO: u64 = 8;

/// Unpacked length of a zlib stream, up to its first error.
pub(crate) fn inflated(packed: &[u8]) -> u64 {
    let mut stream = flate2::read::ZlibDecoder::new(packed);
    let (mut piece, mut sum) = ([0; 4096], 0);
    while let Ok(n @ 1..) = std::io::Read::read(&mut stream, &mut piece) {
        sum += n as u64;
    }
    sum
}
