//! Sixteen generators side by side, for kernels that need 64 random bytes per row.

use crate::isa::{Isa, multiversion};
use crate::stream::mix;

/// Sixteen independent xoshiro128++ generators in step (Blackman and Vigna 2021), one per 32-bit lane.
#[derive(Clone, Debug)]
pub(crate) struct Lanes([[u32; 16]; 4]);

/// Keeps the seeds of the lanes apart from those of the [`crate::Stream`] of the same key.
const LANES_TAG: u64 = 0x6c61_6e65_735f_3136;

multiversion! {
    /// The words of SplitMix64 from a state on.
    fn start(isa: Isa, state: u64) -> [[u32; 16]; 4] {
        let mut words = [0; 32];
        for (i, word) in words.iter_mut().enumerate() {
            *word = mix(state.wrapping_add((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        }
        let mut s = [[0; 16]; 4];
        for (pair, word) in s.as_flattened_mut().chunks_exact_mut(2).zip(words) {
            pair[0] = word as u32;
            pair[1] = (word >> 32) as u32;
        }
        s
    }
}

impl Lanes {
    /// The generators of a key with hash `hash`: the words of SplitMix64 from a tagged start.
    pub(crate) fn new(hash: u64) -> Self {
        Self(start(Isa::detect(), mix(hash ^ LANES_TAG)))
    }

    /// The next 32-bit word of every lane.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> [u32; 16] {
        let [s0, s1, s2, s3] = &mut self.0;
        let mut out = [0; 16];
        for l in 0..16 {
            out[l] = s0[l].wrapping_add(s3[l]).rotate_left(7).wrapping_add(s0[l]);
            let t = s1[l] << 9;
            s2[l] ^= s0[l];
            s3[l] ^= s1[l];
            s1[l] ^= s2[l];
            s0[l] ^= s3[l];
            s2[l] ^= t;
            s3[l] = s3[l].rotate_left(11);
        }
        out
    }

    /// Fills `rows` with 32 uniform 16-bit numbers each: the low half of a lane, then its high half.
    #[inline(always)]
    pub(crate) fn fill(&mut self, rows: &mut [[u16; 32]]) {
        // A local copy keeps the sixteen states in registers.
        let mut lanes = self.clone();
        for row in rows {
            let words = lanes.next();
            for (pair, word) in row.chunks_exact_mut(2).zip(words) {
                pair[0] = word as u16;
                pair[1] = (word >> 16) as u16;
            }
        }
        *self = lanes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_is_xoshiro128plusplus() {
        use rand::SeedableRng;
        use rand::rand_core::Rng;
        let mut lanes = Lanes::new(7);
        let mut one: Vec<_> = (0..16)
            .map(|l| {
                let seed: Vec<u8> = (0..4).flat_map(|k| lanes.0[k][l].to_le_bytes()).collect();
                rand_xoshiro::Xoshiro128PlusPlus::from_seed(seed.try_into().unwrap())
            })
            .collect();
        for _ in 0..100 {
            let words = lanes.next();
            for (one, word) in one.iter_mut().zip(words) {
                assert_eq!(one.next_u32(), word);
            }
        }
    }
}
