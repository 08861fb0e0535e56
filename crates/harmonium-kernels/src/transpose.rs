//! Transposition of a dense row-major matrix, in tiles that fit the first-level cache.

/// Writes the transpose of the row-major `k × n` matrix `w` (row-major `n × k`) to `out`.
///
/// # Panics
/// If a length is not `k·n`.
pub fn transpose<T: Copy>(w: &[T], k: usize, n: usize, out: &mut [T]) {
    assert!(w.len() == k * n && out.len() == k * n, "transpose: lengths do not fit k × n");
    const TILE: usize = 8;
    let (whole_k, whole_n) = (k - k % TILE, n - n % TILE);
    for i0 in (0..whole_k).step_by(TILE) {
        for j0 in (0..whole_n).step_by(TILE) {
            // Rows and columns of constant length: no checks inside, and the square stays in registers.
            let row =
                |i: usize| -> [T; TILE] { w[(i0 + i) * n + j0..][..TILE].try_into().expect("a tile") };
            let square = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
            for j in 0..TILE {
                let column: [T; TILE] = std::array::from_fn(|i| square[i][j]);
                out[(j0 + j) * k + i0..][..TILE].copy_from_slice(&column);
            }
        }
    }
    for i in 0..k {
        for j in if i < whole_k { whole_n } else { 0 }..n {
            out[j * k + i] = w[i * n + j];
        }
    }
}
