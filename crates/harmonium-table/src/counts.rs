//! What the units of count columns are: the kind under which the training values are most probable.

use harmonium::units::smoothed_frequencies;
use harmonium::{Batch, Kind, Layer};
use harmonium_data::{self as hd, Block, Table, Values};
use ndarray::{Array2, array};
use std::collections::BTreeMap;

/// Largest bound of binomial units.
const LARGEST_BINOMIAL: u32 = 64;

/// Counts up to this may be negative binomial: near the end of their range a mean costs a sum over all states.
const LARGEST_NEGATIVE_BINOMIAL: u32 = 1 << 16;

/// Counts up to this may be ordinal, with frequencies of their own, and numbers that a layer of them may keep.
const LARGEST_ORDINAL: u32 = 255;
const MANY_FREQUENCIES: usize = 1 << 14;

/// Nats per row and column by which a kind must be better than a simpler one.
const WORTH: f64 = 0.01;

/// How often each count occurs among the known entries of a column.
pub type Histogram = BTreeMap<u32, u64>;

/// The requested kind of the units of count columns, and whether they must be bounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountUnits {
    /// The requested kind.
    pub wish: Option<Kind>,
    /// Whether they are coupled to units without bounds, or among themselves: a Poisson unit may then diverge.
    pub bounded: bool,
}

/// The histograms of the columns of each block of a table; none where they are no counts.
pub(crate) fn histograms(table: &Table) -> Vec<Vec<Histogram>> {
    let of = |block: &Block| match (block.kind, &block.values) {
        (hd::Kind::Count, Values::Codes(codes)) => (0..block.cols())
            .map(|j| {
                let mut seen = Histogram::new();
                (0..codes.rows())
                    .filter(|&r| !block.is_missing(r, j))
                    .for_each(|r| *seen.entry(codes.get(r, j)).or_default() += 1);
                seen
            })
            .collect(),
        _ => vec![],
    };
    table.blocks().iter().map(of).collect()
}

/// The kind of units for columns with these histograms, all of one kind because they are one layer: the one under which
/// the counts, each column on its own, are most probable. Poisson units go before binomial ones, these before negative
/// binomial ones and these before ordinal ones where that costs no more than a hundredth of a nat.
pub(crate) fn count_kind(columns: &[Histogram], bounded: bool) -> Kind {
    let largest = columns.iter().filter_map(|h| h.keys().next_back()).max().map_or(1, |&n| n.max(1));
    let fit = |kind: Kind| columns.iter().map(|h| log_likelihood(kind, h)).sum::<f64>();
    let mut candidates = Vec::new();
    if !bounded || largest > LARGEST_NEGATIVE_BINOMIAL {
        candidates.push(Kind::Poisson);
    }
    if above(largest) <= LARGEST_BINOMIAL {
        candidates.push(Kind::Binomial { n: above(largest) });
    }
    if largest <= LARGEST_NEGATIVE_BINOMIAL {
        // r = 1/16, 1/8 … 64
        let broad = (0..=10).map(|k| {
            let kind = Kind::NegativeBinomial { shape: 1 << k, n: far_above(largest) };
            (kind, fit(kind))
        });
        candidates.extend(broad.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(kind, _)| kind));
    }
    let n = above(largest);
    if largest <= LARGEST_ORDINAL && columns.len() * n as usize <= MANY_FREQUENCIES {
        candidates.push(Kind::Ordinal { n });
    }
    let worth = WORTH * columns.len() as f64;
    let better = |best: Kind, kind: Kind| if fit(kind) > fit(best) + worth { kind } else { best };
    candidates.into_iter().reduce(better).unwrap_or(Kind::Poisson)
}

/// A bound so far above the counts that it does not affect a fitted unit.
fn far_above(largest: u32) -> u32 {
    (8 * (largest + 1)).next_power_of_two()
}

/// A bound with room for counts somewhat larger than all that were seen: a row above it would be impossible, and no number of
/// rows shows that there is none.
fn above(largest: u32) -> u32 {
    largest + largest / 2 + 2
}

