//! The tasks against enumeration, and the types that rows may have.

use harmonium::partition::Verdict;
use harmonium::tasks::{Fill, IntoData};
use harmonium::train::StopReason;
use harmonium::{Bits, Data, Machine, binary, gaussian, potts, spin};
use ndarray::{Array2, array};
use std::time::Duration;

/// A small RBM with generic parameters.
fn rbm() -> Machine {
    let mut rbm = Machine::rbm(binary(4), binary(3));
    let w =
        Array2::from_shape_fn((4, 3), |(i, j)| 0.7 * (i as f32 - 1.3) - 0.4 * (j as f32 - 0.8).powi(3));
    rbm.set_weights("v", "h", w).unwrap();
    rbm.set_parameter("v", "theta", &[0.3, -0.2, 0.5, -0.9]).unwrap();
    rbm.set_parameter("h", "theta", &[0.1, -0.6, 0.2]).unwrap();
    rbm
}

fn all_states(n: usize) -> Array2<u8> {
    Array2::from_shape_fn((1 << n, n), |(r, j)| (r >> j & 1) as u8)
}

#[test]
fn every_form_of_rows_is_the_same_data() {
    let rbm = rbm();
    let x = all_states(4);
    let from_array = (&x).into_data(&rbm).unwrap().into_owned();
    let bits = Bits::from_fn(16, 4, |r, j| x[[r, j]] == 1);
    let on: Vec<Vec<usize>> = (0..16).map(|r| (0..4).filter(|&j| x[[r, j]] == 1).collect()).collect();
    let reals = x.mapv(f64::from);
    let states = from_array.states().clone();
    let forms: [Data; 5] = [
        (&bits).into_data(&rbm).unwrap().into_owned(),
        (&on).into_data(&rbm).unwrap().into_owned(),
        (&reals).into_data(&rbm).unwrap().into_owned(),
        x.mapv(|x| x == 1).view().into_data(&rbm).unwrap().into_owned(),
        (&states).into_data(&rbm).unwrap().into_owned(),
    ];
    assert!(forms.iter().all(|form| *form == from_array));
}

#[test]
fn what_is_wrong_is_named() {
    let mut rbm = rbm();
    let refused = |e: harmonium::Error, words: &str| assert!(e.to_string().contains(words), "{e}");
    refused(rbm.log_likelihood(&array![[0, 1]]).run().unwrap_err(), "columns of the rows");
    refused(rbm.log_likelihood(&array![[0, 1, 2, 0]]).run().unwrap_err(), "layer v");
    refused(rbm.sample(3).clamp("w", 0, 1.0).run().unwrap_err(), "one of v, h");
    refused(rbm.sample(3).clamp("v", 4, 1.0).run().unwrap_err(), "below 4");
    refused(rbm.sample(0).run().unwrap_err(), "at least one");
    refused(rbm.sample(1).temperature(0.0).run().unwrap_err(), "temperature");
    refused(rbm.classify(&array![[0, 1, 1, 0]]).run().unwrap_err(), "no class unit");
    refused(rbm.weights("v", "v").unwrap_err(), "one of v-h");
    refused(rbm.set_parameter("v", "gamma", &[1.0; 4]).unwrap_err(), "one of theta");
    let before = rbm.clone();
    refused(rbm.set_weights("v", "h", Array2::from_elem((4, 3), f32::NAN)).unwrap_err(), "finite");
    refused(rbm.train(&array![[0, 1, 1, 0]]).updates(5).rate(-1.0).run().unwrap_err(), "rate");
    assert_eq!(rbm, before);
    // Invalid parameters set through `coupling_mut` are found by the next task.
    rbm.coupling_mut(0).w_mut()[[0, 0]] = f32::INFINITY;
    refused(rbm.sample(1).run().unwrap_err(), "finite");
}

#[test]
fn likelihood_and_ln_z_are_those_of_enumeration() {
    let rbm = rbm();
    let x = array![[1, 0, 1, 1], [0, 0, 1, 0], [1, 1, 1, 0]];
    let data = (&x).into_data(&rbm).unwrap();
    let exact = rbm.exact().log_probability(data.states()).unwrap();
    let found = rbm.log_likelihood(&x).run().unwrap();
    assert_eq!(found.verdict(), Verdict::Exact);
    for (got, want) in found.log_likelihood.rows.iter().zip(&exact) {
        assert!((got - want).abs() < 1e-6, "{got} {want}");
    }
    let z = rbm.log_z().run().unwrap();
    assert_eq!(Some(&z), found.log_z.as_ref());
    // A given ln Z is not estimated again, and an estimate with a budget agrees with it.
    assert_eq!(rbm.log_likelihood(&x).log_z(&z).run().unwrap(), found);
    let sampled =
        rbm.log_z().params(harmonium::evaluate::LogZParams { exact_seconds: 0.0, ..Default::default() });
    let sampled = sampled.budget(Duration::from_secs(20)).base(&x).run().unwrap();
    assert!(
        (sampled.log_z.value - z.log_z.value).abs() < 0.1,
        "{} {}",
        sampled.log_z.value,
        z.log_z.value
    );
    // The comparison has the marginals of the rows themselves, the best independent columns for them.
    assert!(found.gain().unwrap().value < 0.0 && found.verdict() == Verdict::Exact);
    assert!(rbm.log_likelihood(&x).floor(None).run().unwrap().gain().is_none());
}

