//! How the columns of a table sit in the layers of a machine, and the way back.

use crate::counts::{CountUnits, Histogram, count_kind};
use crate::{Error, Result};
use harmonium::train::Data;
use harmonium::units::Form;
use harmonium::{Batch, Bits, Kind, Layer, Machine, Role, States};
use harmonium_data::{self as hd, Block, Column, Schema, Table, Transform, Values};
use ndarray::Array2;
use std::sync::Arc;

/// Which layer holds which columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// What the columns are.
    pub schema: Arc<Schema>,
    /// For each block of a table, its layer.
    pub layers: Vec<usize>,
    /// The layer of the label column, if the machine has one.
    pub labels: Option<usize>,
}

/// A visible layer to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Visible {
    /// Its name.
    pub name: String,
    /// What its units are.
    pub kind: Kind,
    /// How many there are.
    pub units: usize,
}

/// The visible layers for the columns of a schema: one for each of its groups, and one for the labels on request.
/// `seen` has the histograms of the columns of each group where they are counts, and nothing where they are not.
///
/// # Errors
/// No columns to learn from, or no label where one is needed.
pub fn visible(
    schema: &Schema,
    seen: &[Vec<Histogram>],
    labels: bool,
    counts: CountUnits,
) -> Result<Vec<Visible>> {
    let groups = schema.groups();
    let mut out = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        let name = match group.kind {
            _ if groups.len() == 1 => "v".to_owned(),
            hd::Kind::Categorical => format!("potts{}", group.states),
            kind => kind.name().to_owned(),
        };
        let seen = seen.get(i).map_or(&[][..], Vec::as_slice);
        out.push(Visible { name, kind: unit_kind(group, seen, counts), units: group.columns.len() });
    }
    if out.is_empty() {
        return Err(Error::Unfit("the table has no data columns, only labels or ignored ones".into()));
    }
    if labels {
        let column = schema.columns.iter().find(|c| c.kind == hd::Kind::Label).ok_or(Error::NoLabel)?;
        let q = column.categories.len() as u32;
        out.push(Visible { name: Machine::<f32>::LABELS.into(), kind: Kind::Potts { q }, units: 1 });
    }
    Ok(out)
}

pub(crate) fn unit_kind(group: &hd::Group, seen: &[Histogram], counts: CountUnits) -> Kind {
    match group.kind {
        hd::Kind::Spin => Kind::Spin,
        hd::Kind::Categorical => Kind::Potts { q: group.states.max(1) as u32 },
        hd::Kind::Real => Kind::Gaussian,
        hd::Kind::Count => counts.wish.unwrap_or_else(|| count_kind(seen, counts.bounded)),
        _ => Kind::Binary,
    }
}

/// The rows of a table that units of these kinds, one for each of its blocks in order, give probability 0: those with a category
/// that its column does not have ([`Table::impossible`]), or a count beyond the largest of its units.
pub fn impossible_rows(table: &Table, kinds: &[Kind]) -> Vec<usize> {
    let beyond = |r: usize| {
        table.blocks().iter().zip(kinds).any(|(block, kind)| match (block.kind, &block.values) {
            (hd::Kind::Count, Values::Codes(codes)) => {
                let beyond = |j: usize| kind.states().is_some_and(|n| codes.get(r, j) >= n);
                (0..block.cols()).any(|j| !block.is_missing(r, j) && beyond(j))
            }
            _ => false,
        })
    };
    (0..table.rows()).filter(|r| table.impossible().binary_search(r).is_ok() || beyond(*r)).collect()
}

/// A remark on the number of rows that an average leaves out because they are [`impossible`](Layout::impossible).
pub fn impossible_remark(rows: usize) -> Option<String> {
    let rows = match rows {
        0 => return None,
        1 => "1 row has".to_owned(),
        n => format!("{n} rows have"),
    };
    Some(format!(
        "{rows} a category or a count that no training row had: probability 0, left out of the mean"
    ))
}

