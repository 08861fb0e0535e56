//! A machine for a table: which layers, which couplings.

use crate::counts::{CountUnits, histograms};
use crate::layout::{Layout, Visible, visible};
use crate::{Error, MachineConfig, MachineKind, Result, fit_transforms};
use harmonium::{Coupling, Kind, Layer, Machine, Member, Role};
use harmonium_data::{self as hd, Schema, Table};
use ndarray::Array2;

/// Most real columns that are coupled to each other by default, so that hidden units need not model their covariance.
/// With more of them its factorisation would cost more than the rest of an update.
const MEASURED: usize = 200;
/// Machines with couplings between visible units.
const LATERAL: [MachineKind; 3] =
    [MachineKind::FullyVisible, MachineKind::SemiRestricted, MachineKind::Unrestricted];

/// Most hidden units that are chosen by default.
const MANY: usize = 500;

/// The machine for `config` and the columns of a table, and which layer holds which column. Unset fields of `config` get
/// their defaults, in place.
///
/// # Errors
/// Settings that contradict each other or the table.
pub fn machine_for(config: &mut MachineConfig, table: &Table) -> Result<(Machine, Layout)> {
    let layers = |labels, counts| visible(table.schema(), &histograms(table), labels, counts);
    let machine = join(config, layers)?;
    let layout = Layout::new(measured(table).into(), &machine)?;
    Ok((machine, layout))
}

/// The schema of a table, with a transform for every real column, fitted to its rows.
pub fn measured(table: &Table) -> Schema {
    let mut schema = Schema::clone(table.schema());
    for block in table.blocks().iter().filter(|b| b.kind == hd::Kind::Real) {
        let number = |(r, j)| block.number(r, j).unwrap_or(f64::NAN);
        let x = Array2::from_shape_fn((table.rows(), block.cols()), number);
        for (&place, map) in block.columns.iter().zip(fit_transforms(x.view())) {
            schema.columns[place].transform.get_or_insert(map);
        }
    }
    schema
}

/// The machine for `config`, on the visible layers that `layers` makes, given whether the labels get one and how counts are
/// to be modelled. Unset fields of `config` get their defaults, in place.
///
/// # Errors
/// Settings that contradict each other or the layers.
pub fn join(
    config: &mut MachineConfig,
    layers: impl FnOnce(bool, CountUnits) -> Result<Vec<Visible>>,
) -> Result<Machine> {
    let hidden_kind = hidden_kind(config.hidden_kind.as_deref().unwrap_or("binary"))?;
    let requested = config.kind.or(match config.hidden.as_deref() {
        Some([]) | Some([0]) => Some(MachineKind::FullyVisible),
        Some([_, _, ..]) => Some(MachineKind::Deep),
        _ => None,
    });
    let counts = CountUnits {
        wish: config.counts.as_deref().map(count_kind).transpose()?,
        bounded: requested.is_some_and(|k| LATERAL.contains(&k)) || hidden_kind.states().is_none(),
    };
    let visible = layers(requested == Some(MachineKind::Class), counts)?;
    let measured = |v: &Visible| v.kind.is_normal() && (2..=MEASURED).contains(&v.units);
    let kind = requested.unwrap_or(match visible.iter().any(measured) {
        true => MachineKind::CoupledReals,
        false => MachineKind::Rbm,
    });
    let units: usize = visible.iter().map(|v| v.units).sum();
    let hidden = hidden_units(config, kind, units)?;
    let given = visible.len();
    let mut pairs = pairs(kind, given, hidden.len());
    if kind == MachineKind::CoupledReals {
        let reals = (0..given).filter(|&v| visible[v].kind.is_normal());
        pairs.extend(reals.map(|v| (v, v)));
    }
    let sizes = visible.iter().map(|v| (v.kind, v.units));
    let sizes: Vec<_> = sizes.chain(hidden.iter().map(|&n| (hidden_kind, n))).collect();
    Machine::<f32>::check_size(&sizes, &pairs)?;
    let mut members: Vec<Member<f32>> = Vec::new();
    for v in visible {
        members.push(Member { name: v.name, role: Role::Visible, layer: Layer::new(v.kind, v.units) });
    }
    for (i, &n) in hidden.iter().enumerate() {
        let name = if hidden.len() == 1 { "h".into() } else { format!("h{}", i + 1) };
        members.push(Member { name, role: Role::Hidden, layer: Layer::new(hidden_kind, n) });
    }
    let couplings: Vec<_> = pairs
        .into_iter()
        .map(|(a, b)| {
            let shape = (members[a].layer.width(), members[b].layer.width());
            Coupling::new(a, b, Array2::zeros(shape))
        })
        .collect::<Result<_, _>>()?;
    if kind == MachineKind::Deep {
        config.pretrain.get_or_insert(true);
    }
    config.kind = Some(kind);
    config.hidden = Some(hidden);
    config.hidden_kind.get_or_insert_with(|| "binary".into());
    Ok(Machine::new(members, couplings)?)
}