#[test]
fn missing_entries_are_summed_over() {
    let rbm = rbm();
    let p: Vec<f64> = rbm.log_likelihood(&all_states(4)).floor(None).run().unwrap().log_likelihood.rows;
    let nan = f64::NAN;
    let x = array![[1.0, nan, 0.0, nan]];
    // Rows 1, 3, 9 and 11 have bits 0 and 2 as given.
    let want = [1, 3, 9, 11].map(|r: usize| p[r].exp()).iter().sum::<f64>().ln();
    let found = rbm.log_likelihood(&x).floor(None).run().unwrap();
    assert!((found.mean() - want).abs() < 1e-6);
    assert!(found.reasons().iter().any(|r| r.contains("1 of 1 rows have missing entries")));
    // p(v1 = 1 | known) from the same table.
    let one = ([3, 11].map(|r: usize| p[r].exp()).iter().sum::<f64>()) / want.exp();
    let filled = rbm.complete(&x).run().unwrap();
    assert!((filled.means("v").unwrap()[[0, 1]] - one).abs() < 1e-6);
    let best = filled.values("v", Fill::Best).unwrap();
    assert_eq!((best[[0, 0]], best[[0, 1]], best[[0, 2]]), (1.0, f64::from(u8::from(one > 0.5)), 0.0));
    let certain = filled.probabilities("v", &best).unwrap();
    assert!((certain[[0, 1]] - one.max(1.0 - one)).abs() < 1e-6 && certain[[0, 0]] == 1.0);
}

#[test]
fn clamped_samples_have_the_conditional_distribution() {
    let rbm = rbm();
    let p: Vec<f64> =
        rbm.exact().log_probability((&all_states(4)).into_data(&rbm).unwrap().states()).unwrap();
    let given = |r: &usize| r & 1 == 1;
    let total: f64 = (0..16).filter(given).map(|r| p[r].exp()).sum();
    let want: f64 =
        (0..16).filter(given).filter(|r| r & 2 != 0).map(|r| p[r].exp()).sum::<f64>() / total;
    let samples = rbm.sample(20_000).clamp("v", 0, 1.0).seed(3).run().unwrap();
    assert!(samples.exact);
    let v = samples.values("v").unwrap();
    assert!(v.column(0).iter().all(|&x| x == 1.0));
    // Five standard errors of 20 000 independent draws.
    let got = v.column(1).mean().unwrap();
    assert!((got - want).abs() < 5.0 * (want * (1.0 - want) / 20_000.0).sqrt(), "{got} {want}");
    // Rows given one by one do the same as a clamp of all.
    let nan = f64::NAN;
    let same = rbm.sample(20_000).given(&array![[1.0, nan, nan, nan]]).seed(3).run().unwrap();
    assert_eq!(same.states, samples.states);
}

#[test]
fn classes_features_and_gradient() {
    let mut machine = Machine::class_rbm(spin(3), 2, binary(2));
    let w = array![[1.0, -0.5], [0.3, 0.8], [-0.9, 0.4]];
    machine.set_weights("v", "h", w).unwrap();
    machine.set_weights("y", "h", array![[0.5, -1.0], [-0.5, 1.0]]).unwrap();
    let labelled = array![[1, -1, 1, 0], [1, -1, 1, 1]];
    let joint = machine.log_likelihood(&labelled).floor(None).run().unwrap().log_likelihood.rows;
    let classes = machine.classify(&array![[1, -1, 1]]).run().unwrap();
    let want = joint[1].exp() / (joint[0].exp() + joint[1].exp());
    assert!((classes.probabilities[[0, 1]] - want).abs() < 1e-6);
    assert_eq!(classes.predicted(), [usize::from(want > 0.5)]);
    // Rows without a label have ln p(v), the sum over the classes.
    let bare = machine.log_likelihood(&array![[1, -1, 1]]).run().unwrap();
    assert!((bare.mean() - (joint[0].exp() + joint[1].exp()).ln()).abs() < 1e-6);
    assert!(bare.reasons().iter().any(|r| r.contains("no labels")) && bare.gain().is_none());
    let h = machine.features(&labelled).run().unwrap();
    assert_eq!((h.len(), h[0].dim()), (1, (2, 2)));
    let input = machine.features(&labelled).inputs(true).run().unwrap();
    assert!((h[0][[0, 0]] - 1.0 / (1.0 + (-input[0][[0, 0]]).exp())).abs() < 1e-6);
    // The derivative of the mean log-likelihood by one weight, by finite differences.
    let gradient = machine.gradient(&labelled).run().unwrap();
    let mean = |step: f32| {
        let mut moved = machine.clone();
        let mut w = moved.weights("v", "h").unwrap().clone();
        w[[1, 0]] += step;
        moved.set_weights("v", "h", w).unwrap();
        moved.log_likelihood(&labelled).floor(None).run().unwrap().mean()
    };
    let slope = (mean(1e-2) - mean(-1e-2)) / 2e-2;
    let entry = gradient.arrays().nth(3).unwrap()[[1, 0]];
    assert!((entry - slope).abs() < 1e-4, "{entry} {slope}");
    let gaps = machine.gradient(&array![[1.0, f64::NAN, 1.0, 0.0]]).run().unwrap_err().to_string();
    assert!(gaps.contains("missing entries"), "{gaps}");
}

