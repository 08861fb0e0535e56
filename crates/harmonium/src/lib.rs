//! Train, sample and evaluate Boltzmann machines.
//!
//! A Boltzmann machine is **layers of units joined by couplings**: a distribution
//! $p(x) = e^{-E(x)}/Z$ with
//!
//! $$E(x) = \sum_l E_l(x_l) - \sum_{a<b} x_a^\top W_{ab} x_b - \tfrac12\sum_a x_a^\top U_a x_a.$$
//!
//! The blocks that are present make it a restricted, deep, semi-restricted, fully visible … machine; sampling and training
//! run the same code for all of them.
//!
//! ```
//! use harmonium::{Machine, binary, spin};
//! use ndarray::array;
//!
//! # fn main() -> harmonium::Result<()> {
//! // An RBM of two spins and one hidden binary unit, whose weights favour equal spins.
//! let mut rbm = Machine::rbm(spin(2), binary(1));
//! rbm.set_weights("v", "h", array![[1.5], [1.5]])?;
//! rbm.set_parameter("h", "theta", &[-1.0])?;
//!
//! // The probabilities of all four visible states: ln Z of a machine this small is enumerated.
//! let all = array![[-1, -1], [-1, 1], [1, -1], [1, 1]];
//! let found = rbm.log_likelihood(&all).run()?;
//! let p: Vec<f64> = found.log_likelihood.rows.iter().map(|log_p| log_p.exp()).collect();
//! assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-6);
//!
//! // Samples have these frequencies, within 5 standard errors of 4096 independent draws.
//! let samples = rbm.sample(4096).seed(1).run()?;
//! let v = samples.values("v")?;
//! let both_up = v.rows().into_iter().filter(|x| x.sum() == 2.0).count() as f64 / 4096.0;
//! assert!((both_up - p[3]).abs() < 5.0 * (p[3] * (1.0 - p[3]) / 4096.0).sqrt());
//!
//! // Training adapts the machine to data: here, opposite spins.
//! rbm.train(&array![[-1, 1], [1, -1]]).updates(200).run()?;
//! assert!(rbm.log_likelihood(&array![[-1, 1]]).run()?.mean() > p[1].ln());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | what it holds |
//! |---|---|
//! | [`tasks`] | what users do: train, sample, log-likelihood, ln Z, complete, features, classify, gradient |
//! | [`units`] | the kinds of units, each defined by its log-partition function Γ; a [`Layer`] is units of one kind |
//! | [`machine`] | [`Machine`]: layers and couplings, energies, conditional means, free energy, moments |
//! | [`sample`] | [`Chains`], block-Gibbs sweeps with [`Clamps`], replica exchange |
//! | [`exact`] | enumeration: ln Z, moments, likelihood and its gradient |
//! | [`estimate`] | estimators of the negative phase |
//! | [`partition`] | ln Z by sampling: AIS and reverse AIS, Bennett's acceptance ratio, RAISE |
//! | [`evaluate`] | ln Z with a verdict, likelihood, diagnostics of chains, quality of samples |
//! | [`train`] | settings, the training loop, optimisers, events and observers |
//! | [`tune`] | the search for the settings of a run |
//! | [`io`] | the model file |
//!
//! [`States`] hold configurations in their natural form (bits, codes or reals), [`Parameters`] are all numbers of
//! a machine as one vector, and [`Error`] is the one error type. Numbers are `f32` or `f64` ([`Real`]); energies,
//! Γ, ln Z and log-weights are summed in `f64` either way. Random numbers depend on the seed and on their purpose
//! ([`Key`]), never on the number of threads.
#![forbid(unsafe_code)]

mod archive;
mod container;
mod error;
pub mod estimate;
pub mod evaluate;
pub mod exact;
pub mod io;
pub mod machine;
mod memory;
pub mod partition;
pub mod sample;
mod states;
pub mod tasks;
pub mod train;
pub mod tune;
pub mod units;

pub use archive::{Archive, Tensor};
pub use error::{Error, Result};
pub use harmonium_kernels::{Key, Real};
pub use machine::{Coupling, Machine, Member, Parameters, Phase, Role, Tempered};
pub use sample::{Chains, Clamp, Clamps};
pub use states::{Batch, Bits, States};
pub use train::Data;
pub use units::{
    Kind, Layer, binary, binomial, drelu, gaussian, negative_binomial, ordinal, poisson, potts, relu,
    spin,
};

/// The code of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
pub struct Readme;
