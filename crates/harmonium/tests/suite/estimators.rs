//! The estimators of the negative phase against enumeration.

use crate::common::sampling::batch;
use crate::common::*;
use harmonium::estimate::{
    Context, Decision, Estimator, Expansion, FpcdParams, Info, JarzynskiParams, NegativePhase, Pl,
    PtParams, PttParams, Setup, TapParams, UcdParams,
};
use harmonium::sample::Stop;
use harmonium::{Archive, Kind, Machine, Parameters, Phase, Real, Role, States};
use ndarray::Array2;

fn generic(mut machine: Machine<f64>, seed: u64, scale: f64) -> Machine<f64> {
    fill_weights(&mut machine, &mut Dice(seed));
    for c in 0..machine.couplings().len() {
        machine.coupling_mut(c).w_mut().mapv_inplace(|w| scale * w);
    }
    machine
}

fn data(machine: &Machine<f64>, rows: usize, seed: u64) -> States<f64> {
    let given: Vec<_> = (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden).collect();
    some_states(machine, &given, rows, seed)
}

fn setup<'a, T: Real>(machine: &'a Machine<T>, data: &'a States<T>) -> Setup<'a, T> {
    Setup { machine, data, batch: data.rows(), seed: 17, draw: true }
}

fn estimate<T: Real>(
    phase: &mut dyn NegativePhase<T>,
    machine: &Machine<T>,
    data: &States<T>,
    update: u64,
) -> (Parameters<T>, Info) {
    let positive: Parameters<T> = machine.exact().positive(data, None).unwrap().cast();
    let positive = Phase::from(positive);
    let model = machine.at(1.0);
    let (positive, stop) = (&positive, Stop::default());
    let context = Context { model: &model, data, wts: None, positive, seed: 17, update, stop };
    let mut out = Phase::new(machine);
    let info = phase.estimate(&context, &mut out).unwrap();
    (out.parameters(), info)
}

fn metric(info: &Info, name: &str) -> f64 {
    info.metrics.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no metric {name}")).1
}

/// ln p(v_i | v_{−i}) summed over units, from the oracle alone.
fn pseudo_likelihood(machine: &Machine<f64>, data: &States<f64>, wts: &[f64]) -> f64 {
    let twin = twin(machine, 1.0);
    let mut sum = 0.0;
    for (r, wt) in wts.iter().enumerate() {
        let row = clamps(machine, data, r);
        for l in machine.with_role(Role::Visible) {
            let c = machine.layer(l).kind().columns();
            let states = machine.layer(l).kind().states().unwrap();
            for i in 0..machine.layer(l).len() {
                let state = |a: u32| {
                    let mut row = row.clone();
                    let x = row[l].as_mut().unwrap();
                    if c > 1 {
                        x[i * c..(i + 1) * c].fill(0.0);
                        x[i * c + a as usize] = 1.0;
                    } else {
                        x[i] = machine.layer(l).kind().value(a);
                    }
                    twin.log_sum(&row)
                };
                let log: Vec<f64> = (0..states).map(state).collect();
                let max = log.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let log_z = max + log.iter().map(|x| (x - max).exp()).sum::<f64>().ln();
                sum += wt * (twin.log_sum(&row) - log_z);
            }
        }
    }
    sum / wts.iter().sum::<f64>()
}

/// Compares a gradient with central differences of `f` in every parameter; a lateral weight moves with its
/// mirror image.
fn assert_gradient(
    machine: &Machine<f64>,
    gradient: &Parameters<f64>,
    f: &dyn Fn(&Machine<f64>) -> f64,
    what: &str,
) {
    let step = 1e-5;
    let slope = |change: &dyn Fn(&mut Machine<f64>, f64)| {
        let at = |e: f64| {
            let mut m = machine.clone();
            change(&mut m, e);
            f(&m)
        };
        (at(step) - at(-step)) / (2.0 * step)
    };
    for (l, g) in gradient.layers.iter().enumerate() {
        for ((k, j), g) in g.indexed_iter() {
            let want = slope(&|m, e| m.layer_mut(l).params_mut()[[k, j]] += e);
            assert_close(*g, want, 1e-7, &format!("{what}: layer {l} [{k},{j}]"));
        }
    }
    for (c, g) in gradient.couplings.iter().enumerate() {
        let (a, b) = machine.couplings()[c].ends();
        let columns = machine.layer(a).kind().columns();
        for ((i, j), g) in g.indexed_iter() {
            if a == b && i / columns == j / columns {
                assert_eq!(*g, 0.0, "{what}: a unit on itself");
                continue;
            }
            let want = slope(&|m, e| {
                m.coupling_mut(c).w_mut()[[i, j]] += e;
                if a == b {
                    m.coupling_mut(c).w_mut()[[j, i]] += e;
                }
            });
            assert_close(*g, want, 1e-7, &format!("{what}: {a}-{b} [{i},{j}]"));
        }
    }
}

