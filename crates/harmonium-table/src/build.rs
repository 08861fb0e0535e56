//! A machine for a table: which layers, which couplings.

use crate::layout::{Layout, Visible, largest, visible};
use crate::{Error, MachineConfig, MachineKind, Result};
use harmonium::{Coupling, Kind, Layer, Machine, Member, Role};
use harmonium_data::{self as hd, Schema, Table, Transform};
use ndarray::Array2;

/// Most hidden units that are chosen without being asked for.
const MANY: usize = 500;

/// The machine that `config` asks for, for the columns of a table, and how they sit in its layers. What `config` leaves
/// open is chosen; it is completed.
///
/// # Errors
/// Wishes that contradict each other or the table.
pub fn machine_for(config: &mut MachineConfig, table: &Table) -> Result<(Machine, Layout)> {
    let layers = |labels, counts| visible(table.schema(), &largest(table), labels, counts);
    let machine = join(config, layers)?;
    let layout = Layout::new(measured(table).into(), &machine)?;
    Ok((machine, layout))
}

/// The schema of a table, with a transform for every real column that was chosen on its rows.
pub fn measured(table: &Table) -> Schema {
    let mut schema = Schema::clone(table.schema());
    for block in table.blocks().iter().filter(|b| b.kind == hd::Kind::Real) {
        for (j, &place) in block.columns.iter().enumerate() {
            let values = (0..table.rows()).filter_map(|r| block.number(r, j));
            schema.columns[place].transform.get_or_insert_with(|| Transform::fit(values));
        }
    }
    schema
}

/// The machine that `config` asks for, on the visible layers that `layers` gives when it is told whether there is to be one
/// for the labels and what counts are. What `config` leaves open is chosen; it is completed.
///
/// # Errors
/// Wishes that contradict each other or the layers.
pub fn join(
    config: &mut MachineConfig,
    layers: impl FnOnce(bool, Option<Kind>) -> Result<Vec<Visible>>,
) -> Result<Machine> {
    let kind = config.kind.unwrap_or(match config.hidden.as_deref() {
        Some([]) | Some([0]) => MachineKind::FullyVisible,
        Some([_, _, ..]) => MachineKind::Deep,
        _ => MachineKind::Rbm,
    });
    let counts = config.counts.as_deref().map(count_kind).transpose()?;
    let visible = layers(kind == MachineKind::Class, counts)?;
    let units: usize = visible.iter().map(|v| v.units).sum();
    let hidden = hidden_units(config, kind, units)?;
    let hidden_kind = hidden_kind(config.hidden_kind.as_deref().unwrap_or("binary"))?;
    let given = visible.len();
    let mut members: Vec<Member<f32>> = Vec::new();
    for v in visible {
        members.push(Member { name: v.name, role: Role::Visible, layer: Layer::new(v.kind, v.units) });
    }
    for (i, &n) in hidden.iter().enumerate() {
        let name = if hidden.len() == 1 { "h".into() } else { format!("h{}", i + 1) };
        members.push(Member { name, role: Role::Hidden, layer: Layer::new(hidden_kind, n) });
    }
    let couplings: Vec<_> = pairs(kind, given, hidden.len())
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
    let lateral = [MachineKind::FullyVisible, MachineKind::SemiRestricted, MachineKind::Unrestricted];
    if lateral.contains(&kind) {
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
    Ok(match word {
        "binary" => Kind::Binary,
        "spin" => Kind::Spin,
        "gaussian" => Kind::Gaussian,
        "relu" => Kind::Relu,
        "drelu" => Kind::Drelu,
        _ => match word.strip_prefix("potts:").map(str::parse) {
            Some(Ok(q)) if q >= 2 => Kind::Potts { q },
            _ => return Err(wrong()),
        },
    })
}

fn count_kind(word: &str) -> Result<Kind> {
    match (word, word.strip_prefix("binomial:").map(str::parse)) {
        ("poisson", _) => Ok(Kind::Poisson),
        (_, Some(Ok(n))) if n >= 1 => Ok(Kind::Binomial { n }),
        _ => Err(Error::setting(
            "counts",
            word,
            "expected poisson, or binomial:N with the largest count N",
        )),
    }
}
