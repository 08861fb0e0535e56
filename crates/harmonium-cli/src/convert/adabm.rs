//! Fully visible Potts machines as the text of adabmDCA: `J i j a b x`, then `h i a x`.

use super::Foreign;
use crate::error::{Failure, Result};
use harmonium::{Coupling, Kind, Layer, Machine, Member, Role};
use harmonium_data::{Column, Schema};
use ndarray::{Array1, Array2};
use std::fmt::Write;
use std::path::Path;

/// Alphabets by their letters, the gap first.
const ALPHABETS: [&str; 3] = ["-ACDEFGHIKLMNPQRSTVWY", "-ACGU", "-ACGT"];
/// Most positions and states together: beyond, the weights would not fit into memory.
const LARGEST: usize = 1 << 16;

struct Line<'t> {
    number: usize,
    sites: [Option<usize>; 2],
    states: [&'t str; 2],
    value: f64,
}

fn lines(text: &str) -> Result<Vec<Line<'_>>, String> {
    let mut out = Vec::new();
    let told = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    for (number, line) in text.lines().enumerate().filter(|(_, line)| told(line)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let bad =
            || format!("line {}: got {line:?}, expected `J i j a b value` or `h i a value`", number + 1);
        let site = |w: &str| w.parse::<usize>().map_err(|_| bad());
        let value = |w: &str| w.parse::<f64>().ok().filter(|x| x.is_finite()).ok_or_else(bad);
        out.push(match words[..] {
            ["J", i, j, a, b, x] => {
                let sites = [Some(site(i)?), Some(site(j)?)];
                Line { number: number + 1, sites, states: [a, b], value: value(x)? }
            }
            ["h", i, a, x] => Line {
                number: number + 1,
                sites: [Some(site(i)?), None],
                states: [a, a],
                value: value(x)?,
            },
            _ => return Err(bad()),
        });
    }
    Ok(out)
}

