//! Random weights and states of realistic size and density.

use harmonium_kernels::bits;

/// SplitMix64.
pub struct Source(u64);

impl Source {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }
    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }
    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.word() >> 40) as f32 / (1u64 << 24) as f32
    }
    /// Weights like those of a trained machine: near-normal with `std`, 2 % of them four times as large.
    pub fn weights(&mut self, n: usize, std: f32) -> Vec<f32> {
        (0..n)
            .map(|_| {
                let normal: f32 = (0..12).map(|_| self.unit()).sum::<f32>() - 6.0;
                let tail = if self.unit() < 0.02 { 4.0 } else { 1.0 };
                (normal * tail * std).clamp(-5.0, 5.0)
            })
            .collect()
    }
    /// Packed rows of bits of density `p`.
    pub fn bits(&mut self, rows: usize, n: usize, p: f32) -> Vec<u64> {
        let stride = bits::words(n);
        let mut x = vec![0; rows * stride];
        for row in x.chunks_exact_mut(stride) {
            for j in 0..n {
                bits::set(row, j, self.unit() < p);
            }
        }
        x
    }
    /// Codes below `q`.
    pub fn codes(&mut self, n: usize, q: u32) -> Vec<u32> {
        (0..n).map(|_| (self.word() >> 32) as u32 % q).collect()
    }
}

/// Packed rows as a dense matrix of 0 and 1.
pub fn dense(x: bits::BitMatrix<'_>) -> Vec<f32> {
    let mut out = vec![0.0; x.rows() * x.bits()];
    for (r, out) in out.chunks_exact_mut(x.bits()).enumerate() {
        for j in bits::ones(x.row(r)) {
            out[j] = 1.0;
        }
    }
    out
}