#[test]
fn pseudo_likelihood_and_its_gradient() {
    let d = &mut Dice(1);
    let kinds = [Kind::Binary, Kind::Spin, Kind::Potts { q: 3 }, Kind::Binomial { n: 2 }];
    let mut machines = Vec::new();
    for kind in kinds {
        machines.push(Machine::rbm(layer(kind, 3, d), layer(Kind::Binary, 2, d)));
        machines.push(Machine::fully_visible(layer(kind, 3, d)));
    }
    let binary = |n, d: &mut Dice| layer(Kind::Binary, n, d);
    machines.push(Machine::rbm(binary(3, d), layer(Kind::Drelu, 2, d)));
    machines.push(Machine::semi_restricted(binary(3, d), layer(Kind::Potts { q: 2 }, 2, d)));
    machines.push(Machine::class_rbm(binary(2, d), 3, layer(Kind::Spin, 2, d)));
    machines.push(Machine::conditional(binary(2, d), layer(Kind::Spin, 2, d), binary(2, d)));
    for (k, machine) in machines.into_iter().enumerate() {
        let machine = generic(machine, 30 + k as u64, 1.0);
        let what = format!("machine {k} of {}", machine.layer(0).kind());
        let v = data(&machine, 3, 5);
        let wts = [1.0, 0.5, 2.0];
        let (value, gradient) = Pl::gradient(&machine, &v, Some(&wts)).unwrap();
        assert_close(value, pseudo_likelihood(&machine, &v, &wts), 1e-9, &what);
        assert_gradient(&machine, &gradient, &|m| pseudo_likelihood(m, &v, &wts), &what);
    }
}

/// Gaussian conditionals have no table: p(v_i | v_{−i}) by hand, from the precision matrix.
#[test]
fn pseudo_likelihood_of_gaussians() {
    let d = &mut Dice(2);
    let machine = generic(Machine::fully_visible(layer(Kind::Gaussian, 3, d)), 40, 0.5);
    let v = data(&machine, 4, 6);
    let by_hand = |m: &Machine<f64>| {
        let (x, p, u) =
            (m.layer(0).values(v.layer(0).unwrap()), m.layer(0).params(), m.couplings()[0].w());
        let mut sum = 0.0;
        for row in x.rows() {
            for i in 0..3 {
                let gamma = p[[1, i]];
                let mean = (p[[0, i]] + (0..3).map(|j| u[[i, j]] * row[j]).sum::<f64>()) / gamma;
                sum += 0.5 * (gamma / (2.0 * std::f64::consts::PI)).ln()
                    - 0.5 * gamma * (row[i] - mean).powi(2);
            }
        }
        sum / 4.0
    };
    let (value, gradient) = Pl::gradient(&machine, &v, None).unwrap();
    assert_close(value, by_hand(&machine), 1e-10, "value");
    assert_gradient(&machine, &gradient, &by_hand, "Gaussian");
}

