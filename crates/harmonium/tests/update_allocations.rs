//! Updates of the usual machines allocate nothing once their buffers have their size.
#![allow(missing_docs)]

use cap::Cap;
use harmonium::estimate::Estimator;
use harmonium::train::{Coordinates, Data, Optimiser, TrainParams, Trainer};
use harmonium::{Batch, Bits, Kind, Layer, Machine};
use ndarray::Array2;
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const ROWS: usize = 137;

fn machine(visible: usize, hidden: usize) -> Machine<f32> {
    Machine::rbm(Layer::new(Kind::Binary, visible), Layer::new(Kind::Binary, hidden))
}

fn bits(visible: usize) -> Batch<f32> {
    // Rows of many and of few bits: products have a form of their own for each.
    Batch::Bits(Bits::from_fn(ROWS, visible, |r, j| (r * 7 + j * 13) % (2 + r % 9) == 0))
}

fn values(visible: usize) -> Batch<f32> {
    Batch::Reals(Array2::from_shape_fn((ROWS, visible), |(r, j)| ((r * 7 + j * 13) % 11) as f32 / 10.0))
}

fn settings(form: Coordinates, optimiser: Optimiser, sweeps: Option<usize>) -> TrainParams {
    TrainParams {
        seed: Some(1),
        estimator: Some(Estimator::Pcd { sweeps, chains: Some(10) }),
        batch: Some(10),
        updates: Some(1 << 20),
        rate: Some(0.001),
        evaluate_every: Some(0),
        form: Some(form),
        optimiser: Some(optimiser),
        ..TrainParams::default()
    }
}

/// The bytes that each of some updates allocates, on one thread, once many are done; in rising order.
fn allocated(machine: Machine<f32>, rows: Batch<f32>, params: TrainParams) -> Vec<usize> {
    let data = Data::new(machine.data(vec![rows]).expect("rows that fit"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    pool.install(|| {
        let plan = params.plan(&machine, &data).expect("settings that fit");
        let mut trainer = Trainer::new(machine, plan, &data).expect("a trainer");
        (0..200).for_each(|_| drop(trainer.update().expect("an update")));
        let count = |_| {
            let before = ALLOCATOR.total_allocated();
            drop(trainer.update().expect("an update"));
            ALLOCATOR.total_allocated() - before
        };
        let mut bytes: Vec<usize> = (0..40).map(count).collect();
        bytes.sort_unstable();
        bytes
    })
}

/// Updates out of 40 that may allocate: lists of set bits are as long as the states have bits, and grow when these have
/// more than ever before. Allocations in every update, or in every pass over the data (14 updates), would be detected.
const GROWTH: usize = 1;

/// Machines with fixed-point tables (from 4096 weights on), at weights that these can hold: with bits and with values,
/// in all coordinates, by optimisers with and without state. One test, because it counts allocations of the whole
/// process.
#[test]
fn no_update_of_a_binary_rbm_allocates() {
    for (visible, hidden) in [(64, 100), (200, 70)] {
        for form in [Coordinates::Plain, Coordinates::Centred, Coordinates::Standardised] {
            for optimiser in [
                Optimiser::Sgd,
                Optimiser::Momentum { mu: 0.9 },
                Optimiser::Cosine { delta: 0.1, max: 0.001 },
            ] {
                for (name, rows) in [("bits", bits(visible)), ("values", values(visible))] {
                    let params = settings(form, optimiser, Some(1));
                    let bytes = allocated(machine(visible, hidden), rows, params);
                    let what = format!("{name}, {visible}×{hidden}, {form:?}, {optimiser:?}");
                    assert_eq!(bytes[bytes.len() - 1 - GROWTH], 0, "{what}: {bytes:?}");
                }
            }
        }
    }
    // With an adaptive number of sweeps, the metrics are a list of two names and two numbers.
    for rows in [bits(64), values(64)] {
        let params = settings(Coordinates::Centred, Optimiser::Sgd, None);
        let bytes = allocated(machine(64, 100), rows, params);
        assert!(bytes[bytes.len() - 1 - GROWTH] <= 48, "{bytes:?}");
    }
}