impl Layout {
    /// The layout of a machine whose visible layers are the blocks of `schema` in order, with the labels
    /// in a layer `y` if there is one.
    pub fn new(schema: Arc<Schema>, machine: &Machine) -> Result<Self> {
        let groups = schema.groups();
        let visible: Vec<usize> = machine.with_role(Role::Visible).collect();
        let classes =
            schema.columns.iter().find(|c| c.kind == hd::Kind::Label).map(|c| c.categories.len());
        let labels = visible.iter().copied().find(|&l| {
            let m = &machine.members()[l];
            m.name == Machine::<f32>::LABELS
                && Some(m.layer.kind().columns()) == classes
                && m.layer.len() == 1
        });
        let layers: Vec<usize> = visible.into_iter().filter(|&l| Some(l) != labels).collect();
        let fits = layers.len() == groups.len()
            && layers.iter().zip(&groups).all(|(&l, group)| {
                let layer = machine.layer(l);
                layer.len() == group.columns.len() && kinds_fit(layer.kind(), group)
            });
        match fits {
            true => Ok(Self { schema, layers, labels }),
            false => Err(Error::Unfit("the schema in this file does not fit its machine".into())),
        }
    }

    /// Columns named after their units, for a machine that comes without a schema.
    pub fn plain(machine: &Machine) -> Self {
        let mut columns = Vec::new();
        for l in machine.with_role(Role::Visible) {
            let m = &machine.members()[l];
            let kind = column_kind(m.layer.kind());
            let states = m.layer.kind().one_hot().unwrap_or(0);
            let categories: Arc<[String]> = (0..states).map(|a| a.to_string()).collect();
            columns.extend((0..m.layer.len()).map(|i| {
                Column::new(format!("{}{i}", m.name), kind).with_categories(categories.clone())
            }));
        }
        let units = columns.len();
        let side = (units as f64).sqrt().round() as usize;
        // A square number of binary units is most often an image; nothing depends on it but pictures.
        let square = side * side == units && side > 3 && machine.with_role(Role::Visible).count() == 1;
        let schema = Schema { columns, shape: square.then_some([side, side]) };
        let layers = group_layers(&schema, machine);
        Self { schema: Arc::new(schema), layers, labels: None }
    }

    /// The rows of a table that the machine gives probability 0, as in [`impossible_rows`].
    pub fn impossible(&self, machine: &Machine, table: &Table) -> Vec<usize> {
        let kinds: Vec<Kind> = self.layers.iter().map(|&l| machine.layer(l).kind()).collect();
        impossible_rows(table, &kinds)
    }

    /// The rows of a table as training data, with weights and missing entries.
    pub fn data(&self, machine: &Machine, table: &Table) -> Result<Data> {
        let (states, known) = self.states(machine, table)?;
        let mut data = Data::new(states);
        if let Some(weights) = table.weights() {
            data = data.with_weights(weights.to_vec())?;
        }
        for (l, bits) in known {
            data = data.with_known(l, bits)?;
        }
        self.with_offsets(data)
    }

    /// The same rows with the Jacobian terms that turn their log-likelihoods into those of the table's units.
    fn with_offsets(&self, data: Data) -> Result<Data> {
        if self.schema.columns.iter().all(|c| c.transform.is_none()) {
            return Ok(data);
        }
        let offsets = self.log_slopes(data.states(), data.known());
        Ok(data.with_offsets(offsets)?)
    }

    /// As [`Layout::data`], but moves the entries out of the table where they have the form that training reads, so that
    /// large data are not held twice.
    pub fn take_data(&self, machine: &Machine, table: &mut Table) -> Result<Data> {
        let rows = table.rows();
        let mut taken = Vec::new();
        for (block, &l) in table.blocks_mut().iter_mut().zip(&self.layers) {
            let empty = Values::Bits(Bits::default());
            let values = std::mem::replace(&mut block.values, empty);
            taken.push((l, take(values, rows, &transforms(&self.schema, &block.columns))));
        }
        let known = |block: &Block| {
            let missing = block.missing.as_ref()?;
            Some(Bits::from_fn(rows, block.cols(), |r, j| !missing.get(r, j)))
        };
        let known: Vec<_> = table.blocks().iter().map(known).collect();
        let mut states = States::empty(machine.len(), rows);
        for ((l, batch), block) in taken.into_iter().zip(table.blocks()) {
            machine.layer(l).check_batch(&batch).map_err(|e| mismatch(&self.schema, block, e))?;
            states.set(l, batch);
        }
        let labels = self.set_labels(table, &mut states);
        let mut data = Data::new(states);
        if let Some(weights) = table.weights() {
            data = data.with_weights(weights.to_vec())?;
        }
        let of_blocks = self.layers.iter().zip(known).filter_map(|(&l, k)| Some((l, k?)));
        for (l, bits) in of_blocks.chain(labels) {
            data = data.with_known(l, bits)?;
        }
        self.with_offsets(data)
    }

