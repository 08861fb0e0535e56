//! How much packed data hold, counted in small pieces: a header is a few bytes and may claim anything.

/// A claim up to so many times the file's length is believed, which saves unpacking twice.
pub(crate) const BELIEVED: u64 = 8;

/// Length of what a zlib stream holds, up to where it breaks.
pub(crate) fn inflated(packed: &[u8]) -> u64 {
    let mut stream = flate2::read::ZlibDecoder::new(packed);
    let (mut piece, mut sum) = ([0; 4096], 0);
    while let Ok(n @ 1..) = std::io::Read::read(&mut stream, &mut piece) {
        sum += n as u64;
    }
    sum
}
