//! A machine for a table: which layers, which couplings.

use crate::config::{MachineConfig, MachineKind};
use crate::error::{Failure, Result};
use crate::layout::{self, Layout};
use crate::output::nearest;
use harmonium::{Coupling, Kind, Layer, Machine, Member, Role};
use harmonium_data::Table;
use ndarray::Array2;

/// Most hidden units that are chosen without being asked for.
const MANY: usize = 500;

/// The machine that `config` asks for, with what it leaves open chosen; `config` is completed.
pub(crate) fn machine(config: &mut MachineConfig, table: &Table) -> Result<(Machine, Layout)> {
    let kind = config.kind.unwrap_or(match config.hidden.as_deref() {
        Some([]) | Some([0]) => MachineKind::FullyVisible,
        Some([_, _, ..]) => MachineKind::Deep,
        _ => MachineKind::Rbm,
    });
    let counts = config.counts.as_deref().map(count_kind).transpose()?;
    let visible = layout::visible(table, kind == MachineKind::Class, counts)?;
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
    let pairs = pairs(kind, given, hidden.len());
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
    let machine = Machine::new(members, couplings)?;
    let layout = Layout::new(table.schema().clone(), &machine)?;
    Ok((machine, layout))
}

fn hidden_units(config: &MachineConfig, kind: MachineKind, visible: usize) -> Result<Vec<usize>> {
    let hidden: Vec<usize> = match (&config.hidden, kind) {
        (None, MachineKind::FullyVisible) => vec![],
        (Some(h), MachineKind::FullyVisible) => h.iter().copied().filter(|&n| n > 0).collect(),
        (Some(h), _) => h.clone(),
        (None, MachineKind::Deep) => vec![chosen(visible), chosen(visible / 2)],
        (None, _) => vec![chosen(visible)],
    };
    let wrong = |what: &str| Err(Failure::usage(format!("--hidden {}: {what}", join(&hidden))));
    match (kind, hidden.len()) {
        _ if hidden.contains(&0) => wrong("a hidden layer has at least one unit"),
        (MachineKind::FullyVisible, 1..) => wrong("a fully visible machine has no hidden units"),
        (MachineKind::FullyVisible, 0) | (MachineKind::Deep, 2..) => Ok(hidden),
        (MachineKind::Deep, _) => {
            wrong("a deep machine has at least two hidden layers, as in --hidden 100,50")
        }
        (_, 1) => Ok(hidden),
        _ => wrong("one hidden layer is expected; several make a deep machine (--machine deep)"),
    }
}

/// Half as many hidden units again as visible ones: enough for small data, and not too slow for large ones.
fn chosen(visible: usize) -> usize {
    (visible + visible / 2).clamp(8, MANY)
}

fn join(numbers: &[usize]) -> String {
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
    const WORDS: [&str; 6] = ["binary", "spin", "gaussian", "relu", "drelu", "potts:3"];
    let wrong = || {
        let hint = match nearest(word, WORDS) {
            Some(near) => format!("did you mean {near}?"),
            None => format!("expected one of {}", WORDS.join(", ")),
        };
        Failure::usage(format!("--hidden-kind {word}: unknown kind of unit; {hint}"))
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
        _ => Err(Failure::usage(format!(
            "--counts {word}: expected poisson, or binomial:N with the largest count N"
        ))),
    }
}