/// The estimator writes the negative phase that makes `positive − negative` this gradient.
#[test]
fn pseudo_likelihood_as_a_phase() {
    let d = &mut Dice(3);
    let machine = generic(Machine::rbm(layer(Kind::Binary, 4, d), layer(Kind::Binary, 3, d)), 41, 1.0);
    let v = data(&machine, 5, 7);
    let mut pl = Pl::new(&setup(&machine, &v)).unwrap();
    let (mut negative, info) = estimate(&mut pl, &machine, &v, 1);
    negative.scale(-1.0);
    negative.add(1.0, &machine.exact().positive(&v, None).unwrap());
    let (value, gradient) = Pl::gradient(&machine, &v, None).unwrap();
    negative.add(-1.0, &gradient);
    assert!(negative.norm() < 1e-12, "{}", negative.norm());
    assert_eq!(metric(&info, "pseudo_likelihood"), value);
}

/// −ln of the exact free energy of two coupled units at fixed means, from Newton's method on their fields.
fn two_units(kind: (Kind, Kind), w: f64, m: (f64, f64)) -> f64 {
    let machine = |x: f64, y: f64| {
        let mut machine = Machine::rbm(
            harmonium::Layer::with_params(kind.0, Array2::from_elem((1, 1), x)).unwrap(),
            harmonium::Layer::with_params(kind.1, Array2::from_elem((1, 1), y)).unwrap(),
        );
        machine.coupling_mut(0).w_mut().fill(w);
        machine
    };
    let (mut x, mut y) = (0.1, -0.1);
    for _ in 0..100 {
        let exact = machine(x, y).exact().second_moments().unwrap();
        let (a, b) = (exact.means[0][0], exact.means[1][0]);
        let s = exact.second.unwrap();
        let (va, vb, c) = (s[[0, 0]] - a * a, s[[1, 1]] - b * b, s[[0, 1]] - a * b);
        let (da, db) = (m.0 - a, m.1 - b);
        let det = va * vb - c * c;
        x += (vb * da - c * db) / det;
        y += (va * db - c * da) / det;
    }
    x * m.0 + y * m.1 - machine(x, y).exact().log_z().unwrap()
}

/// Each order of the expansion is right: the error of two units' free energy falls with the next power of the weight. A
/// wrong third-order term (m²(1−m) in place of m(1−m)(½−m)) leaves w³.
#[test]
fn mean_field_orders_by_two_units() {
    let kinds = [
        ((Kind::Binary, Kind::Binary), (0.3, 0.62)),
        ((Kind::Spin, Kind::Binary), (-0.35, 0.7)),
        ((Kind::Binomial { n: 3 }, Kind::Spin), (1.1, 0.45)),
    ];
    for (kind, m) in kinds {
        for order in 1..=3u8 {
            let left = |w: f64| {
                let mut machine = Machine::rbm(
                    harmonium::Layer::<f64>::new(kind.0, 1),
                    harmonium::Layer::<f64>::new(kind.1, 1),
                );
                machine.coupling_mut(0).w_mut().fill(w);
                let means = [Array2::from_elem((1, 1), m.0), Array2::from_elem((1, 1), m.1)];
                let g = Expansion::new(&machine, order).free_energy(&means)[0];
                (two_units(kind, w, m) - g).abs()
            };
            let ratio = left(0.2) / left(0.1);
            let power = ratio.log2();
            let want = f64::from(order) + 1.0;
            assert!((power - want).abs() < 0.35, "{kind:?}, order {order}: w^{power:.2}");
        }
    }
}