    /// The labels as states, where the machine has a layer for them; which are known, where some are missing.
    fn set_labels(&self, table: &Table, states: &mut States) -> Option<(usize, Bits)> {
        let (l, rows) = (self.labels?, table.rows());
        let codes = table.labels().map(|labels| &labels.codes);
        let code = |r: usize| codes.map_or(hd::Labels::MISSING, |c| c[r]);
        let value = |r: usize| if code(r) == hd::Labels::MISSING { 0 } else { code(r) };
        states.set(l, Batch::Codes(Array2::from_shape_fn((rows, 1), |(r, _)| value(r))));
        let missing = (0..rows).any(|r| code(r) == hd::Labels::MISSING);
        missing.then(|| (l, Bits::from_fn(rows, 1, |r, _| code(r) != hd::Labels::MISSING)))
    }

    /// The rows of a table as states, and which entries of which layers are known where some are missing.
    pub fn states(&self, machine: &Machine, table: &Table) -> Result<(States, Vec<(usize, Bits)>)> {
        let rows = table.rows();
        let mut states = States::empty(machine.len(), rows);
        let mut known = Vec::new();
        for (block, &l) in table.blocks().iter().zip(&self.layers) {
            let layer = machine.layer(l);
            let batch = batch(block, rows, &transforms(&self.schema, &block.columns));
            layer.check_batch(&batch).map_err(|e| mismatch(&self.schema, block, e))?;
            states.set(l, batch);
            if let Some(missing) = &block.missing {
                let bits = Bits::from_fn(rows, block.cols(), |r, j| !missing.get(r, j));
                known.push((l, bits));
            }
        }
        known.extend(self.set_labels(table, &mut states));
        Ok((states, known))
    }

    /// The visible layers of some states as a table.
    pub fn table(&self, machine: &Machine, states: &States) -> Result<Table> {
        let rows = states.rows();
        let mut table = Table::zeros(self.schema.clone(), rows);
        for (block, &l) in table.blocks_mut().iter_mut().zip(&self.layers) {
            let maps = transforms(&self.schema, &block.columns);
            block.values = values(machine.layer(l), states.layer(l)?, &maps);
        }
        if let (Some(l), Some(column)) = (self.labels, self.label_column()) {
            let codes = match states.layer(l)? {
                Batch::Codes(codes) => codes.column(0).to_vec(),
                _ => return Err(Error::Unfit("the class layer does not hold classes".into())),
            };
            let categories = self.schema.columns[column].categories.clone();
            table.set_labels(Some(hd::Labels { column, categories, codes }))?;
        }
        Ok(table)
    }

    /// $\sum\ln(dz/dx)$ over the known measured entries of each row: the log-density in the
    /// user's numbers x less that in the machine's z. All zero where nothing is transformed.
    pub fn log_slopes(&self, states: &States, known: &[Option<Bits>]) -> Vec<f64> {
        let mut sums = vec![0.0; states.rows()];
        for (group, &l) in self.schema.groups().iter().zip(&self.layers) {
            let maps = transforms(&self.schema, &group.columns);
            let Some(Batch::Reals(z)) = states.get(l) else { continue };
            let known = known.get(l).and_then(Option::as_ref);
            for ((r, j), &z) in z.indexed_iter() {
                if let Some(map) = maps[j].filter(|_| known.is_none_or(|k| k.get(r, j))) {
                    sums[r] += map.log_slope(map.inverse(f64::from(z)));
                }
            }
        }
        sums
    }

