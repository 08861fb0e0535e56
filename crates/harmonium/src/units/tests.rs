//! Units at extreme inputs, derivatives of Γ, samplers against their moments, conversions.

use super::*;
use crate::{Batch, Real};
use harmonium_kernels::Key;
use ndarray::{Array2, array};

const KEY: Key = Key { seed: 1, purpose: 2, block: 0, sweep: 3 };

/// A layer of each kind with generic parameters.
fn generic<T: Real>(kind: Kind, n: usize) -> Layer<T> {
    let mut params = Layer::<T>::new(kind, n).params().clone();
    for ((k, j), p) in params.indexed_iter_mut() {
        let bump = 0.3 + 0.17 * k as f64 - 0.11 * j as f64;
        *p = if kind.params()[k].starts_with("gamma") { T::of(1.0 + bump.abs()) } else { T::of(bump) };
    }
    Layer::with_params(kind, params).unwrap()
}

fn at_extremes<T: Real>() {
    let huge = [0.0, 1.0, -1.0, 30.0, -30.0, 700.0, -700.0, 1e4, -1e4];
    for kind in Kind::ALL {
        let layer = generic::<T>(kind, 2);
        for &x in &huge {
            // Potts units get the extreme in one state only, then in all.
            for all in [true, false] {
                let inputs = Array2::from_shape_fn((3, layer.width()), |(_, j)| {
                    if all || j == 1 { T::of(x) } else { T::zero() }
                });
                let (mut mean, mut var) = (inputs.clone(), inputs.clone());
                layer.mean_into(&inputs, &mut mean);
                layer.variance_into(&inputs, &mut var);
                let mut cgf = vec![0.0; 3];
                layer.add_cgf(&inputs, &mut cgf);
                let stats = layer.mean_stats(&inputs, None);
                assert!(mean.iter().all(|m| m.is_finite()), "{kind} at {x}: mean {mean}");
                assert!(
                    var.iter().all(|v| v.is_finite() && *v >= T::zero()),
                    "{kind} at {x}: variance {var}"
                );
                assert!(cgf.iter().all(|c| c.is_finite()), "{kind} at {x}: Γ {cgf:?}");
                assert!(stats.iter().all(|t| t.is_finite()), "{kind} at {x}: moments {stats}");
                let mut drawn = layer.zeros(3);
                layer.sample_into(&inputs, KEY, &mut drawn);
                layer.check_batch(&drawn).unwrap();
                layer.check_batch(&layer.mode(&inputs)).unwrap();
                assert!(layer.values(&drawn).iter().all(|v| v.is_finite()), "{kind} at {x}");
            }
        }
    }
}

#[test]
fn nothing_overflows_in_double_precision() {
    at_extremes::<f64>();
}

#[test]
fn nothing_overflows_in_single_precision() {
    at_extremes::<f32>();
}

/// Far tails of Γ itself: softplus(1e4) is 1e4 and softplus(−1e4) is 0, not an overflow hidden by a cut.
#[test]
fn gamma_in_the_tails() {
    let layer = Layer::<f64>::new(Kind::Binary, 1);
    for (x, want) in
        [(1e4, 1e4), (-1e4, 0.0), (-40.0, (-40f64).exp()), (12.0, 12.0 + (-12f64).exp().ln_1p())]
    {
        let mut out = [0.0];
        layer.add_cgf(&array![[x]], &mut out);
        assert!((out[0] - want).abs() <= 1e-15 * want.abs(), "softplus({x}) = {}", out[0]);
    }
}

/// mean = ∂Γ/∂I, variance = ∂²Γ/∂I², ⟨t_k⟩ = ∂Γ/∂η_k for every kind, by central differences.
#[test]
fn moments_are_derivatives_of_gamma() {
    let step = 1e-4;
    for kind in Kind::ALL {
        let layer = generic::<f64>(kind, 2);
        let inputs = Array2::from_shape_fn((1, layer.width()), |(_, j)| 0.4 - 0.3 * j as f64);
        let gamma = |layer: &Layer<f64>, inputs: &Array2<f64>| {
            let mut out = [0.0];
            layer.add_cgf(inputs, &mut out);
            out[0]
        };
        let (mut mean, mut var) = (inputs.clone(), inputs.clone());
        layer.mean_into(&inputs, &mut mean);
        layer.variance_into(&inputs, &mut var);
        let centre = gamma(&layer, &inputs);
        for j in 0..layer.width() {
            let shifted = |x: f64| {
                let mut inputs = inputs.clone();
                inputs[[0, j]] += x;
                gamma(&layer, &inputs)
            };
            let first = (shifted(step) - shifted(-step)) / (2.0 * step);
            let second = (shifted(step) - 2.0 * centre + shifted(-step)) / (step * step);
            assert!((first - mean[[0, j]]).abs() < 1e-7, "{kind}: mean {first} {}", mean[[0, j]]);
            assert!((second - var[[0, j]]).abs() < 1e-6, "{kind}: variance {second} {}", var[[0, j]]);
        }
        let stats = layer.mean_stats(&inputs, None);
        for ((k, j), t) in stats.indexed_iter() {
            let shifted = |x: f64| {
                let mut layer = layer.clone();
                layer.params_mut()[[k, j]] += x;
                gamma(&layer, &inputs)
            };
            let numeric = (shifted(step) - shifted(-step)) / (2.0 * step);
            assert!((numeric - t).abs() < 1e-7, "{kind}: ⟨t_{k}⟩ {numeric} {t}");
        }
    }
}

