//! Quality of samples: nearest neighbours, moments, copies of training rows.

use crate::{Error, Machine, Real, Result, Role, States};
use ndarray::{Array2, ArrayView1, Axis};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Rows that are compared with samples, if there are more.
const COMPARED: usize = 1000;
/// Third moments that are compared, if there are more.
const TRIPLES: usize = 10_000;

/// How samples compare with data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleQuality {
    /// Whether samples and data can be told apart by their nearest neighbours.
    pub adversarial: Adversarial,
    /// Means, covariances and third moments.
    pub moments: [MomentMatch; 3],
    /// Samples that are copies.
    pub duplicates: Duplicates,
    /// Whether copies were looked for among the training rows, or among the compared rows.
    pub of_training: bool,
}

/// Samples against data; copies are looked for among the training rows, if these are given.
///
/// # Errors
/// As for [`adversarial`].
pub fn sample_quality<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    training: Option<&States<T>>,
    samples: &States<T>,
) -> Result<SampleQuality> {
    Ok(SampleQuality {
        adversarial: adversarial(machine, data, samples)?,
        moments: moments(machine, data, samples, TRIPLES)?,
        duplicates: duplicates(machine, training.unwrap_or(data), samples)?,
        of_training: training.is_some(),
    })
}

/// The rows, of so many, that are compared with samples: at most 1000, evenly spread.
pub fn compared_rows(rows: usize) -> Vec<usize> {
    (0..rows).step_by(rows.div_ceil(COMPARED).max(1)).collect()
}

/// The dense form of all visible layers side by side.
///
/// # Errors
/// When a visible layer is not held.
pub fn visible<T: Real>(machine: &Machine<T>, states: &States<T>) -> Result<Array2<f64>> {
    let parts: Vec<Array2<f64>> = machine
        .with_role(Role::Visible)
        .map(|l| Ok(machine.layer(l).dense(states.layer(l)?).mapv(Real::f64)))
        .collect::<Result<_>>()?;
    let views: Vec<_> = parts.iter().map(|x| x.view()).collect();
    ndarray::concatenate(Axis(1), &views).map_err(|_| Error::shape("visible layers", "at least one", 0))
}

/// Nearest-neighbour adversarial accuracy: how often the nearest neighbour of a row comes from its own set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adversarial {
    /// Share of data rows that are nearer to other data than to any sample; ½ is ideal.
    pub truth: f64,
    /// Share of samples that are nearer to other samples than to any data row; ½ is ideal. Near 0 with `truth` near 0 the
    /// samples copy the data; near 1 they are unlike it.
    pub synthetic: f64,
}

impl Adversarial {
    /// The mean of both: above ½ when samples are unlike the data, below when they copy it.
    pub fn accuracy(&self) -> f64 {
        0.5 * (self.truth + self.synthetic)
    }
}

/// [`Adversarial`] accuracy of samples against data, with Euclidean distances of the dense forms (for bits, the
/// square root of the Hamming distance). Ties count one half. Takes rows × rows distances.
///
/// # Errors
/// Fewer than two rows on either side, or visible layers that are not held.
pub fn adversarial<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    samples: &States<T>,
) -> Result<Adversarial> {
    let (d, s) = (visible(machine, data)?, visible(machine, samples)?);
    if d.nrows() < 2 || s.nrows() < 2 {
        return Err(Error::shape("rows of data and samples", "at least 2", d.nrows().min(s.nrows())));
    }
    let (dd, ss) = (nearest(&d, &d, true), nearest(&s, &s, true));
    let (ds, sd) = (nearest(&d, &s, false), nearest(&s, &d, false));
    let share = |other: &[f64], own: &[f64]| {
        let points = other.iter().zip(own).map(|(o, w)| match o.total_cmp(w) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        });
        points.sum::<f64>() / own.len() as f64
    };
    Ok(Adversarial { truth: share(&ds, &dd), synthetic: share(&sd, &ss) })
}

/// Squared distance of each row of `a` to the nearest row of `b`, itself excluded where both are one set.
fn nearest(a: &Array2<f64>, b: &Array2<f64>, same: bool) -> Vec<f64> {
    let square = |x: ArrayView1<'_, f64>| x.dot(&x);
    let norms: Vec<f64> = b.rows().into_iter().map(square).collect();
    // Blocks of rows, one product each: memory stays small and the work is a matrix product.
    let blocks: Vec<usize> = (0..a.nrows()).step_by(256).collect();
    let parts: Vec<Vec<f64>> = blocks
        .into_par_iter()
        .map(|first| {
            let rows: Vec<usize> = (first..a.nrows().min(first + 256)).collect();
            let block = a.select(Axis(0), &rows);
            let products = block.dot(&b.t());
            let of = |(i, p): (usize, ArrayView1<'_, f64>)| {
                let own = square(block.row(i));
                let distance = |(j, p): (usize, &f64)| {
                    if same && j == first + i {
                        f64::INFINITY
                    } else {
                        (own + norms[j] - 2.0 * p).max(0.0)
                    }
                };
                // Rounded: products of equal rows may differ in the last bits, and ties matter.
                let least = p.iter().enumerate().map(distance).fold(f64::INFINITY, f64::min);
                (least * 1e9).round() * 1e-9
            };
            products.rows().into_iter().enumerate().map(of).collect()
        })
        .collect();
    parts.concat()
}