#[test]
fn training_stops_resumes_and_returns_the_same_bits() {
    let x = Array2::from_shape_fn((200, 6), |(r, j)| (r >> (j % 3)) & 1);
    let train =
        |machine: &mut Machine, updates: u64| machine.train(&x).updates(updates).seed(4).run().unwrap();
    let mut whole = Machine::rbm(binary(6), binary(3));
    let done = train(&mut whole, 60);
    assert_eq!((done.updates, done.reason), (60, StopReason::Finished));
    let mut part = Machine::rbm(binary(6), binary(3));
    let stop = |event: &harmonium::train::Event, _: &harmonium::train::Trainer<'_, f32>| {
        let enough = matches!(event, harmonium::train::Event::UpdateFinished { update: 25 });
        Ok(if enough {
            harmonium::train::Control::Stop(StopReason::Requested("enough".into()))
        } else {
            harmonium::train::Control::Continue
        })
    };
    let stopped = part.train(&x).updates(60).seed(4).observe(stop).run().unwrap();
    assert_eq!((stopped.updates, stopped.reason.to_string()), (25, "enough".to_owned()));
    let mut rest = Machine::rbm(binary(6), binary(3));
    rest.train(&x).resume(&stopped.checkpoint).run().unwrap();
    assert_eq!(rest, whole);
    let mut never = Machine::rbm(binary(6), binary(3));
    let none = never.train(&x).updates(60).stop_when(|| true).run().unwrap();
    assert_eq!((none.updates, none.reason), (1, StopReason::Interrupted));
}

#[test]
fn kinds_by_name() {
    let mut machine = Machine::mixed(vec![("town", potts(2, 3)), ("size", gaussian(1))], binary(2));
    let x = Array2::from_shape_fn((90, 3), |(r, j)| match j {
        2 => (r % 3) as f64 - 0.9 + 0.01 * r as f64,
        _ => (r % 3) as f64,
    });
    machine.train(&x).updates(200).seed(1).run().unwrap();
    let found = machine.log_likelihood(&x).run().unwrap();
    assert!(found.gain().unwrap().value > 0.5, "{found:?}");
    let samples = machine.sample(5).seed(1).run().unwrap();
    assert!(samples.values("town").unwrap().iter().all(|&x| [0.0, 1.0, 2.0].contains(&x)));
    assert!(samples.values("nowhere").is_err());
}

/// Chains of a weakly coupled machine forget their start, its own samples look like it, and copies are found.
#[test]
fn a_diagnosis_compares_chains_and_samples_with_rows() {
    let mut machine = Machine::rbm(binary(4), binary(2));
    machine
        .set_weights("v", "h", Array2::from_shape_fn((4, 2), |(i, j)| 0.5 - 0.3 * (i + j) as f32))
        .unwrap();
    let rows = machine.sample(1500).seed(3).run().unwrap().values("v").unwrap();
    let found = machine.diagnose(&rows).sweeps(200).seed(1).run().unwrap();
    assert_eq!(found.chains.verdict, Verdict::Converged, "{:?}", found.chains.reasons);
    assert!(found.samples.moments[0].correlation > 0.8, "{:?}", found.samples.moments);
    // All 16 rows occur.
    assert_eq!((found.samples.of_training, found.samples.duplicates.of_training), (false, 1.0));
    assert_eq!(found, machine.diagnose(&rows).sweeps(200).seed(1).run().unwrap());
    let none = machine.data(vec![machine.layer(0).zeros(1)]).unwrap();
    let apart = machine.diagnose(&rows).training(&none).sweeps(200).seed(1).run().unwrap();
    assert!(apart.samples.of_training && apart.samples.duplicates.of_training < 0.5, "{apart:?}");
    let gaps = machine.diagnose(&array![[1.0, f64::NAN, 1.0, 0.0], [0.0; 4]]).run();
    assert!(gaps.unwrap_err().to_string().contains("missing entries"));
    assert!(machine.diagnose(&rows).stop_when(|| true).run().is_err());
}