/// Fixed points are stationary points of G, and the moments are −∂G/∂θ.
#[test]
fn mean_field_is_a_derivative() {
    let d = &mut Dice(4);
    let cases = [
        (Machine::rbm(layer(Kind::Binary, 4, d), layer(Kind::Spin, 3, d)), 3u8),
        (
            Machine::deep(
                layer(Kind::Spin, 3, d),
                vec![layer(Kind::Binary, 3, d), layer(Kind::Binary, 2, d)],
            ),
            3,
        ),
        (Machine::rbm(layer(Kind::Binomial { n: 3 }, 3, d), layer(Kind::Binary, 2, d)), 3),
        (Machine::rbm(layer(Kind::Poisson, 3, d), layer(Kind::Binary, 2, d)), 3),
        (Machine::rbm(layer(Kind::Gaussian, 3, d), layer(Kind::Binary, 2, d)), 3),
        (Machine::semi_restricted(layer(Kind::Spin, 4, d), layer(Kind::Binary, 2, d)), 2),
        (Machine::rbm(layer(Kind::Potts { q: 3 }, 3, d), layer(Kind::Spin, 2, d)), 1),
    ];
    for (k, (machine, order)) in cases.into_iter().enumerate() {
        let machine = generic(machine, 50 + k as u64, 0.3);
        let expansion = Expansion::new(&machine, order);
        let mut means: Vec<Array2<f64>> = Vec::new();
        for m in machine.members() {
            let mut mean = Array2::zeros((2, m.layer.width()));
            m.layer
                .mean_into(&Array2::from_shape_fn(mean.dim(), |(r, j)| 0.1 * (r + j) as f64), &mut mean);
            means.push(mean);
        }
        let mut change = 1.0;
        for _ in 0..2000 {
            change = expansion.iterate(&mut means, 0.5);
        }
        assert!(change < 1e-12, "case {k}: {change}");
        let sum = |e: &Expansion<'_>, means: &[Array2<f64>]| e.free_energy(means).iter().sum::<f64>();
        for l in 0..machine.len() {
            // Potts means are bound to sum to one: they move against the last state.
            let c = machine.layer(l).kind().columns();
            for j in (0..machine.layer(l).width()).filter(|j| c == 1 || j % c != c - 1) {
                let at = |e: f64| {
                    let mut means = means.clone();
                    means[l][[0, j]] += e;
                    if c > 1 {
                        means[l][[0, j / c * c + c - 1]] -= e;
                    }
                    sum(&expansion, &means)
                };
                let slope = (at(1e-5) - at(-1e-5)) / 2e-5;
                assert!(slope.abs() < 1e-6, "case {k}: ∂G/∂m[{l}][{j}] = {slope}");
            }
        }
        let mut moments = expansion.moments(&means);
        moments.scale(2.0);
        let minus_g = |m: &Machine<f64>| -sum(&Expansion::new(m, order), &means);
        assert_gradient(&machine, &moments, &minus_g, &format!("case {k}"));
    }
}

/// For weak couplings ln Z and the moments approach enumeration: halving the weights divides the error of ln Z
/// by 2^{order+1}, and that of the moments of the weights, its derivative, by 2^{order}.
#[test]
fn mean_field_against_enumeration() {
    let d = &mut Dice(5);
    let base = generic(Machine::rbm(layer(Kind::Binary, 5, d), layer(Kind::Spin, 4, d)), 60, 0.16);
    let errors = |scale: f64, order: u8| {
        let mut machine = base.clone();
        machine.coupling_mut(0).w_mut().mapv_inplace(|w| scale * w);
        let v = data(&machine, 10, 8);
        let exact = machine.exact().moments().unwrap();
        let params = TapParams { order, iterations: 500, tolerance: 1e-14, ..TapParams::default() };
        let mut tap = Estimator::Tap(params).build(&setup(&machine, &v)).unwrap();
        let (mut moments, info) = estimate(tap.as_mut(), &machine, &v, 1);
        moments.add(-1.0, &exact.stats);
        let weights: f64 = moments.couplings[0].iter().map(|x| x * x).sum();
        (weights.sqrt(), (metric(&info, "log_z_mean_field") - exact.log_z).abs())
    };
    let mut last = (f64::INFINITY, f64::INFINITY);
    for order in 1..=3 {
        let (whole, half) = (errors(1.0, order), errors(0.5, order));
        let power = ((whole.0 / half.0).log2(), (whole.1 / half.1).log2());
        assert!(whole.0 < last.0 && whole.1 < last.1, "order {order}: {whole:?} after {last:?}");
        // Higher orders only add to the power: some of the third are small here.
        assert!(power.0 > f64::from(order) - 0.3, "order {order}: {power:?}");
        assert!(power.1 > f64::from(order) + 0.7, "order {order}: {power:?}");
        last = whole;
    }
}

