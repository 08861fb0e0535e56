//! The likelihood of independent columns: the floor for a trained machine.

use super::Data;
use super::init::{Marginals, fitted};
use crate::{Error, Kind, Layer, Machine, Real, Result, Role};
use ndarray::Array2;
use serde::{Deserialize, Serialize};

/// Independent units with the marginals of the training rows: a model without dependencies between columns. The value
/// of a machine is its gain over this model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Floor {
    layers: Vec<Column>,
}

/// The units of one visible layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Column {
    layer: usize,
    kind: Kind,
    /// A row for each of the kind's parameters.
    params: Vec<Vec<f64>>,
}

impl Floor {
    /// The floor for a machine that is trained on `data`.
    ///
    /// # Errors
    /// Data that do not hold the visible layers.
    pub fn new<T: Real>(machine: &Machine<T>, data: &Data<T>) -> Result<Self> {
        let column = |l: usize| {
            let kind = machine.layer(l).kind();
            let params = fitted::<f64>(kind, &Marginals::new(machine, data, l)?);
            Ok(Column {
                layer: l,
                kind,
                params: params.rows().into_iter().map(|r| r.to_vec()).collect(),
            })
        };
        Ok(Self { layers: machine.with_role(Role::Visible).map(column).collect::<Result<_>>()? })
    }

    /// $\sum\ln p(x_i)$ over the known entries of each row, offsets included.
    ///
    /// # Errors
    /// Data of other layers than the floor was made for.
    pub fn log_probability<T: Real>(&self, data: &Data<T>) -> Result<Vec<f64>> {
        let mut out = data.offsets().map_or_else(|| vec![0.0; data.rows()], <[f64]>::to_vec);
        for column in &self.layers {
            let layer = column.layer()?;
            let (width, c) = (layer.width(), column.kind.columns());
            let x = data.states().layer(column.layer)?;
            layer.cast::<T>().check_batch(x)?;
            let values = layer.cast::<T>().values(x);
            let known = data.known().get(column.layer).and_then(Option::as_ref);
            let units: Vec<Layer<f64>> = (0..layer.len()).map(|j| unit(&layer, j)).collect();
            let log_z: Vec<f64> =
                units.iter().map(|u| u.cgf_row(&vec![0.0; c], &mut vec![0.0; c])).collect();
            let mut t = vec![0.0; layer.params().nrows() * width];
            for (r, row) in values.rows().into_iter().enumerate() {
                let row = row.to_slice().expect("rows are contiguous");
                t.fill(0.0);
                layer.stats_row(row, 1.0, &mut t);
                for j in (0..layer.len()).filter(|&j| known.is_none_or(|k| k.get(r, j))) {
                    let cells =
                        (j * c..(j + 1) * c).flat_map(|i| (0..t.len() / width).map(move |k| (k, i)));
                    let energy: f64 =
                        cells.map(|(k, i)| t[k * width + i] * layer.params()[[k, i]]).sum();
                    out[r] += energy + units[j].log_measure_row(&row[j..=j]) - log_z[j];
                }
            }
        }
        Ok(out)
    }

    /// The weighted mean of [`log_probability`](Self::log_probability).
    ///
    /// # Errors
    /// As there.
    pub fn log_likelihood<T: Real>(&self, data: &Data<T>) -> Result<f64> {
        let rows = self.log_probability(data)?;
        let wt = |r: usize| data.wts().map_or(1.0, |w| w[r]);
        let total: f64 = (0..rows.len()).map(wt).sum();
        Ok(rows.iter().enumerate().map(|(r, x)| wt(r) * x).sum::<f64>() / total)
    }
}

impl Column {
    fn layer(&self) -> Result<Layer<f64>> {
        let columns = self.params.first().map_or(0, Vec::len);
        let numbers = self.params.concat();
        let params = Array2::from_shape_vec((self.params.len(), columns), numbers)
            .map_err(|_| Error::shape("parameters of the floor", columns, "rows of other lengths"))?;
        Layer::with_params(self.kind, params)
    }
}

/// Unit `j` of a layer as a layer.
fn unit(layer: &Layer<f64>, j: usize) -> Layer<f64> {
    let c = layer.kind().columns();
    let params =
        Array2::from_shape_fn((layer.params().nrows(), c), |(k, i)| layer.params()[[k, j * c + i]]);
    Layer::with_params(layer.kind(), params).expect("parameters of a sound layer")
}