    /// The unit's value for a number of the table, in the column at this place.
    pub fn seen(&self, place: usize, x: f64) -> f64 {
        self.schema.columns[place].transform.map_or(x, |map| map.forward(x))
    }

    /// The number of the table for a unit's value, in the column at this place.
    pub fn measured(&self, place: usize, z: f64) -> f64 {
        self.schema.columns[place].transform.map_or(z, |map| in_units(map, z))
    }

    /// Place of the label column in the schema.
    pub fn label_column(&self) -> Option<usize> {
        self.schema.columns.iter().position(|c| c.kind == hd::Kind::Label)
    }

    /// Layer and unit of the column at this place.
    pub fn unit(&self, place: usize) -> Option<(usize, usize)> {
        if self.label_column() == Some(place) {
            return self.labels.map(|l| (l, 0));
        }
        self.schema
            .groups()
            .iter()
            .zip(&self.layers)
            .find_map(|(group, &l)| group.columns.iter().position(|&c| c == place).map(|unit| (l, unit)))
    }

    /// Layer, unit and value for an entry of a column as it is written: the name of a category, or a number in the column's format.
    /// These are the arguments of [`Sample::clamp`](harmonium::tasks::Sample::clamp).
    ///
    /// # Errors
    /// [`Error::Entry`]: no column of this name that the machine has units for, or an entry that it cannot have.
    pub fn clamp<'m>(
        &self,
        machine: &'m Machine,
        column: &str,
        entry: &str,
    ) -> Result<(&'m str, usize, f64)> {
        let columns = &self.schema.columns;
        let found = self.schema.position(column).and_then(|p| self.unit(p).map(|u| (p, u)));
        let Some((place, (l, unit))) = found else {
            let hint = match hd::nearest(column, columns.iter().map(|c| c.name.as_str())) {
                Some(near) if near != column => format!("did you mean {near:?}?"),
                _ => {
                    format!("the columns are {} … {}", columns[0].name, columns[columns.len() - 1].name)
                }
            };
            return Err(Error::Entry(format!("the model has no column {column:?}; {hint}")));
        };
        let (kind, categories) = (machine.layer(l).kind(), &columns[place].categories);
        let code = categories.iter().position(|c| c == entry).map(|i| kind.value(i as u32));
        let number = code.or(columns[place].format.read(entry).filter(|_| categories.is_empty()));
        match number.filter(|&x| kind.allows(x)) {
            Some(x) => Ok((&machine.members()[l].name, unit, self.seen(place, x))),
            None => {
                let expected = match categories.is_empty() {
                    true => kind.allowed(),
                    false => format!("one of {}", categories.join(", ")),
                };
                Err(Error::Entry(format!("column {column:?} cannot be {entry:?}, expected {expected}")))
            }
        }
    }

    /// Height and width, when every row is an image.
    pub fn shape(&self) -> Option<[usize; 2]> {
        self.schema
            .shape
            .filter(|[h, w]| self.layers.len() == 1 && h * w == self.schema.groups()[0].columns.len())
    }
}

fn group_layers(schema: &Schema, machine: &Machine) -> Vec<usize> {
    // `plain` makes one group per layer unless two layers share a kind; then the first is taken.
    let visible: Vec<usize> = machine.with_role(Role::Visible).collect();
    visible.into_iter().take(schema.groups().len()).collect()
}

/// The kind of columns that units of a kind describe.
fn column_kind(kind: Kind) -> hd::Kind {
    match kind.form() {
        Form::Bits if kind.lowest() < 0.0 => hd::Kind::Spin,
        Form::Bits => hd::Kind::Binary,
        Form::Codes if kind.one_hot().is_some() => hd::Kind::Categorical,
        Form::Codes => hd::Kind::Count,
        Form::Reals => hd::Kind::Real,
    }
}

fn kinds_fit(kind: Kind, group: &hd::Group) -> bool {
    column_kind(kind) == group.kind && kind.one_hot().is_none_or(|q| q == group.states as u32)
}

