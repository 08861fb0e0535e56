//! One constructor per kind of unit, for layers with zero parameters.

use super::{Kind, Layer};

macro_rules! layers {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) => $kind:expr;)*) => {
        $($(#[$doc])*
        ///
        /// All θ are zero and all γ one; in single precision, [`Layer::cast`] gives the other.
        pub fn $name(n: usize, $($arg: $type),*) -> Layer {
            Layer::new($kind, n)
        })*
    };
}

layers! {
    /// `n` binary units, 0 or 1.
    binary() => Kind::Binary;
    /// `n` spins, −1 or +1.
    spin() => Kind::Spin;
    /// `n` Potts units of `q` states each, as sites of a sequence or columns of categories.
    potts(q: u32) => Kind::Potts { q };
    /// `n` Gaussian units.
    gaussian() => Kind::Gaussian;
    /// `n` rectified linear units, real numbers ≥ 0.
    relu() => Kind::Relu;
    /// `n` double rectified linear units.
    drelu() => Kind::Drelu;
    /// `n` counts from 0 to `most`, binomial.
    binomial(most: u32) => Kind::Binomial { n: most };
    /// `n` counts, Poisson.
    poisson() => Kind::Poisson;
    /// `n` counts from 0 to `most` whose variance m + m²/r exceeds their mean m, with r = `shape`/16.
    negative_binomial(shape: u32, most: u32) => Kind::NegativeBinomial { shape, n: most };
    /// `n` counts from 0 to `most` with a free parameter for the frequency of each count.
    ordinal(most: u32) => Kind::Ordinal { n: most };
}
