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
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.hidden.map(|h| format!(" {h}")).unwrap_or_default();
        f.pad(&format!("{} {}{hidden}", self.architecture, self.visible))
    }
}

/// All cells, or the few that a test can afford.
pub fn cells(small: bool) -> Vec<Cell> {
    use Architecture::{Deep, FullyVisible, Rbm, SemiRestricted, Unrestricted};
    let every =
        [Kind::Binary, Kind::Spin, Kind::Potts { q: 3 }, Kind::Gaussian, Kind::Relu, Kind::Drelu];
    let few = [Kind::Binary, Kind::Gaussian];
    let hidden: &[Kind] = if small { &few } else { &every };
    let joined: &[Architecture] = match small {
        true => &[Rbm, SemiRestricted],
        false => &[Rbm, SemiRestricted, Unrestricted, Deep],
    };
    let chosen = |kind: &Kind| {
        !small || matches!(kind, Kind::Binary | Kind::Potts { .. } | Kind::Gaussian | Kind::Poisson)
    };
    let mut cells = Vec::new();
    for visible in Kind::ALL.into_iter().filter(chosen) {
        cells.push(Cell { architecture: FullyVisible, visible, hidden: None });
        for &architecture in joined {
            cells.extend(hidden.iter().map(|&h| Cell { architecture, visible, hidden: Some(h) }));
        }
    }
    cells
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

    /// The blank machine of this cell, as large as enumeration allows.
    pub fn blank(&self) -> Machine {
        let mut sizes = vec![if matches!(self.visible, Kind::Binary | Kind::Spin) { 10 } else { 6 }];
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