/// Unbiased CD from data far from the model: the mean over many updates lies within four standard errors of
/// the exact moments in every parameter (about 40 of them), while plain CD-1 does not.
#[test]
fn unbiased_cd_is_unbiased() {
    for kind in [Kind::Binary, Kind::Potts { q: 3 }] {
        let d = &mut Dice(6);
        let machine = generic(Machine::rbm(layer(kind, 4, d), layer(Kind::Binary, 3, d)), 70, 1.0);
        let row = vec![0.0; 4];
        let v = machine.data(vec![batch(machine.layer(0), &vec![row; 64])]).unwrap();
        let exact = machine.exact().moments().unwrap().stats;
        let params = UcdParams { sweeps: 1, most: 1000 };
        let worst = |estimator: Estimator| {
            let mut phase = estimator.build(&setup(&machine, &v)).unwrap();
            let updates = 400;
            let (mut sum, mut squares) =
                (machine.zero_parameters::<f64>(), machine.zero_parameters::<f64>());
            for update in 1..=updates {
                let (out, info) = estimate(phase.as_mut(), &machine, &v, update);
                if estimator.name() == "ucd" {
                    assert_eq!(metric(&info, "truncated"), 0.0);
                }
                sum.add(1.0, &out);
                for (s, o) in squares.arrays_mut().zip(out.arrays()) {
                    s.zip_mut_with(o, |s, o| *s += o * o);
                }
            }
            let n = updates as f64;
            let mut worst = 0.0_f64;
            for ((s, q), e) in sum.arrays().zip(squares.arrays()).zip(exact.arrays()) {
                for ((s, q), e) in s.iter().zip(q).zip(e) {
                    let error = ((q / n - (s / n).powi(2)) / (n - 1.0)).sqrt();
                    worst = worst.max((s / n - e).abs() / error);
                }
            }
            worst
        };
        let unbiased = worst(Estimator::Ucd(params.clone()));
        assert!(unbiased < 4.0, "{kind}: {unbiased:.1} standard errors");
        let biased = worst(Estimator::Cd { sweeps: Some(1) });
        assert!(biased > 10.0, "{kind}: CD-1 is only {biased:.1} standard errors off");
    }
}

/// Abandoned pairs are reported.
#[test]
fn truncation_is_reported() {
    let d = &mut Dice(7);
    let machine = generic(Machine::rbm(layer(Kind::Spin, 8, d), layer(Kind::Spin, 6, d)), 71, 3.0);
    let v = data(&machine, 50, 9);
    let params = UcdParams { sweeps: 1, most: 2 };
    let mut ucd = Estimator::Ucd(params).build(&setup(&machine, &v)).unwrap();
    let (_, info) = estimate(ucd.as_mut(), &machine, &v, 1);
    assert!(metric(&info, "truncated") > 0.1);
}

/// One training run by the estimator's own gradient. Returns the worst error of its running ln Z over the
/// last half of the updates, the number of rejected updates and the gain in log-likelihood.
fn train(
    phase: &mut dyn NegativePhase<f64>,
    machine: &mut Machine<f64>,
    v: &States<f64>,
) -> (f64, usize, f64) {
    let before = machine.exact().log_likelihood(v, None).unwrap();
    let (mut worst, mut rejected, mut rate) = (0.0_f64, 0, 0.3);
    for update in 1..=400 {
        let (negative, info) = estimate(phase, machine, v, update);
        if update % 5 == 0 {
            let exact = machine.exact().log_z().unwrap();
            worst = worst.max((metric(&info, "log_z") - exact).abs());
        }
        let mut parameters = machine.parameters();
        parameters.add(rate, &machine.exact().positive(v, None).unwrap());
        parameters.add(-rate, &negative);
        let old = machine.clone();
        machine.set_parameters(&parameters).unwrap();
        if phase.updated(&old, machine).unwrap() == Decision::Reject {
            *machine = old;
            rejected += 1;
            rate *= 0.5;
        }
    }
    (worst, rejected, machine.exact().log_likelihood(v, None).unwrap() - before)
}

/// Bars and stripes 3×3: every pattern with uniform rows or uniform columns.
fn bars(machine: &Machine<f64>) -> States<f64> {
    let mut rows = Vec::new();
    for code in 0..8u32 {
        let bit = |k: usize| f64::from(code >> k & 1);
        rows.push((0..9).map(|i| bit(i / 3)).collect::<Vec<_>>());
        if code != 0 && code != 7 {
            rows.push((0..9).map(|i| bit(i % 3)).collect());
        }
    }
    machine.data(vec![batch(machine.layer(0), &rows)]).unwrap()
}

