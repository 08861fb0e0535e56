//! Small machines for studies of coverage.

use harmonium::{Kind, Layer, Machine};
use ndarray::Array2;

/// A generator of parameters (splitmix64).
struct Dice(u64);

impl Dice {
    fn between(&mut self, lo: f64, hi: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        lo + (hi - lo) * ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        self.between(0.0, n as f64) as usize
    }
}

fn unbounded(kind: Kind) -> bool {
    kind.states().is_none()
}

fn unbounded_count(kind: Kind) -> bool {
    unbounded(kind) && kind.is_count()
}

fn layer(kind: Kind, n: usize, dice: &mut Dice) -> Layer<f64> {
    let mut layer = Layer::new(kind, n);
    for (k, name) in kind.params().iter().enumerate() {
        let (lo, hi) = if name.starts_with("gamma") { (1.0, 2.5) } else { (-1.5, 1.5) };
        layer.params_mut().row_mut(k).mapv_inplace(|_| dice.between(lo, hi));
    }
    layer
}

/// Weights up to `scale`; weaker between units without bounds, so that Z stays finite.
fn draw_weights(machine: &mut Machine<f64>, scale: f64, dice: &mut Dice) {
    for c in 0..machine.couplings().len() {
        let (a, b) = machine.couplings()[c].ends();
        let kinds = [a, b].map(|l| machine.layer(l).kind());
        let lateral = a == b;
        let columns = kinds[0].columns();
        let (lo, hi) = match kinds {
            [x, y] if unbounded(x) && unbounded(y) => {
                if kinds.into_iter().any(unbounded_count) {
                    (-scale.min(0.5), 0.0)
                } else {
                    (-0.2, 0.2)
                }
            }
            [x, y] if unbounded_count(x) || unbounded_count(y) => (-scale.min(0.7), scale.min(0.7)),
            _ => (-scale, scale),
        };
        let w = machine.coupling_mut(c).w_mut();
        for i in 0..w.nrows() {
            for j in 0..w.ncols() {
                if !lateral {
                    w[[i, j]] = dice.between(lo, hi);
                } else if i / columns < j / columns {
                    w[[i, j]] = dice.between(lo, hi);
                    w[[j, i]] = w[[i, j]];
                }
            }
        }
    }
}

fn wild(a: Kind, b: Kind) -> bool {
    let one = |a: Kind, b: Kind| unbounded_count(a) && unbounded(b) && b.lowest() < 0.0;
    one(a, b) || one(b, a)
}

/// Machines of all kinds of units and most shapes, couplings from weak to strong.
pub(crate) fn random(number: u64, seed: u64) -> Vec<(String, Machine<f64>)> {
    let mut dice = Dice(seed);
    let mut out = Vec::new();
    while out.len() < number as usize {
        let scale = [0.3, 0.8, 1.6, 3.0, 6.0][out.len() % 5];
        let mut kind = |only_finite: bool| {
            let all: Vec<_> =
                Kind::ALL.into_iter().filter(|k| !only_finite || k.states().is_some()).collect();
            all[dice.below(all.len())]
        };
        let (v, h) = (kind(false), kind(false));
        let finite = [kind(true), kind(true), kind(true)];
        let shape = dice.below(8);
        let n = |kind: Kind, dice: &mut Dice| {
            if kind.columns() > 1 || kind.states() == Some(4) {
                2 + dice.below(3)
            } else {
                3 + dice.below(5)
            }
        };
        let mut l = |kind| {
            let n = n(kind, &mut dice);
            layer(kind, n, &mut dice)
        };
        let (what, mut machine) = match shape {
            0 => ("deep", Machine::deep(l(finite[0]), vec![l(finite[1]), l(finite[2])])),
            1 => ("semi-restricted", Machine::semi_restricted(l(finite[0]), l(finite[1]))),
            2 => ("unrestricted", Machine::unrestricted(l(finite[0]), l(finite[1]))),
            3 => ("fully visible", Machine::fully_visible(l(finite[0]))),
            4 => ("class", Machine::class_rbm(l(finite[0]), 3, l(finite[1]))),
            _ => {
                if wild(v, h)
                    || unbounded(v) && unbounded(h) && (unbounded_count(v) || unbounded_count(h))
                {
                    continue;
                }
                ("rbm", Machine::rbm(l(v), l(h)))
            }
        };
        draw_weights(&mut machine, scale, &mut dice);
        if machine.check_normalisable().is_err() || machine.exact().cost().map_or(true, |c| c.1 > 2.0) {
            continue;
        }
        let kinds: Vec<_> = machine.members().iter().map(|m| m.layer.kind().to_string()).collect();
        out.push((format!("{what} {} scale {scale}", kinds.join("-")), machine));
    }
    out
}

/// Machines with two far modes, one of which holds most of the probability at β = 1 and almost none on the way.
pub(crate) fn deceptive(number: u64, seed: u64) -> Vec<(String, Machine<f64>)> {
    let mut dice = Dice(seed ^ 0xdece);
    (0..number).map(|k| if k % 2 == 0 { lone_switch(&mut dice) } else { crowd(&mut dice) }).collect()
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// Visible units with negative fields, and a hidden unit that is off unless all of them are on.
fn lone_switch(dice: &mut Dice) -> (String, Machine<f64>) {
    let n = 16 + dice.below(6);
    let w = dice.between(8.0, 14.0);
    let bias = dice.between(-1.5, -0.5);
    // ln of the mass of the mode that is on, relative to the other.
    let advantage = dice.between(1.0, 3.0);
    let c = advantage + n as f64 * (softplus(bias) - softplus(bias + w));
    let v = Layer::with_params(Kind::Binary, Array2::from_elem((1, n), bias)).expect("finite");
    let mut hidden = Layer::new(Kind::Binary, 2);
    hidden.params_mut().assign(&ndarray::array![[c, dice.between(-0.5, 0.5)]]);
    let mut machine = Machine::rbm(v, hidden);
    let weights = Array2::from_shape_fn((n, 2), |(_, j)| if j == 0 { w } else { 0.1 });
    machine.coupling_mut(0).w_mut().assign(&weights);
    (format!("lone switch, n = {n}, w = {w:.1}, advantage {advantage:.1}"), machine)
}

/// Visible units with negative fields and positive couplings: all on or none.
fn crowd(dice: &mut Dice) -> (String, Machine<f64>) {
    let n = 14 + dice.below(6);
    let bias = dice.between(-9.0, -6.0);
    let advantage = dice.between(1.0, 3.0);
    let pairs = (n * (n - 1) / 2) as f64;
    let u = (advantage + n as f64 * (softplus(bias) - bias)) / pairs;
    let v = Layer::with_params(Kind::Binary, Array2::from_elem((1, n), bias)).expect("finite");
    let mut machine = Machine::fully_visible(v);
    let weights = Array2::from_shape_fn((n, n), |(i, j)| if i == j { 0.0 } else { u });
    machine.coupling_mut(0).w_mut().assign(&weights);
    (format!("crowd, n = {n}, bias {bias:.1}, advantage {advantage:.1}"), machine)
}
