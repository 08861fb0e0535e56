//! Gray codes: all states of a set of units, one change at a time.

/// Digits in reflected mixed-radix Gray order: each step changes one digit by one (Knuth, TAOCP 7.2.1.1, H).
pub(super) struct Gray {
    radix: Vec<usize>,
    digit: Vec<usize>,
    up: Vec<bool>,
    focus: Vec<usize>,
}

impl Gray {
    pub(super) fn new(radix: Vec<usize>) -> Self {
        let n = radix.len();
        Self { radix, digit: vec![0; n], up: vec![true; n], focus: (0..=n).collect() }
    }

    /// The position that changes and its new digit, or `None` at the end.
    pub(super) fn step(&mut self) -> Option<(usize, usize)> {
        let j = std::mem::replace(&mut self.focus[0], 0);
        if j == self.radix.len() {
            return None;
        }
        self.digit[j] = if self.up[j] { self.digit[j] + 1 } else { self.digit[j] - 1 };
        let now = self.digit[j];
        if now == 0 || now == self.radix[j] - 1 {
            self.up[j] = !self.up[j];
            self.focus[j] = self.focus[j + 1];
            self.focus[j + 1] = j + 1;
        }
        Some((j, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Every combination once, each step changing one digit by one.
    #[test]
    fn visits_every_state_once() {
        for radix in [vec![], vec![2], vec![2, 2, 2], vec![3, 2, 4], vec![5, 3]] {
            let mut gray = Gray::new(radix.clone());
            let mut digits = vec![0_usize; radix.len()];
            let mut seen = HashSet::from([digits.clone()]);
            while let Some((j, a)) = gray.step() {
                assert_eq!(digits[j].abs_diff(a), 1);
                digits[j] = a;
                assert!(seen.insert(digits.clone()), "{radix:?}: {digits:?} twice");
            }
            assert_eq!(seen.len(), radix.iter().product::<usize>());
        }
    }
}