fn hidden_units(config: &MachineConfig, kind: MachineKind, visible: usize) -> Result<Vec<usize>> {
    let hidden: Vec<usize> = match (&config.hidden, kind) {
        (None, MachineKind::FullyVisible) => vec![],
        (Some(h), MachineKind::FullyVisible) => h.iter().copied().filter(|&n| n > 0).collect(),
        (Some(h), _) => h.clone(),
        (None, MachineKind::Deep) => vec![chosen(visible), chosen(visible / 2)],
        (None, _) => vec![chosen(visible)],
    };
    let wrong = |what: &str| Err(Error::setting("hidden", comma(&hidden), what));
    match (kind, hidden.len()) {
        _ if hidden.contains(&0) => wrong("a hidden layer has at least one unit"),
        (MachineKind::FullyVisible, 1..) => wrong("a fully visible machine has no hidden units"),
        (MachineKind::FullyVisible, 0) | (MachineKind::Deep, 2..) => Ok(hidden),
        (MachineKind::Deep, _) => wrong("a deep machine has at least two hidden layers, as in 100,50"),
        (_, 1) => Ok(hidden),
        _ => wrong("one hidden layer is expected; several make a deep machine"),
    }
}

/// Half as many hidden units again as visible ones: enough for small data, and not too slow for large ones.
fn chosen(visible: usize) -> usize {
    (visible + visible / 2).clamp(8, MANY)
}

fn comma(numbers: &[usize]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The couplings, as pairs of layers: `given` visible ones first, then the hidden ones.
fn pairs(kind: MachineKind, given: usize, hidden: usize) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    if hidden > 0 {
        pairs.extend((0..given).map(|v| (v, given)));
        pairs.extend((1..hidden).map(|h| (given + h - 1, given + h)));
    }
    if LATERAL.contains(&kind) {
        pairs.extend((0..given).flat_map(|a| (a..given).map(move |b| (a, b))));
    }
    if kind == MachineKind::Unrestricted {
        pairs.push((given, given));
    }
    pairs
}

fn hidden_kind(word: &str) -> Result<Kind> {
    static WORDS: [&str; 6] = ["binary", "spin", "gaussian", "relu", "drelu", "potts:3"];
    let wrong = || Error::Setting {
        name: "hidden_kind",
        value: word.into(),
        why: "unknown kind of unit".into(),
        known: &WORDS,
    };
    let kind: Kind = word.parse().map_err(|_| wrong())?;
    // Hidden counts run away, and a Potts unit of one state does nothing.
    let fits = !kind.is_count() && kind.one_hot().is_none_or(|q| q >= 2);
    fits.then_some(kind).ok_or_else(wrong)
}

fn count_kind(word: &str) -> Result<Kind> {
    let kind = word.parse().ok().filter(|kind: &Kind| kind.is_count());
    let known = "expected poisson, binomial:N or ordinal:N with the largest count N (for ordinal at most 1023), or \
                 neg_binomial:R:N with the shape R in sixteenths, as 0.25, 1.5 or 8";
    kind.ok_or_else(|| Error::setting("counts", word, known))
}