fn start(hidden: usize) -> Machine<f64> {
    let rbm = Machine::rbm(
        harmonium::Layer::new(Kind::Binary, 9),
        harmonium::Layer::new(Kind::Binary, hidden),
    );
    generic(rbm, 80, 0.2)
}

#[test]
fn running_ln_z_of_jarzynski() {
    let mut machine = start(12);
    let v = bars(&machine);
    let params = JarzynskiParams { chains: Some(500), ..Default::default() };
    let mut phase = Estimator::Jarzynski(params).build(&setup(&machine, &v)).unwrap();
    let (worst, rejected, gain) = train(phase.as_mut(), &mut machine, &v);
    assert!(worst < 0.2, "ln Z was {worst:.3} off");
    assert!(rejected == 0 && gain > 1.0, "{rejected} rejected, gain {gain}");
}

#[test]
fn running_ln_z_of_ptt() {
    let mut machine = start(12);
    let v = bars(&machine);
    let params = PttParams { chains: Some(200), sweeps: 2, ..Default::default() };
    let mut phase = Estimator::Ptt(params).build(&setup(&machine, &v)).unwrap();
    let (worst, rejected, gain) = train(phase.as_mut(), &mut machine, &v);
    assert!(worst < 0.2, "ln Z was {worst:.3} off");
    assert!(rejected == 0 && gain > 1.0, "{rejected} rejected, gain {gain}");
}

/// A leap that the chains cannot follow is refused by both, and a small step is not.
#[test]
fn leaps_are_rejected() {
    let machine = start(6);
    let v = bars(&machine);
    let far = {
        let mut far = machine.clone();
        far.layer_mut(0).params_mut().fill(9.0);
        far.coupling_mut(0).w_mut().mapv_inplace(|w| 40.0 * w);
        far
    };
    for estimator in
        [Estimator::Ptt(PttParams::default()), Estimator::Jarzynski(JarzynskiParams::default())]
    {
        let mut phase = estimator.build(&Setup { batch: 200, ..setup(&machine, &v) }).unwrap();
        estimate(phase.as_mut(), &machine, &v, 1);
        assert_eq!(phase.updated(&machine, &far).unwrap(), Decision::Reject, "{}", estimator.name());
        let mut near = machine.clone();
        near.coupling_mut(0).w_mut().mapv_inplace(|w| 1.01 * w);
        assert_eq!(phase.updated(&machine, &near).unwrap(), Decision::Accept, "{}", estimator.name());
    }
}

/// Estimators can start at a machine far from independent units: moments and ln Z agree with enumeration at the first
/// update, hidden layers traced out or not.
#[test]
fn distant_starts() {
    let d = &mut Dice(9);
    let binary = |n, d: &mut Dice| layer(Kind::Binary, n, d);
    let machines = [
        generic(Machine::rbm(binary(8, d), binary(6, d)), 90, 2.0),
        generic(Machine::deep(binary(6, d), vec![binary(4, d), binary(3, d)]), 91, 2.0),
        generic(Machine::fully_visible(layer(Kind::Spin, 8, d)), 92, 1.0),
    ];
    let estimators = [
        Estimator::Jarzynski(JarzynskiParams { chains: Some(4000), ..Default::default() }),
        Estimator::Ptt(PttParams { chains: Some(1000), ..Default::default() }),
    ];
    for (k, machine) in machines.iter().enumerate() {
        let v = data(machine, 10, 10);
        let exact = machine.exact().moments().unwrap();
        for estimator in &estimators {
            let what = format!("machine {k}, {}", estimator.name());
            let mut phase = estimator.build(&setup(machine, &v)).unwrap();
            let (mut moments, info) = estimate(phase.as_mut(), machine, &v, 1);
            moments.add(-1.0, &exact.stats);
            let count = moments.arrays().map(|a| a.len()).sum::<usize>() as f64;
            // About 1000 effective samples of numbers of variance ≤ 1.
            let rms = moments.norm() / count.sqrt();
            assert!(rms < 0.05, "{what}: rms error of the moments {rms:.3}");
            let error = metric(&info, "log_z") - exact.log_z;
            assert!(error.abs() < 0.2, "{what}: ln Z {error:.3} off");
        }
    }
}

