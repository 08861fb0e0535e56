//! Random streams keyed by what they are for, so that results never depend on the thread count.

use rand::SeedableRng;
use rand::rand_core::{Infallible, TryRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a stream of random numbers is for.
///
/// Work is cut into *fixed* blocks of chains or columns, whatever the number of threads, and every block
/// draws from the stream of its own key. A stream can therefore be made again at any point of a run: a
/// checkpoint stores the seed and the sweep number, not the generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The user's seed.
    pub seed: u64,
    /// What the numbers are used for (one number per use, so that no two uses share numbers).
    pub purpose: u32,
    /// Which block of chains or columns.
    pub block: u32,
    /// Which sweep.
    pub sweep: u64,
}

impl Key {
    /// 64 well-mixed bits of the key; equal keys give equal bits.
    pub fn hash(self) -> u64 {
        // A chain of SplitMix64 finalisers: each word is absorbed by a bijection of the state.
        [self.seed, u64::from(self.purpose) << 32 | u64::from(self.block), self.sweep]
            .into_iter()
            .fold(0x6861_726d_6f6e_6975, |state, word| mix(state ^ mix(word)))
    }
}

/// The finaliser of SplitMix64 after its odd increment: a bijection of 64 bits.
#[inline(always)]
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

/// The generator of one key: xoshiro256++, seeded from the key's hash by SplitMix64.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of `key`, from its beginning.
    pub fn new(key: Key) -> Self {
        Self::of_hash(key.hash())
    }

    /// The stream of the key with this hash.
    pub(crate) fn of_hash(hash: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(hash))
    }
}

impl TryRng for Stream {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }
    fn try_fill_bytes(&mut self, dst: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(dst)
    }
}
