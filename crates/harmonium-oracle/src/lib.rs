//! Naive f64 ground truth for Boltzmann machines: every number is a sum over all states, straight from E(x).
//!
//! A [`Machine`] is plain data: layers, couplings and an inverse temperature β. Its density is
//!
//! ```text
//! p(x) = ν(x) e^{−βE(x)} / Z,      Z = Σ_x ν(x) e^{−βE(x)}
//! ```
//!
//! with respect to counting measure for the discrete kinds and Lebesgue measure for the real ones.
//! E holds the θ, γ and coupling terms; ν holds what β does not multiply: C(n,x) for Binomial,
//! 1/x! for Poisson, r(r+1)…(r+x−1)/x! for NegativeBinomial, 1 on the support of every other kind.
//!
//! Everything is computed by visiting the product of one list of nodes per unit: the values of a
//! discrete unit, Gauss–Legendre nodes for a real one. No layer is ever traced out analytically.
//! The cost is the product of the list lengths (a real unit has 60 nodes or more), so machines must
//! be small: up to about three real units, or some 10⁷ states in all. Results agree to about 1e−14
//! with finer grids on wider windows.
//!
//! A density that grows without bound panics. One that first dies out and only then diverges, far
//! away, is summed over its near part: a Poisson unit weakly coupled to a Gaussian one (whose Z is
//! infinite for any w ≠ 0) looks finite here.
//!
//! ```
//! use harmonium_oracle::{Coupling, Kind, Layer, Machine};
//!
//! // One Binary unit v joined to one Spin h: Z = Σ_v e^{bv} · 2cosh(c + wv).
//! let (b, c, w) = (0.3_f64, -0.2_f64, 0.7_f64);
//! let machine = Machine {
//!     layers: vec![
//!         Layer { kind: Kind::Binary, params: vec![vec![b]] },
//!         Layer { kind: Kind::Spin, params: vec![vec![c]] },
//!     ],
//!     couplings: vec![Coupling { a: 0, b: 1, w: vec![vec![w]] }],
//!     beta: 1.0,
//! };
//! let z = 2.0 * c.cosh() + b.exp() * 2.0 * (c + w).cosh();
//! assert!((machine.log_z() - z.ln()).abs() < 1e-14);
//! ```

#![forbid(unsafe_code)]

mod layer;
mod likelihood;
mod machine;
mod moments;
mod nodes;
mod quadrature;
mod sums;
mod window;

pub use layer::{Kind, Layer};
pub use machine::{Clamps, Coupling, Machine, State};
pub use moments::{Gradient, Moments};