/// The mean log-likelihood of a column under units of a kind that have its mean; with frequencies of their own, that of each
/// row by the others.
fn log_likelihood(kind: Kind, seen: &Histogram) -> f64 {
    let rows = seen.values().sum::<u64>() as f64;
    if rows == 0.0 {
        return 0.0;
    }
    if let Kind::Ordinal { n } = kind {
        let count = |x: u32| seen.get(&x).map_or(0.0, |&c| c as f64);
        return smoothed_frequencies(&(0..=n).map(count).collect::<Vec<_>>()).1 / rows;
    }
    let mean = seen.iter().map(|(&x, &c)| f64::from(x) * c as f64).sum::<f64>() / rows;
    // A column that is constant at either end of the range has no finite parameter.
    let least = 1e-9;
    let theta = match kind {
        Kind::Binomial { n } => {
            let p = (mean / f64::from(n)).clamp(least, 1.0 - least);
            (p / (1.0 - p)).ln()
        }
        Kind::NegativeBinomial { shape, .. } => -(f64::from(shape) / 16.0 / mean.max(least)).ln_1p(),
        Kind::Poisson => mean.max(least).ln(),
        kind => unreachable!("{kind} units are not among the candidates"),
    };
    let layer = Layer::with_params(kind, array![[theta]]).expect("a finite parameter");
    let values: Vec<u32> = seen.keys().copied().collect();
    let mut log_p = vec![0.0; values.len()];
    let values = Array2::from_shape_vec((log_p.len(), 1), values).expect("one column");
    layer.add_log_measure(&Batch::Codes(values), &mut log_p);
    let mut cgf = [0.0];
    layer.add_cgf(&array![[0.0]], &mut cgf);
    let each =
        seen.iter().zip(log_p).map(|((&x, &c), log_nu)| c as f64 * (theta * f64::from(x) + log_nu));
    each.sum::<f64>() / rows - cgf[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected counts of 10 000 rows, given ratios p(x+1)/p(x).
    fn column(last: u32, ratio: impl Fn(f64) -> f64) -> Histogram {
        let mut p = vec![1.0];
        (0..last).for_each(|x| p.push(p[x as usize] * ratio(f64::from(x))));
        let sum: f64 = p.iter().sum();
        let of = |(x, p): (usize, &f64)| (x as u32, (1e4 * p / sum).round() as u64);
        p.iter().enumerate().map(of).filter(|(_, c)| *c > 0).collect()
    }

    #[test]
    fn each_distribution_is_recognised() {
        let poisson = column(60, |x| 4.0 / (x + 1.0));
        let binomial = column(12, |x| (12.0 - x) / (x + 1.0) * 2.0);
        let broad = column(200, |x| (x + 2.0) / (x + 1.0) * 0.6);
        let broader = column(900, |x| (x + 0.25) / (x + 1.0) * 0.95);
        let kind = |h: &Histogram| count_kind(std::slice::from_ref(h), false);
        assert_eq!(kind(&poisson), Kind::Poisson);
        // Whose bound is not taken for one.
        assert_eq!(kind(&binomial), Kind::Ordinal { n: 20 });
        assert!(matches!(kind(&broad), Kind::NegativeBinomial { shape: 32, n: 128.. }));
        assert!(matches!(kind(&broader), Kind::NegativeBinomial { shape: 4, .. }));
        // Years of school: most leave after 8, 12 or 16.
        let spiked = column(20, |x| match x as u32 % 4 {
            3 => 30.0,
            0 => 0.03,
            _ => 1.0,
        });
        assert_eq!(kind(&spiked), Kind::Ordinal { n: 32 });
        // One layer has one kind: columns that differ keep frequencies of their own.
        let both = count_kind(&[poisson.clone(), broad], false);
        assert!(matches!(both, Kind::Ordinal { .. }), "{both}");
        // Where Poisson units might diverge, they become binomial ones that come close to them.
        assert_eq!(count_kind(&[poisson], true), Kind::Binomial { n: 23 });
    }

    #[test]
    fn columns_without_spread_have_a_kind() {
        let constant = |x: u32| count_kind(&[Histogram::from([(x, 50)])], true);
        assert_eq!([constant(0), constant(7)], [Kind::Binomial { n: 3 }, Kind::Ordinal { n: 12 }]);
        assert_eq!(count_kind(&[Histogram::new()], false), Kind::Poisson);
    }
}