/// Agreement of the moments of samples with those of the data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentMatch {
    /// Correlation between the two lists of moments.
    pub correlation: f64,
    /// Slope of the samples' moments on the data's: below 1 when the samples are too smooth.
    pub slope: f64,
    /// Root mean square difference.
    pub rms: f64,
    /// Moments compared.
    pub number: usize,
}

/// Means, covariances and centred third moments of samples against data, in this order.
///
/// Third moments are taken for all triples of columns or, when there are more, for `triples` of them spread evenly over
/// the list of all triples.
///
/// # Errors
/// As for [`adversarial`].
pub fn moments<T: Real>(
    machine: &Machine<T>,
    data: &States<T>,
    samples: &States<T>,
    triples: usize,
) -> Result<[MomentMatch; 3]> {
    let (d, s) = (visible(machine, data)?, visible(machine, samples)?);
    if d.nrows() < 2 || s.nrows() < 2 {
        return Err(Error::shape("rows of data and samples", "at least 2", d.nrows().min(s.nrows())));
    }
    let [d, s] = [d, s].map(|x| {
        let mean = x.mean_axis(Axis(0)).expect("rows");
        (&x - &mean, mean)
    });
    let covariance = |x: &Array2<f64>| x.t().dot(x) / x.nrows() as f64;
    let n = d.0.ncols();
    let upper = |c: Array2<f64>| -> Vec<f64> {
        (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).map(|ij| c[ij]).collect()
    };
    let chosen = spread_triples(n, triples);
    let third = |x: &Array2<f64>| -> Vec<f64> {
        let columns: Vec<Vec<f64>> = x.columns().into_iter().map(|c| c.to_vec()).collect();
        let of = |&[i, j, k]: &[usize; 3]| {
            let products =
                columns[i].iter().zip(&columns[j]).zip(&columns[k]).map(|((a, b), c)| a * b * c);
            products.sum::<f64>() / x.nrows() as f64
        };
        chosen.par_iter().map(of).collect()
    };
    Ok([
        compare(d.1.as_slice().expect("a vector"), s.1.as_slice().expect("a vector")),
        compare(&upper(covariance(&d.0)), &upper(covariance(&s.0))),
        compare(&third(&d.0), &third(&s.0)),
    ])
}

/// At most `most` triples i < j < k, evenly spread over all.
fn spread_triples(n: usize, most: usize) -> Vec<[usize; 3]> {
    let all = if n < 3 { 0 } else { n * (n - 1) * (n - 2) / 6 };
    let take = all.min(most);
    let mut out = Vec::with_capacity(take);
    let (mut index, mut next) = (0usize, 0usize);
    'all: for i in 0..n {
        for j in i + 1..n {
            // The whole run of k at once: skip it when no chosen index falls inside.
            let run = n - j - 1;
            while next < index + run {
                out.push([i, j, j + 1 + next - index]);
                if out.len() == take {
                    break 'all;
                }
                next = (out.len() as u128 * all as u128 / take as u128) as usize;
            }
            index += run;
        }
    }
    out
}

fn compare(a: &[f64], b: &[f64]) -> MomentMatch {
    let n = a.len().max(1) as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let product = |x: &[f64], mx: f64, y: &[f64], my: f64| {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>()
    };
    let (aa, bb, ab) = (product(a, ma, a, ma), product(b, mb, b, mb), product(a, ma, b, mb));
    let rms = (a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / n).sqrt();
    MomentMatch { correlation: ab / (aa * bb).sqrt(), slope: ab / aa, rms, number: a.len() }
}

/// Rows that occur twice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Duplicates {
    /// Share of samples that equal some training row.
    pub of_training: f64,
    /// Share of samples that equal an earlier sample.
    pub of_samples: f64,
    /// Share of training rows that equal an earlier one: the share to expect without memorisation.
    pub within_training: f64,
}

/// Counts samples that repeat training rows or each other.
///
/// # Errors
/// When a visible layer is not held.
pub fn duplicates<T: Real>(
    machine: &Machine<T>,
    train: &States<T>,
    samples: &States<T>,
) -> Result<Duplicates> {
    let keys = |x: &States<T>| -> Result<Vec<Vec<u64>>> {
        let x = visible(machine, x)?;
        Ok(x.rows().into_iter().map(|r| r.iter().map(|x| x.to_bits()).collect()).collect())
    };
    let (train, samples) = (keys(train)?, keys(samples)?);
    let known: BTreeSet<&Vec<u64>> = train.iter().collect();
    let distinct: BTreeSet<&Vec<u64>> = samples.iter().collect();
    let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
    Ok(Duplicates {
        of_training: share(samples.iter().filter(|s| known.contains(s)).count(), samples.len()),
        of_samples: share(samples.len() - distinct.len(), samples.len()),
        within_training: share(train.len() - known.len(), train.len()),
    })
}