/// The letters of the states: a known alphabet, else numbers, else the letters that occur.
fn alphabet(lines: &[Line<'_>]) -> Result<Vec<String>, String> {
    let mut seen: Vec<&str> = lines.iter().flat_map(|l| l.states).collect();
    seen.sort_unstable();
    seen.dedup();
    let known = ALPHABETS.iter().find(|a| seen.iter().all(|s| s.chars().count() == 1 && a.contains(*s)));
    // A protein family may lack letters, but rna and dna are told apart by theirs.
    let small =
        ALPHABETS[1..].iter().find(|a| seen.iter().all(|s| s.chars().count() == 1 && a.contains(*s)));
    if let Some(letters) = small.or(known) {
        return Ok(letters.chars().map(String::from).collect());
    }
    let numbers: Option<Vec<usize>> = seen.iter().map(|s| s.parse().ok()).collect();
    match numbers.and_then(|n| n.into_iter().max()) {
        Some(max) if max < 256 => Ok((0..=max).map(|a| a.to_string()).collect()),
        Some(max) => Err(format!("state {max}: more than 256 states")),
        None => Ok(seen.into_iter().map(str::to_owned).collect()),
    }
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<Foreign> {
    let text = std::fs::read_to_string(path).map_err(|e| Failure::io("read", path, &e))?;
    parse(&text).map_err(|what| Failure::new(format!("{}: {what}", path.display())))
}

fn parse(text: &str) -> Result<Foreign, String> {
    let lines = lines(text)?;
    let letters = alphabet(&lines)?;
    let q = letters.len();
    let sites = lines.iter().flat_map(|l| l.sites).flatten().max().map_or(0, |s| s.saturating_add(1));
    if sites == 0 {
        return Err("no parameters; the file is empty".into());
    }
    // Fields are written for every site and state, with some leniency for those that are zero: far more sites than lines
    // are a damaged line, and the weights take the square of their number.
    if sites.saturating_mul(q) > LARGEST.min(64 + 8 * lines.len()) {
        return Err(format!(
            "site {}: more than a file of {} lines can describe",
            sites - 1,
            lines.len()
        ));
    }
    let at = |i: usize, a: &str| i * q + letters.iter().position(|l| l == a).unwrap_or(0);
    let mut theta = Array1::zeros(sites * q);
    let mut u = Array2::zeros((sites * q, sites * q));
    for line in &lines {
        match line.sites {
            [Some(i), Some(j)] if i == j => {
                return Err(format!("line {}: site {i} coupled with itself", line.number));
            }
            [Some(i), Some(j)] => {
                let (a, b) = (at(i, line.states[0]), at(j, line.states[1]));
                u[[a, b]] = line.value;
                u[[b, a]] = line.value;
            }
            [Some(i), None] => theta[at(i, line.states[0])] = line.value,
            _ => {}
        }
    }
    let kind = Kind::Potts { q: q as u32 };
    let layer =
        Layer::with_params(kind, theta.insert_axis(ndarray::Axis(0))).map_err(|e| e.to_string())?;
    let member = Member { name: "v".into(), role: Role::Visible, layer };
    let coupling = Coupling::new(0, 0, u).map_err(|e| e.to_string())?;
    let machine = Machine::new(vec![member], vec![coupling]).map_err(|e| e.to_string())?;
    let categories: std::sync::Arc<[String]> = letters.into();
    // The columns of sequences as they are read from FASTA: a name, then the sites.
    let name = Column::new("name", harmonium_data::Kind::Ignore);
    let columns = (1..=sites).map(|i| {
        Column::new(format!("s{i}"), harmonium_data::Kind::Categorical)
            .with_categories(categories.clone())
    });
    let columns = std::iter::once(name).chain(columns);
    let schema = Schema { columns: columns.collect(), shape: None };
    Ok(Foreign { machine, schema: Some(schema) })
}

/// Writes a machine; zero couplings are left out.
pub(super) fn bytes(machine: &Machine<f64>, schema: &Schema) -> Result<Vec<u8>> {
    let (q, coupling) = match (machine.members(), machine.couplings()) {
        ([m], [c]) if m.role == Role::Visible && c.is_lateral() => match m.layer.kind() {
            Kind::Potts { q } => (q as usize, c),
            kind => return Err(wrong(&format!("{kind} units"))),
        },
        _ => return Err(wrong("other layers")),
    };
    let sites = machine.layer(0).len();
    // Names and the like may stand among the columns; the sites are the data columns in order.
    let columns: Vec<_> = schema.columns.iter().filter(|c| c.kind.is_data()).collect();
    let letter = |i: usize, a: usize| match columns.get(i).map(|c| &c.categories) {
        Some(names) if names.len() == q && names.iter().all(|n| n.chars().count() == 1) => {
            names[a].clone()
        }
        _ => a.to_string(),
    };
    let mut out = String::new();
    let u = coupling.w();
    for i in 0..sites {
        for j in i + 1..sites {
            for (a, b) in (0..q).flat_map(|a| (0..q).map(move |b| (a, b))) {
                let x = u[[i * q + a, j * q + b]];
                if x != 0.0 {
                    let _ = writeln!(out, "J {i} {j} {} {} {x}", letter(i, a), letter(j, b));
                }
            }
        }
    }
    for i in 0..sites {
        for a in 0..q {
            let _ =
                writeln!(out, "h {i} {} {}", letter(i, a), machine.layer(0).params()[[0, i * q + a]]);
        }
    }
    Ok(out.into_bytes())
}

fn wrong(what: &str) -> Failure {
    Failure::new(format!(
        "adabmDCA's text holds fully visible machines of Potts units; this one has {what} \
         (train one with `--machine fully-visible` on sequences)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back() {
        let text = "# a note\nJ 0 1 A C 0.5\nJ 0 2 - G -1.25\nh 0 A 0.1\nh 1 - 2\nh 2 U 3\n";
        let read = parse(text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(read.machine.layer(0).kind(), Kind::Potts { q: 5 });
        let again = bytes(&read.machine, read.schema.as_ref().unwrap()).unwrap();
        let back = parse(std::str::from_utf8(&again).unwrap()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(back.machine, read.machine);
    }

    #[test]
    fn damaged_lines_are_named() {
        for (text, part) in [
            ("h 0 A 1\nJ 0 1 A", "line 2"),
            ("J 3 3 A C 1", "itself"),
            ("h 99999999 A 1", "site 99999999"),
            ("h 18446744073709551615 A 1", "more than a file of 1 lines"),
            ("h 60 255 1", "site 60"),
            ("h 0 A nan", "line 1"),
            ("", "empty"),
        ] {
            let message = parse(text).err().unwrap();
            assert!(message.contains(part), "{message}");
        }
    }
}
