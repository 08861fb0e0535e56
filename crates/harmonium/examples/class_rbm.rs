//! A class RBM: pixels and a class label share hidden units, and p(class | pixels) comes out exactly.
//!
//! Six pixels in a row; class 0 lights the left pair, class 1 the middle pair, class 2 the right pair. One hidden unit
//! per class looks for its pair and adds evidence for its class. The check is the closed form p(y|v) ∝ e^{θ_y} Π_j (1 +
//! e^{c_j + U_{yj} + (vW)_j}).
#![allow(clippy::print_stdout)]

use harmonium::{Kind, Layer, Machine, Result};
use ndarray::{Array2, array};

const CLASSES: usize = 3;

fn main() -> Result<()> {
    let pixels = Layer::new(Kind::Binary, 6);
    let hidden = Layer::with_params(Kind::Binary, array![[-3.0, -3.0, -3.0]])?;
    let mut machine = Machine::<f64>::class_rbm(pixels, CLASSES as u32, hidden);
    let (v, y, h) = (0, 1, 2);
    machine.layer_mut(y).params_mut().assign(&array![[0.1, 0.0, -0.1]]);
    let to_pixels = machine.coupling_between(v, h).expect("v–h");
    let to_classes = machine.coupling_between(y, h).expect("y–h");
    let w = Array2::from_shape_fn((6, 3), |(i, j)| if i / 2 == j { 3.0 } else { -1.0 });
    let u = Array2::from_shape_fn((3, 3), |(y, j)| if y == j { 2.0 } else { -1.0 });
    machine.coupling_mut(to_pixels).w_mut().assign(&w);
    machine.coupling_mut(to_classes).w_mut().assign(&u);

    let images = array![
        [1., 1., 0., 0., 0., 0.],
        [0., 0., 1., 1., 0., 0.],
        [0., 0., 0., 0., 1., 1.],
        [0., 1., 0., 1., 1., 0.], // a little of everything
    ];
    println!("pixels    p(class 0)  p(class 1)  p(class 2)");
    for (r, image) in images.rows().into_iter().enumerate() {
        // The image three times, once with each label: p(y|v) is the softmax of −F(v,y).
        let repeated = Array2::from_shape_fn((CLASSES, 6), |(_, i)| image[i]);
        let labels = array![[0.0], [1.0], [2.0]];
        let states = machine.data(vec![
            machine.layer(v).batch(repeated.view())?,
            machine.layer(y).batch(labels.view())?,
        ])?;
        let p = softmax(machine.free_energy(&states)?.iter().map(|f| -f).collect());

        let by_hand = softmax(
            (0..CLASSES)
                .map(|y| {
                    let softplus = |j: usize| {
                        let input = -3.0 + u[[y, j]] + image.dot(&w.column(j));
                        input.exp().ln_1p()
                    };
                    [0.1, 0.0, -0.1][y] + (0..3).map(softplus).sum::<f64>()
                })
                .collect(),
        );
        let picture: String = image.iter().map(|x| if *x > 0.0 { '#' } else { '.' }).collect();
        println!("{picture}    {:10.4}  {:10.4}  {:10.4}", p[0], p[1], p[2]);
        for (p, by_hand) in p.iter().zip(&by_hand) {
            assert!((p - by_hand).abs() < 1e-12, "p(y|v) of {picture}");
        }
        if r < CLASSES {
            assert!(p[r] > 0.5, "{picture} belongs to class {r}");
        } else {
            assert!(p.iter().all(|p| *p < 0.8), "{picture} is ambiguous");
        }
    }
    Ok(())
}

fn softmax(x: Vec<f64>) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = x.iter().map(|x| (x - max).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / sum).collect()
}
