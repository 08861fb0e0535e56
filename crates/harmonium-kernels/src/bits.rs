//! Rows of bits packed into `u64` words, least significant bit first; unused high bits are zero.

/// Words needed for `n` bits.
pub const fn words(n: usize) -> usize {
    n.div_ceil(64)
}

/// Bit `j` of a packed row.
#[inline]
pub fn get(row: &[u64], j: usize) -> bool {
    row[j / 64] >> (j % 64) & 1 == 1
}

/// Sets bit `j` of a packed row to `value`.
#[inline]
pub fn set(row: &mut [u64], j: usize, value: bool) {
    let (word, mask) = (&mut row[j / 64], 1 << (j % 64));
    if value { *word |= mask } else { *word &= !mask }
}

/// Mask of the bits of the last word that a row of `n` bits uses.
pub const fn last_mask(n: usize) -> u64 {
    if n % 64 == 0 {
        u64::MAX
    } else {
        (1 << (n % 64)) - 1
    }
}

/// Positions of the set bits of a packed row, in increasing order.
pub fn ones(row: &[u64]) -> impl Iterator<Item = usize> + '_ {
    row.iter().enumerate().flat_map(|(k, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let j = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                64 * k + j
            })
        })
    })
}
