//! What a trial tries: the settings at the start, and the variants of one that does well.

use serde::{Deserialize, Serialize};

/// The settings that a search chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Number of hidden units.
    pub hidden: usize,
    /// Kind of the hidden units, as a word.
    pub hidden_kind: String,
    /// Strength of the penalty on absolute weights.
    pub l1: f64,
    /// Strength of the penalty on squared weights.
    pub l2: f64,
    /// Learning rate.
    pub rate: f64,
}

/// What a search may change; the rest was set by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) hidden: bool,
    pub(super) kind: bool,
    pub(super) penalty: bool,
    pub(super) rate: bool,
}

/// Fewest and most hidden units that are tried unasked.
const FEWEST: usize = 4;
const MOST: usize = 4000;

/// Strengths of the penalty on absolute weights, from which variants go one step up or down.
const L1: [f64; 6] = [0.0, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2];

/// Strength of the penalty on squared weights, for all rows together (docs/design/0006-learning.md).
const L2: f64 = 0.3;

impl Setting {
    /// The settings that a search starts from. `self` has the defaults.
    ///
    /// Binary columns differ in size and in the penalty that makes weights vanish; their rate has one good value. Other
    /// columns overfit and diverge in more ways: they differ in the rate, in the penalty on squares, and in the kind of hidden units.
    pub(super) fn first(&self, bits: bool, rows: usize, free: Free) -> Vec<Self> {
        let with = |size: f64, l1: f64, l2: f64, rate: f64| Self {
            hidden: ((size * self.hidden as f64) as usize).clamp(FEWEST, MOST.max(self.hidden)),
            l1,
            l2,
            rate: rate * self.rate,
            ..self.clone()
        };
        let few = L2 / rows as f64;
        let mut all = vec![self.clone()];
        all.extend(match bits {
            true => vec![
                with(1.0, 3e-4, 0.0, 1.0),
                with(1.0, 1e-3, 0.0, 1.0),
                with(2.0, 0.0, 0.0, 1.0),
                with(2.0, 3e-4, 0.0, 1.0),
                with(0.5, 0.0, 0.0, 1.0),
            ],
            false => vec![
                with(1.0, 0.0, few, 1.0),
                with(1.0, 0.0, few, 0.25),
                with(1.0, 0.0, few, 4.0),
                with(2.0, 0.0, 10.0 * few, 1.0),
                Self { hidden_kind: "relu".into(), ..with(1.0, 0.0, few, 1.0) },
            ],
        });
        let mut kept: Vec<Self> = Vec::new();
        for setting in all {
            if setting.keeps_to(self, free) && !kept.contains(&setting) {
                kept.push(setting);
            }
        }
        kept
    }

    /// Whether it differs from the defaults only in what may be changed.
    fn keeps_to(&self, default: &Self, free: Free) -> bool {
        (free.hidden || self.hidden == default.hidden)
            && (free.kind || self.hidden_kind == default.hidden_kind)
            && (free.penalty || (self.l1, self.l2) == (default.l1, default.l2))
            && (free.rate || self.rate == default.rate)
    }

    /// Variants that go on from what this setting has learnt, the most promising first. A trial that `overfits` needs a
    /// penalty before it needs more units.
    pub(super) fn variants(&self, overfits: bool, free: Free) -> Vec<Self> {
        let place = L1.iter().rposition(|&x| x <= self.l1).unwrap_or(0);
        let l1 = |place: Option<&f64>| place.map(|&l1| Self { l1, ..self.clone() });
        let grown = Self { hidden: 2 * self.hidden, ..self.clone() };
        let grown = (2 * self.hidden <= MOST).then_some(grown);
        let stronger = l1(L1.get(place + 1));
        let weaker = l1(place.checked_sub(1).and_then(|p| L1.get(p))).filter(|_| self.l1 > 0.0);
        let slower = Some(Self { rate: 0.3 * self.rate, ..self.clone() });
        let order = match overfits {
            true => [stronger, slower, grown, weaker],
            false => [grown, stronger, weaker, slower],
        };
        order.into_iter().flatten().filter(|s| s.keeps_to(self, free)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Free = Free { hidden: true, kind: true, penalty: true, rate: true };

    fn default() -> Setting {
        Setting { hidden: 24, hidden_kind: "binary".into(), l1: 0.0, l2: 0.0, rate: 0.1 }
    }

    #[test]
    fn what_the_user_has_set_stays() {
        for bits in [true, false] {
            let all = default().first(bits, 100, ALL);
            assert_eq!((all[0].clone(), all.len()), (default(), 6));
            let only = default().first(bits, 100, Free { hidden: false, ..ALL });
            assert!(only.len() > 2 && only.iter().all(|s| s.hidden == 24), "{only:?}");
            let none = Free { hidden: false, kind: false, penalty: false, rate: false };
            assert_eq!(default().first(bits, 100, none), [default()]);
            assert_eq!(default().variants(false, none), []);
        }
        assert!(default().variants(true, Free { penalty: false, ..ALL }).iter().all(|s| s.l1 == 0.0));
    }

    #[test]
    fn overfitting_asks_for_a_penalty_first() {
        let setting = Setting { l1: 3e-4, ..default() };
        let [first, second, third, fourth] = &setting.variants(false, ALL)[..] else { panic!() };
        assert_eq!((first.hidden, second.l1, third.l1), (48, 1e-3, 1e-4));
        assert!(fourth.rate < setting.rate);
        assert_eq!(setting.variants(true, ALL)[0], *second);
    }
}
