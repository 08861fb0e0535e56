//! Tables of conditional machines: the columns of the conditioning and of the visible layers side by side.

use crate::counts::CountUnits;
use crate::layout::unit_kind;
use crate::{Layout, Result};
use harmonium::{Bits, Data, Kind, Layer, Machine, Member, Role, States};
use harmonium_data::{self as hd, Schema, Table};
use ndarray::Array2;
use std::sync::Arc;

/// The columns of all layers that rows of a conditional machine give, in the order of the layers, named after their units:
/// `past0`, `past1`, …, `v0`, ….
///
/// # Errors
/// A layer that cannot stand alone.
pub fn given_schema(machine: &Machine) -> Result<Arc<Schema>> {
    let mut columns = Vec::new();
    for l in given(machine) {
        let member = Member { role: Role::Visible, ..machine.members()[l].clone() };
        let alone = Machine::new(vec![member], Vec::new())?;
        columns.extend(Layout::plain(&alone).schema.columns.iter().cloned());
    }
    Ok(Arc::new(Schema { columns, shape: None }))
}

/// The rows of a table with these columns as rows of the given layers.
///
/// # Errors
/// A table with other columns, values that a layer does not have.
pub fn given_data(machine: &Machine, table: &Table) -> Result<Data> {
    // A table has one block for all columns of a kind, whichever layer they belong to.
    let groups = table.schema().groups();
    let any_count = CountUnits { wish: Some(Kind::Poisson), bounded: false };
    let member = |(i, group): (usize, &hd::Group)| {
        let kind = unit_kind(group, &[], any_count);
        let layer = Layer::new(kind, group.columns.len());
        Member { name: format!("block{i}"), role: Role::Visible, layer }
    };
    let blocks = Machine::new(groups.iter().enumerate().map(member).collect(), Vec::new())?;
    let layout = Layout::new(table.schema().clone(), &blocks)?;
    let (states, known) = layout.states(&blocks, table)?;
    let values: Vec<Array2<f64>> = (0..blocks.len())
        .map(|g| Ok(blocks.layer(g).values(states.layer(g)?)))
        .collect::<Result<_>>()?;
    let rows = table.rows();
    let (mut out, mut gaps) = (States::empty(machine.len(), rows), Vec::new());
    let mut first = 0;
    for l in given(machine) {
        let layer = machine.layer(l);
        let place = |j: usize| layout.unit(first + j).expect("every column has a unit");
        let x = Array2::from_shape_fn((rows, layer.len()), |(r, j)| {
            let (block, unit) = place(j);
            values[block][[r, unit]]
        });
        out.set(l, layer.batch(x.view())?);
        let missing = |r: usize, j: usize| {
            let (block, unit) = place(j);
            known.iter().any(|(b, bits)| *b == block && !bits.get(r, unit))
        };
        if (0..rows).any(|r| (0..layer.len()).any(|j| missing(r, j))) {
            gaps.push((l, Bits::from_fn(rows, layer.len(), |r, j| !missing(r, j))));
        }
        first += layer.len();
    }
    let with = |data: Data, (l, known): (usize, Bits)| data.with_known(l, known);
    Ok(gaps.into_iter().try_fold(Data::new(out), with)?)
}

/// The layers that a row gives.
fn given(machine: &Machine) -> impl Iterator<Item = usize> + '_ {
    (0..machine.len()).filter(|&l| machine.role(l) != Role::Hidden)
}

#[cfg(test)]
mod tests {
    use super::*;
    use harmonium_data::{ReadOptions, read_csv};

    /// Two layers of bits and one of spins between them: the table has two blocks, the machine three layers.
    #[test]
    fn layers_of_one_kind_are_told_apart() {
        let member =
            |name: &str, role, kind, n| Member { name: name.into(), role, layer: Layer::new(kind, n) };
        let members = vec![
            member("past", Role::Condition, Kind::Binary, 2),
            member("s", Role::Visible, Kind::Spin, 1),
            member("v", Role::Visible, Kind::Binary, 1),
            member("h", Role::Hidden, Kind::Binary, 3),
        ];
        let machine: Machine = Machine::new(members, Vec::new()).unwrap();
        let schema = given_schema(&machine).unwrap();
        let names: Vec<_> = schema.columns.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["past0", "past1", "s0", "v0"]);
        let text = "past0,past1,s0,v0\n1,0,-1,1\n0,1,1,\n";
        let mut options = ReadOptions::default();
        options.overrides.set_kind("s0", hd::Kind::Spin);
        let table = read_csv(text.as_bytes(), "rows", &options).unwrap().train;
        let data = given_data(&machine, &table).unwrap();
        let (states, known) = (data.states(), data.known());
        let values = |l: usize| machine.layer(l).values(states.layer(l).unwrap());
        assert_eq!(values(0), ndarray::array![[1.0, 0.0], [0.0, 1.0]]);
        assert_eq!(values(1), ndarray::array![[-1.0], [1.0]]);
        assert_eq!(values(2)[[0, 0]], 1.0);
        assert!(known[0].is_none() && known[1].is_none());
        let bits = known[2].as_ref().unwrap();
        assert!(bits.get(0, 0) && !bits.get(1, 0));
    }
}