/// Samples have the analytic mean and sufficient moments, within 4.5 standard errors of 40 000 draws.
#[test]
fn samples_have_the_analytic_moments() {
    let rows = 40_000;
    for kind in Kind::ALL {
        let layer = generic::<f32>(kind, 2);
        let one = Array2::from_shape_fn((1, layer.width()), |(_, j)| 0.5 - 0.4 * j as f32);
        let inputs = one.broadcast((rows, layer.width())).unwrap().to_owned();
        let mut x = layer.zeros(rows);
        layer.sample_into(&inputs, KEY, &mut x);
        let got = layer.stats(&x, None) / rows as f64;
        let want = layer.mean_stats(&one, None);
        for ((k, j), want) in want.indexed_iter() {
            // The variance of t_k from the samples themselves.
            let mut square = 0.0;
            let mut values = vec![0.0; layer.len()];
            for r in 0..rows {
                layer.read_row(&x, r, &mut values);
                let mut t = vec![0.0; layer.params().len()];
                layer.stats_row(&values, 1.0, &mut t);
                square += (t[k * layer.width() + j] - want).powi(2) / rows as f64;
            }
            let z = (got[[k, j]] - want) / (square / rows as f64).sqrt();
            assert!(z.abs() < 4.5, "{kind}: ⟨t_{k}⟩ of column {j} is {z:.1} standard errors off");
        }
    }
}

/// The mode is a state of largest ν(x)·e^{−E+Ix}.
#[test]
fn modes_are_most_probable() {
    for kind in Kind::ALL {
        let layer = generic::<f64>(kind, 2);
        for shift in [-2.0, -0.3, 0.1, 1.7] {
            let inputs =
                Array2::from_shape_fn((1, layer.width()), |(_, j)| shift * (1.0 - 0.4 * j as f64));
            let mode = layer.values(&layer.mode(&inputs));
            let log_weight = |values: &Array2<f64>| {
                let x: Batch<f64> = layer.batch(values.view()).unwrap();
                let mut w = [0.0];
                layer.add_energy(&x, &mut w);
                w[0] = -w[0];
                layer.add_log_measure(&x, &mut w);
                w[0] + (&layer.dense(&x) * &inputs).sum()
            };
            let best = log_weight(&mode);
            for j in 0..layer.len() {
                let others: Vec<f64> = match kind.states() {
                    Some(n) => (0..n).map(|a| kind.value(a)).collect(),
                    None if kind.is_count() => (0..40).map(f64::from).collect(),
                    None => (-80..80).map(|k| 0.1 * f64::from(k)).collect(),
                };
                for x in others.into_iter().filter(|&x| kind.allows(x)) {
                    let mut values = mode.clone();
                    values[[0, j]] = x;
                    assert!(log_weight(&values) <= best + 1e-12, "{kind}: {x} beats the mode {mode}");
                }
            }
        }
    }
}

/// Values survive the way into the natural form and back; wrong ones are named by row and column.
#[test]
fn conversions() {
    for kind in Kind::ALL {
        let layer = Layer::<f32>::new(kind, 67);
        let values = Array2::from_shape_fn((5, 67), |(r, j)| match kind.states() {
            Some(n) => kind.value((r * 31 + j * 7) as u32 % n),
            None if kind.is_count() => (r * 1000 + j) as f64,
            None => (r as f64 + 0.5) * (j as f64),
        });
        let batch = layer.batch(values.view()).unwrap();
        layer.check_batch(&batch).unwrap();
        assert_eq!(layer.values(&batch), values);
        let dense = layer.dense(&batch);
        assert_eq!(dense.dim(), (5, layer.width()));
        if kind.columns() == 1 {
            assert_eq!(dense.mapv(f64::from), values);
        } else {
            assert!(dense.rows().into_iter().all(|r| r.sum() == 67.0));
        }
        assert_eq!(layer.values(&batch.select(&[4, 0, 4])).row(0), values.row(4));
        let mut bad = values.clone();
        bad[[3, 66]] = f64::NAN;
        let error = layer.batch(bad.view()).unwrap_err().to_string();
        assert!(error.contains("row 3, column 66") && error.contains("NaN"), "{error}");
        assert!(layer.batch(values.view().split_at(ndarray::Axis(1), 66).0).is_err());
    }
}

