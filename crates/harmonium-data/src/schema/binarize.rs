//! How numbers become bits: by a threshold, or by a random draw with a seed.

use std::fmt;
use std::str::FromStr;

/// How numbers become bits. Written `128` (a threshold), `sample` or `sample:255`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Binarize {
    /// 1 where the value is at least the threshold.
    Threshold(f64),
    /// 1 with probability value / `scale`, by a draw that depends on seed, row and column alone.
    Sample {
        /// The value that becomes 1 with certainty.
        scale: f64,
    },
}

impl Binarize {
    /// The bit of `value` in row `row` and column `col`; `None` when the value is no probability.
    pub(crate) fn bit(self, value: f64, seed: u64, row: usize, col: usize) -> Option<bool> {
        match self {
            Self::Threshold(threshold) => Some(value >= threshold),
            Self::Sample { scale } => {
                let probability = value / scale;
                (0.0..=1.0).contains(&probability).then(|| coin(seed, row, col) < probability)
            }
        }
    }
}

impl fmt::Display for Binarize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Threshold(threshold) => write!(f, "{threshold}"),
            Self::Sample { scale: 1.0 } => write!(f, "sample"),
            Self::Sample { scale } => write!(f, "sample:{scale}"),
        }
    }
}

impl FromStr for Binarize {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "binarize = {text:?}: expected a threshold such as 128, or `sample`, or `sample:255`"
            )
        };
        let finite = |number: &str| {
            number.trim().parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(expected)
        };
        match text.trim().strip_prefix("sample") {
            None => finite(text).map(Self::Threshold),
            Some("") => Ok(Self::Sample { scale: 1.0 }),
            Some(rest) => match finite(rest.strip_prefix(':').ok_or_else(expected)?)? {
                scale if scale > 0.0 => Ok(Self::Sample { scale }),
                _ => Err(expected()),
            },
        }
    }
}

/// A uniform number in [0, 1) of (seed, row, column), the same however the rows are read.
fn coin(seed: u64, row: usize, col: usize) -> f64 {
    let hash = [seed, row as u64, col as u64]
        .into_iter()
        .fold(0x6461_7461, |state, word| mix(state ^ mix(word)));
    (hash >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// The finaliser of SplitMix64 after its odd increment.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_fair_and_reproducible() {
        let rule = Binarize::Sample { scale: 255.0 };
        let ones = (0..100_000).filter(|row| rule.bit(51.0, 7, *row, 3).unwrap()).count();
        // 20 000 expected, standard deviation 126.
        assert!((ones as f64 - 20_000.0).abs() < 600.0, "{ones}");
        assert_eq!(rule.bit(300.0, 7, 0, 0), None);
        assert_eq!(coin(1, 2, 3), coin(1, 2, 3));
        assert_ne!(coin(1, 2, 3), coin(1, 3, 2));
    }

    #[test]
    fn written_and_read_back() {
        for text in ["128", "0.5", "sample", "sample:255"] {
            assert_eq!(text.parse::<Binarize>().unwrap().to_string(), text);
        }
        for text in ["", "often", "sample:0", "sample:x", "sample255", "nan"] {
            assert!(text.parse::<Binarize>().is_err(), "{text}");
        }
    }
}
