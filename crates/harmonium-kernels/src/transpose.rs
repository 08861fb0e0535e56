//! Transposition of a dense row-major matrix, in tiles that fit the first-level cache.

/// Writes the transpose of the row-major `k × n` matrix `w` (row-major `n × k`) to `out`.
///
/// # Panics
/// If a length is not `k·n`.
pub fn transpose<T: Copy>(w: &[T], k: usize, n: usize, out: &mut [T]) {
    assert!(w.len() == k * n && out.len() == k * n, "transpose: lengths do not fit k × n");
    const TILE: usize = 16;
    for i0 in (0..k).step_by(TILE) {
        for j0 in (0..n).step_by(TILE) {
            for j in j0..n.min(j0 + TILE) {
                for i in i0..k.min(i0 + TILE) {
                    out[j * k + i] = w[i * n + j];
                }
            }
        }
    }
}