/// Energy is linear in the parameters: tempering scales it, mixing interpolates it.
#[test]
fn energy_is_linear_in_the_parameters() {
    for kind in Kind::ALL {
        let (layer, base) = (generic::<f64>(kind, 3), Layer::new(kind, 3));
        let inputs = Array2::zeros((8, layer.width()));
        let mut x = layer.zeros(8);
        layer.sample_into(&inputs, KEY, &mut x);
        let energy = |layer: &Layer<f64>| {
            let mut out = vec![0.0; 8];
            layer.add_energy(&x, &mut out);
            out
        };
        let (own, zero) = (energy(&layer), energy(&base));
        let (scaled, mixed) = (energy(&layer.tempered(0.7)), energy(&layer.mixed(&base, 0.3)));
        for r in 0..8 {
            assert!((scaled[r] - 0.7 * own[r]).abs() < 1e-12, "{kind}");
            assert!((mixed[r] - 0.7 * zero[r] - 0.3 * own[r]).abs() < 1e-12, "{kind}");
        }
    }
}

/// The first numbers of a seed, pinned: a change here changes every published result.
#[test]
fn pinned_samples() {
    let draw = |kind: Kind| {
        let layer = Layer::<f64>::new(kind, 6);
        let mut x = layer.zeros(1);
        layer.sample_into(&Array2::zeros((1, layer.width())), KEY, &mut x);
        layer.values(&x).into_iter().map(|x| (x * 1e6).round() / 1e6).collect::<Vec<_>>()
    };
    let drawn: Vec<_> = Kind::ALL.into_iter().map(draw).collect();
    let pinned = [
        [0.0, 0.0, 1.0, 1.0, 0.0, 1.0],
        [-1.0, -1.0, 1.0, 1.0, -1.0, 1.0],
        [2.0, 1.0, 1.0, 1.0, 2.0, 1.0],
        [0.872183, -0.282906, -0.026277, 0.121547, 0.799386, -0.513657],
        [0.872183, 0.121547, 0.799386, 0.430713, 0.509245, 0.511043],
        [-0.121547, -0.430713, -0.511043, -0.299972, 0.813534, -0.995058],
        [3.0, 1.0, 1.0, 2.0, 3.0, 1.0],
        [2.0, 2.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 4.0, 3.0, 2.0, 0.0, 4.0],
        [3.0, 1.0, 1.0, 2.0, 3.0, 1.0],
    ];
    assert_eq!(drawn, pinned);
}

/// Every description agrees with itself, with the formulas and with the ways in and out of text.
#[test]
fn descriptions_are_consistent() {
    for kind in Kind::ALL {
        let params = kind.params();
        let (theta, gamma) = (kind.linear_rows(), kind.gamma_rows());
        assert!(
            !theta.is_empty() && (gamma.is_empty() || gamma.len() == theta.len()),
            "{kind}: {params:?}"
        );
        assert!(params[gamma.end..].iter().all(|name| name.starts_with("nu_")), "{kind}: {params:?}");
        assert_eq!(kind.has_frequencies(), params.len() > gamma.end);
        assert_eq!(kind.states().is_some(), kind.tail() == Tail::Bounded, "{kind}");
        assert_eq!(!gamma.is_empty(), kind.tail().has_gamma(), "{kind}: γ is what holds a real unit");
        assert_eq!(kind.form() == Form::Reals, kind.square() == Square::Gamma, "{kind}");
        assert_eq!(kind.word().parse::<Kind>().unwrap(), kind);
        assert!(kind.has_states() && kind.allows(kind.placeholder()), "{kind}");
        assert_eq!(kind.has_measure(), measure_varies(kind), "{kind}");
        assert!(kind.cgf_cost() > 0.0);
    }
    for word in ["", "potts", "potts:0", "neg_binomial:0.01:5", "ordinal:5000", "Binary", "relu:3"] {
        assert!(word.parse::<Kind>().is_err(), "{word}");
    }
}

fn measure_varies(kind: Kind) -> bool {
    let layer = Layer::<f64>::new(kind, 1);
    let values = [0.0, 1.0, 2.0, 3.0].into_iter().filter(|&x| kind.allows(x));
    let logs: Vec<f64> = values.map(|x| layer.log_measure_row(&[x])).collect();
    logs.iter().any(|&log| log != logs[0])
}

