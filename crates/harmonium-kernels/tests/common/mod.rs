//! Random inputs for the tests of the kernels.
#![allow(dead_code, unreachable_pub)]

use harmonium_kernels::{Real, bits};

/// Random bits, codes and reals in (−1, 1) from one seed.
pub struct Source(pub u64);

impl Source {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^ x >> 29
    }
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
    pub fn bits(&mut self, rows: usize, n: usize, p: f64) -> Vec<u64> {
        let stride = bits::words(n);
        let mut x = vec![0; rows * stride];
        for r in 0..rows {
            for j in 0..n {
                bits::set(&mut x[r * stride..(r + 1) * stride], j, self.unit() < p);
            }
        }
        x
    }
    pub fn reals<T: Real>(&mut self, n: usize) -> Vec<T> {
        (0..n).map(|_| T::of(2.0 * self.unit() - 1.0)).collect()
    }
    pub fn codes(&mut self, n: usize, q: usize) -> Vec<u32> {
        (0..n).map(|_| (self.next() >> 32) as u32 % q.max(1) as u32).collect()
    }
}
