//! Train, sample and evaluate Boltzmann machines.
//!
//! A Boltzmann machine is **layers of units joined by couplings**: a distribution
//! $p(x) = e^{-E(x)}/Z$ with
//!
//! $$E(x) = \sum_l E_l(x_l) - \sum_{a<b} x_a^\top W_{ab} x_b - \tfrac12\sum_a x_a^\top U_a x_a.$$
//!
//! Which blocks are present decides which machine it is; the code that samples and trains it is the same.
//! So is the code of the two phases of learning, which differ only in what is clamped.
//!
//! ```
//! use harmonium::sample::purpose;
//! use harmonium::{Chains, Clamps, Kind, Layer, Machine};
//! use ndarray::array;
//!
//! # fn main() -> harmonium::Result<()> {
//! // An RBM of two spins and one hidden binary unit, which likes them to be equal.
//! let v = Layer::new(Kind::Spin, 2);
//! let h = Layer::with_params(Kind::Binary, array![[-1.0]])?;
//! let mut rbm = Machine::rbm(v, h);
//! rbm.coupling_mut(0).w_mut().assign(&array![[1.5], [1.5]]);
//!
//! // Exact probabilities of all four visible states.
//! let all = array![[-1., -1.], [-1., 1.], [1., -1.], [1., 1.]];
//! let data = rbm.data(vec![rbm.layer(0).batch(all.view())?])?;
//! let p: Vec<f64> = rbm.exact().log_probability(&data)?.into_iter().map(f64::exp).collect();
//! assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
//!
//! // Block-Gibbs sampling agrees within its noise: 5 standard errors of 4096 chains.
//! let mut chains = Chains::independent(&rbm, 4096, 1, purpose::USER)?;
//! chains.sweep(&rbm.at(1.0), &Clamps::none(&rbm), 20)?;
//! let v = rbm.layer(0).values(chains.states().layer(0)?);
//! let both_up = v.rows().into_iter().filter(|x| x.sum() == 2.0).count() as f64 / 4096.0;
//! assert!((both_up - p[3]).abs() < 5.0 * (p[3] * (1.0 - p[3]) / 4096.0).sqrt());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | module | what it holds |
//! |---|---|
//! | [`units`] | the kinds of units, each known by its log-partition Γ; a [`Layer`] is units of one kind |
//! | [`machine`] | [`Machine`]: layers and couplings, energies, conditional means, free energy, moments |
//! | [`sample`] | [`Chains`] and block-Gibbs sweeps with [`Clamps`] |
//! | [`exact`] | enumeration: ln Z, moments, likelihood and its gradient |
//! | [`estimate`] | estimators of the negative phase |
//! | [`partition`] | ln Z by sampling: AIS both ways, Bennett's ratio, RAISE |
//! | [`evaluate`] | the verdict on ln Z, likelihood, diagnostics of chains, quality of samples |
//! | [`train`] | settings, the loop, optimisers, events and observers |
//! | [`io`] | the model file |
//!
//! [`States`] hold configurations in their natural form (bits, codes or reals), [`Parameters`] are all numbers of
//! a machine as one vector, and [`Error`] is the one error type. Numbers are `f32` or `f64` ([`Real`]); energies,
//! Γ, ln Z and log-weights are summed in `f64` either way. Random numbers depend on the seed and on what they are
//! for ([`Key`]), never on the number of threads.
#![forbid(unsafe_code)]

mod archive;
mod container;
mod error;
pub mod estimate;
pub mod evaluate;
pub mod exact;
pub mod io;
pub mod machine;
pub mod partition;
pub mod sample;
mod states;
pub mod tasks;
pub mod train;
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
