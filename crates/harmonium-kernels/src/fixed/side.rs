//! What a coupling knows of a layer: the kind of its units and their number.

/// A layer as one end of a coupling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Units with values 0 and 1, as bits.
    Binary(usize),
    /// Units with values −1 and +1, as bits 0 and 1.
    Spin(usize),
    /// Sites with `q` values each, as codes; unit `i·q + a` is value `a` of site `i`.
    Potts {
        /// Number of sites.
        sites: usize,
        /// Values of a site.
        q: usize,
    },
}

impl Side {
    /// Rows or columns of the weights that belong to the layer.
    pub fn units(self) -> usize {
        match self {
            Self::Binary(n) | Self::Spin(n) => n,
            Self::Potts { sites, q } => sites * q,
        }
    }

    /// Weights that the field on a unit of the other layer adds up.
    pub(super) fn inputs(self) -> usize {
        match self {
            Self::Binary(n) | Self::Spin(n) => n,
            Self::Potts { sites, .. } => sites,
        }
    }
}