/// Long runs of the chain estimators at fixed parameters come to the exact moments; fast PCD only without
/// its fast weights, which keep the chains moving.
#[test]
fn chains_converge_to_the_exact_moments() {
    let d = &mut Dice(11);
    let machine = generic(Machine::rbm(layer(Kind::Binary, 5, d), layer(Kind::Spin, 3, d)), 95, 1.0);
    let v = data(&machine, 10, 11);
    let exact = machine.exact().moments().unwrap().stats;
    let estimators = [
        Estimator::Fpcd(FpcdParams { chains: Some(500), rate: 0.0, ..Default::default() }),
        Estimator::Pt(PtParams { chains: Some(500), rungs: 4, ..Default::default() }),
        Estimator::Ptt(PttParams { chains: Some(500), sweeps: 1, ..Default::default() }),
        Estimator::Jarzynski(JarzynskiParams { chains: Some(500), ..Default::default() }),
    ];
    for estimator in estimators {
        let mut phase = estimator.build(&setup(&machine, &v)).unwrap();
        let mut mean = machine.zero_parameters::<f64>();
        let updates = 150;
        for update in 1..=updates + 20 {
            let (out, _) = estimate(phase.as_mut(), &machine, &v, update);
            if update > 20 {
                mean.add(1.0 / updates as f64, &out);
            }
        }
        mean.add(-1.0, &exact);
        let count = mean.arrays().map(|a| a.len()).sum::<usize>() as f64;
        let rms = mean.norm() / count.sqrt();
        // 75 000 correlated samples of variance ≤ 1: an error of about 1/√(75 000/5).
        assert!(rms < 0.01, "{}: rms error {rms:.4}", estimator.name());
    }
}

/// A saved and loaded estimator continues bit for bit, and results do not depend on the number of threads.
#[test]
fn every_estimator_resumes() {
    let d = &mut Dice(12);
    let machine = generic(Machine::rbm(layer(Kind::Binary, 6, d), layer(Kind::Binary, 4, d)), 96, 0.5);
    let machine: Machine<f32> = machine.cast();
    let rows = Array2::from_shape_fn((90, 6), |(r, j)| f64::from(u8::from((r * 7 + j * j) % 3 == 0)));
    let v = machine.data(vec![machine.layer(0).batch(rows.view()).unwrap()]).unwrap();
    let stage = |k: u64| {
        let mut m = machine.clone();
        m.coupling_mut(0).w_mut().mapv_inplace(|w| w * (1.0 + 0.3 * k as f32));
        m
    };
    let run = |estimator: &Estimator, threads: usize, split: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut phase = estimator.build(&setup(&machine, &v)).unwrap();
            let mut all = Vec::new();
            for k in 0..6 {
                if split && k == 3 {
                    let mut archive = Archive::default();
                    phase.save(&mut archive);
                    phase = estimator.build(&setup(&machine, &v)).unwrap();
                    phase.load(&archive).unwrap();
                }
                all.push(estimate(phase.as_mut(), &stage(k), &v, k + 1));
                phase.updated(&stage(k), &stage(k + 1)).unwrap();
            }
            all
        })
    };
    let names = harmonium::estimate::applicable(&machine);
    for estimator in Estimator::ALL.iter().filter(|e| names.contains(&e.name())) {
        let straight = run(estimator, 1, false);
        assert_eq!(straight, run(estimator, 2, true), "{}", estimator.name());
    }
    // A checkpoint of another estimator is refused, not misread.
    let mut archive = Archive::default();
    Estimator::ALL[4].build(&setup(&machine, &v)).unwrap().save(&mut archive);
    assert_eq!(Estimator::ALL[4].name(), "pt");
    let mut other = Estimator::Ptt(PttParams::default()).build(&setup(&machine, &v)).unwrap();
    assert!(other.load(&archive).is_err());
}