/// x² of a unit, the variance and the mean field of its description against its formulas.
#[test]
fn descriptions_agree_with_the_formulas() {
    for kind in Kind::ALL {
        let layer = generic::<f64>(kind, 1);
        let inputs = Array2::from_shape_fn((1, layer.width()), |(_, j)| 0.2 - 0.3 * j as f64);
        let (mut mean, mut variance) = (inputs.clone(), inputs.clone());
        layer.mean_into(&inputs, &mut mean);
        layer.variance_into(&inputs, &mut variance);
        let stats = layer.mean_stats(&inputs, None);
        let own: Vec<f64> = layer.params().column(0).to_vec();
        for j in 0..layer.width() {
            let (m, v) = (mean[[0, j]], variance[[0, j]]);
            let described = kind.variance(m, |k| stats[[k, j]]);
            // By the mean alone, the bound n can only be given its worst effect.
            let fits = match kind {
                Kind::NegativeBinomial { .. } => described >= v,
                _ => (described - v).abs() < 1e-12,
            };
            assert!(fits, "{kind}: variance {described} against {v}");
            let Some([a, b, c]) = kind.variance_polynomial(&own) else {
                assert_eq!(kind.field_of_mean(&own, m), None, "{kind}");
                continue;
            };
            assert!((a + b * m + c * m * m - v).abs() < 1e-12, "{kind}: mean field");
            let field = kind.field_of_mean(&own, m).unwrap();
            let back = match kind.one_hot() {
                // Up to a constant that all states of a unit share.
                Some(_) => {
                    field - kind.field_of_mean(&own, mean[[0, 0]]).unwrap() + own[0] + inputs[[0, 0]]
                }
                None => field,
            };
            let given = layer.params()[[0, j]] + inputs[[0, j]];
            assert!((back - given).abs() < 1e-10, "{kind}: field {back} against {given}");
        }
        for x in [0.0, 1.0, -1.0, 2.0].into_iter().filter(|&x| kind.allows(x)) {
            let (_, dense) = kind.dense(0, x);
            let mut t = vec![0.0; layer.params().len()];
            layer.stats_row(&[x], 1.0, &mut t);
            let width = layer.width();
            let square = match kind.square() {
                Square::Value => dense,
                Square::One => 1.0,
                Square::Gamma => -2.0 * kind.gamma_rows().map(|k| t[k * width]).sum::<f64>(),
                Square::Absent => continue,
            };
            assert_eq!(square, dense * dense, "{kind}: x² at {x}");
        }
    }
}

/// Where training starts and where an annealing path starts have the mean of the data, smoothed by a few rows at most.
#[test]
fn starts_have_the_mean_of_the_data() {
    for kind in Kind::ALL {
        let layer = generic::<f64>(kind, 1);
        let rows = 20_000;
        let mut x = layer.zeros(rows);
        layer.sample_into(&Array2::zeros((rows, layer.width())), KEY, &mut x);
        let dense = layer.dense(&x);
        let sums: Vec<f64> = dense.columns().into_iter().map(|c| c.sum()).collect();
        let values = layer.values(&x);
        let mean = values.mean().unwrap();
        let squares = values.mapv(|v| (v - mean).powi(2)).sum();
        let mut counts =
            vec![0.0; if kind.has_frequencies() { kind.states().unwrap() as usize } else { 0 }];
        for &v in values.iter().take(if counts.is_empty() { 0 } else { rows }) {
            counts[v as usize] += 1.0;
        }
        let total = rows as f64;
        let m =
            Marginal { total, sums: &sums, mean, variance: squares / total, squares, counts: &counts };
        let own: Vec<f64> = layer.params().column(0).to_vec();
        for (what, params) in [("start", kind.start(&m)), ("base", kind.base(&m, &own))] {
            let params = Array2::from_shape_vec(layer.params().dim(), params).unwrap();
            let fitted = Layer::with_params(kind, params).unwrap();
            let mut of_unit = Array2::zeros((1, layer.width()));
            fitted.mean_into(&Array2::zeros((1, layer.width())), &mut of_unit);
            for (j, &found) in of_unit.iter().enumerate() {
                let wanted = sums[j] / total;
                // The start of a ReLU unit is half a normal density with the second moment.
                let tolerance = if kind.is_half_line() && what == "start" { 0.5 * wanted } else { 2e-3 };
                assert!((found - wanted).abs() < tolerance, "{kind} {what}: {found} against {wanted}");
            }
        }
    }
}