fn mismatch(schema: &Schema, block: &Block, error: harmonium::Error) -> Error {
    let first = &schema.columns[block.columns[0]].name;
    Error::Unfit(format!(
        "columns of kind {} (from {first:?} on) do not fit the model: {error}",
        block.kind
    ))
}

fn batch(block: &Block, rows: usize, maps: &[Option<Transform>]) -> Batch<f32> {
    match &block.values {
        Values::Reals(reals) => singles(reals, rows, maps),
        values => take(values.clone(), rows, maps),
    }
}

/// The maps of some columns.
fn transforms(schema: &Schema, columns: &[usize]) -> Vec<Option<Transform>> {
    columns.iter().map(|&c| schema.columns[c].transform).collect()
}

/// The number of the table for a value of a unit, with the digits that single precision has: a ten-millionth of the spread.
fn in_units(map: Transform, z: f64) -> f64 {
    let x = map.inverse(z);
    let places = 6.0 + (map.log_slope(x) / std::f64::consts::LN_10).ceil();
    match places {
        p if (0.0..=300.0).contains(&p) => format!("{x:.*}", p as usize).parse().unwrap_or(x),
        p if p < 0.0 && p > -300.0 => (x / 10f64.powf(-p)).round() * 10f64.powf(-p),
        _ => x,
    }
}

/// A number as the machine sees it. Missing reals are NaN in a table; what stands there does not matter, but must be
/// finite, as must a number that is too large for single precision.
fn seen(x: f64, map: Option<Transform>) -> f32 {
    let z = map.map_or(x, |map| map.forward(x)) as f32;
    if z.is_nan() { 0.0 } else { z.clamp(f32::MIN, f32::MAX) }
}

fn singles(reals: &hd::Matrix<f64>, rows: usize, maps: &[Option<Transform>]) -> Batch<f32> {
    let x = reals.values().iter().zip(maps.iter().cycle()).map(|(&x, &map)| seen(x, map)).collect();
    Batch::Reals(Array2::from_shape_vec((rows, reals.cols()), x).expect("rows × cols values"))
}

/// The same, without a copy where the form is the same.
fn take(values: Values, rows: usize, maps: &[Option<Transform>]) -> Batch<f32> {
    match values {
        Values::Bits(bits) => Batch::Bits(bits),
        Values::Codes(codes) => {
            let cols = codes.cols();
            Batch::Codes(
                Array2::from_shape_vec((rows, cols), codes.into_values()).expect("rows × cols values"),
            )
        }
        Values::Singles(reals) => {
            let cols = reals.cols();
            let mut x =
                Array2::from_shape_vec((rows, cols), reals.into_values()).expect("rows × cols values");
            x.iter_mut().zip(maps.iter().cycle()).for_each(|(x, &map)| *x = seen(f64::from(*x), map));
            Batch::Reals(x)
        }
        Values::Reals(reals) => singles(&reals, rows, maps),
    }
}

fn values(layer: &Layer, batch: &Batch<f32>, maps: &[Option<Transform>]) -> Values {
    let (rows, cols) = (batch.rows(), layer.len());
    match batch {
        Batch::Bits(bits) => Values::Bits(bits.clone()),
        Batch::Codes(codes) => {
            let mut out = hd::Matrix::zeros(rows, cols);
            codes.indexed_iter().for_each(|((r, j), &x)| out.set(r, j, x));
            Values::Codes(out)
        }
        Batch::Reals(reals) if maps.iter().all(Option::is_none) => {
            let mut out = hd::Matrix::zeros(rows, cols);
            reals.indexed_iter().for_each(|((r, j), &x)| out.set(r, j, x));
            Values::Singles(out)
        }
        // Units of the source may need more digits than single precision has.
        Batch::Reals(reals) => {
            let mut out = hd::Matrix::zeros(rows, cols);
            let measured = |j: usize, z: f64| maps[j].map_or(z, |map| in_units(map, z));
            reals.indexed_iter().for_each(|((r, j), &z)| out.set(r, j, measured(j, f64::from(z))));
            Values::Reals(out)
        }
    }
}
