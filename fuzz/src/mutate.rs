//! Inputs from seeds: cut, spliced, and with bytes, numbers and digits changed.

/// Random numbers that repeat: the same target sees the same inputs.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(name: &str) -> Self {
        Self(
            name.bytes()
                .fold(0x9e37_79b9_7f4a_7c15, |s, b| (s ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)),
        )
    }

    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Numbers that are likely to break lengths and offsets.
const NUMBERS: [u64; 12] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
    1 << 40,
];

/// A seed with some changes.
pub(crate) fn mutated(seeds: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut x = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(4) {
        change(&mut x, seeds, dice);
    }
    x
}

fn change(x: &mut Vec<u8>, seeds: &[Vec<u8>], dice: &mut Dice) {
    if x.is_empty() {
        x.push(dice.next() as u8);
        return;
    }
    let at = dice.below(x.len());
    let stretch = at..(at + 1 + dice.below(16)).min(x.len());
    match dice.below(10) {
        0 => x.truncate(at),
        1 | 2 => x[at] ^= 1 << dice.below(8),
        3 => x[at] = dice.next() as u8,
        4 | 5 => {
            let number = NUMBERS[dice.below(NUMBERS.len())];
            let width = [1, 2, 4, 8][dice.below(4)];
            let bytes = if dice.below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
            let bytes = if dice.below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
            x.iter_mut().skip(at).zip(bytes).for_each(|(x, b)| *x = *b);
        }
        6 => drop(x.drain(stretch)),
        7 => {
            let copy = x[stretch].to_vec();
            let to = dice.below(x.len());
            x.splice(to..to, copy);
        }
        8 => {
            let other = &seeds[dice.below(seeds.len())];
            let from = dice.below(other.len());
            x.truncate(at);
            x.extend_from_slice(&other[from..]);
        }
        _ => digits(x, at, dice),
    }
}

/// Makes the next number in decimal digits another one.
fn digits(x: &mut Vec<u8>, from: usize, dice: &mut Dice) {
    let Some(start) = (from..x.len()).find(|&i| x[i].is_ascii_digit()) else { return };
    let end = (start..x.len()).find(|&i| !x[i].is_ascii_digit()).unwrap_or(x.len());
    let number = NUMBERS[dice.below(NUMBERS.len())].to_string();
    x.splice(start..end, number.into_bytes());
}
