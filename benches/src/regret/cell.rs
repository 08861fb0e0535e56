//! The cells of the matrix: a kind of visible units, a kind of hidden units and a machine.

use harmonium::{Kind, Layer, Machine};
use std::fmt;

/// Longest enumeration of ln Z, in seconds, for which a machine keeps its size.
const CHEAP: f64 = 0.3;

/// Which couplings there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Between visible and hidden units.
    Rbm,
    /// And among the visible ones.
    SemiRestricted,
    /// And among the hidden ones.
    Unrestricted,
    /// Among visible units, without hidden ones.
    FullyVisible,
    /// Two hidden layers.
    Deep,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rbm => "rbm",
            Self::SemiRestricted => "semi",
            Self::Unrestricted => "unrestricted",
            Self::FullyVisible => "visible",
            Self::Deep => "deep",
        })
    }
}

/// One combination.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// The couplings.
    pub architecture: Architecture,
    /// The visible units.
    pub visible: Kind,
    /// The hidden units, where there are some.
    pub hidden: Option<Kind>,
    /// Whether it has fewer units than enumeration allows.
    pub small: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.hidden.map(|h| format!(" {h}")).unwrap_or_default();
        f.pad(&format!("{} {}{hidden}", self.architecture, self.visible))
    }
}

/// All cells: every kind of visible units with every kind of hidden ones under every machine.
pub fn cells() -> Vec<Cell> {
    use Architecture::{Deep, FullyVisible, Rbm, SemiRestricted, Unrestricted};
    let kinds =
        [Kind::Binary, Kind::Spin, Kind::Potts { q: 3 }, Kind::Gaussian, Kind::Relu, Kind::Drelu];
    let mut cells = Vec::new();
    for visible in Kind::ALL {
        cells.push(Cell { architecture: FullyVisible, visible, hidden: None, small: false });
        for architecture in [Rbm, SemiRestricted, Unrestricted, Deep] {
            let cell = |&h: &Kind| Cell { architecture, visible, hidden: Some(h), small: false };
            cells.extend(kinds.iter().map(cell));
        }
    }
    cells
}

/// The few cells, with fewer units, that a test can afford: each machine, each kind of visible units, exact and sampled
/// gradients.
pub fn few_cells() -> Vec<Cell> {
    use Architecture::{Deep, FullyVisible, Rbm, SemiRestricted, Unrestricted};
    use Kind::{Binary, Binomial, Drelu, Gaussian, Poisson, Potts, Relu, Spin};
    let counts = Kind::ALL.into_iter().find(|k| matches!(k, Kind::NegativeBinomial { .. }));
    let cells = [
        (FullyVisible, Binary, None),
        (FullyVisible, Binomial { n: 3 }, None),
        (Rbm, Binary, Some(Binary)),
        (Rbm, Potts { q: 3 }, Some(Binary)),
        (Rbm, Gaussian, Some(Binary)),
        (Rbm, Relu, Some(Binary)),
        (Rbm, Drelu, Some(Spin)),
        (Rbm, Poisson, Some(Binary)),
        (Rbm, counts.expect("a kind of that name"), Some(Binary)),
        (Rbm, Gaussian, Some(Gaussian)),
        (SemiRestricted, Gaussian, Some(Binary)),
        (Unrestricted, Spin, Some(Spin)),
        (Deep, Binary, Some(Binary)),
    ];
    let cell = |(architecture, visible, hidden)| Cell { architecture, visible, hidden, small: true };
    cells.into_iter().map(cell).collect()
}

impl Cell {
    /// The machine of this cell with every coupling zero and these numbers of units.
    fn blank_of(&self, sizes: &[usize]) -> Machine {
        let v = Layer::new(self.visible, sizes[0]);
        let h = |l: usize| Layer::new(self.hidden.expect("hidden units of a kind"), sizes[l]);
        match self.architecture {
            Architecture::Rbm => Machine::rbm(v, h(1)),
            Architecture::SemiRestricted => Machine::semi_restricted(v, h(1)),
            Architecture::Unrestricted => Machine::unrestricted(v, h(1)),
            Architecture::FullyVisible => Machine::fully_visible(v),
            Architecture::Deep => Machine::deep(v, vec![h(1), h(2)]),
        }
    }

    /// The blank machine of this cell, as large as enumeration allows unless a small one is wanted.
    pub fn blank(&self) -> Machine {
        let visible = match (self.visible, self.small) {
            (Kind::Binary | Kind::Spin, false) => 10,
            (Kind::Binary | Kind::Spin, true) | (_, false) => 6,
            (_, true) => 4,
        };
        if self.small {
            return self.blank_of(&[visible, 2, 1]);
        }
        let mut sizes = vec![visible];
        // Hidden units that are coupled are walked through once per row.
        let walked = self.hidden.is_some_and(|kind| kind.states().is_none());
        match (self.architecture, self.hidden) {
            (Architecture::Deep, _) => sizes.extend(if walked { [3, 1] } else { [3, 2] }),
            (Architecture::Unrestricted, _) if walked => sizes.push(2),
            (_, Some(_)) if walked => sizes.push(3),
            (_, Some(Kind::Potts { .. })) => sizes.push(3),
            (_, Some(_)) => sizes.push(4),
            (_, None) => {}
        }
        let cost = |sizes: &[usize]| self.blank_of(sizes).exact().cost().map_or(0.0, |(_, s)| s);
        // Two visible units at least, and one of each hidden layer.
        let least = |l: usize| if l == 0 { 2 } else { 1 };
        while cost(&sizes) > CHEAP && (0..sizes.len()).any(|l| sizes[l] > least(l)) {
            let smaller = (0..sizes.len()).filter(|&l| sizes[l] > least(l)).map(|l| {
                let mut fewer = sizes.clone();
                fewer[l] -= 1;
                fewer
            });
            sizes = smaller.min_by(|a, b| cost(a).total_cmp(&cost(b))).expect("a layer to make smaller");
        }
        self.blank_of(&sizes)
    }
}
