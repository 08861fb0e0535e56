//! Named arrays, the content of checkpoints.

mod bytes;

use crate::{Batch, Bits, Error, Parameters, Real, Result, States};
use ndarray::Array2;
use std::collections::BTreeMap;

/// An array of any number type of states and parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum Tensor {
    /// Single precision.
    F32(Array2<f32>),
    /// Double precision.
    F64(Array2<f64>),
    /// Codes.
    U32(Array2<u32>),
    /// Packed bits, counters and seeds.
    U64(Array2<u64>),
}

/// Named arrays; names are paths with `/`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Archive {
    tensors: BTreeMap<String, Tensor>,
}

impl Archive {
    /// All arrays by name.
    pub fn tensors(&self) -> &BTreeMap<String, Tensor> {
        &self.tensors
    }

    /// Stores an array under a name.
    pub fn put(&mut self, name: impl Into<String>, tensor: Tensor) {
        self.tensors.insert(name.into(), tensor);
    }

    /// The array of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.tensors
            .get(name)
            .ok_or_else(|| Error::shape(format!("archive entry {name}"), "an array", "none"))
    }

    /// Stores real numbers in their own precision.
    pub fn put_reals<T: Real>(&mut self, name: impl Into<String>, x: &Array2<T>) {
        self.put(
            name,
            match T::NAME {
                "F32" => Tensor::F32(x.mapv(|x| x.f64() as f32)),
                _ => Tensor::F64(x.mapv(Real::f64)),
            },
        );
    }

    /// Real numbers, bit for bit when the precision is the one they were put in.
    ///
    /// # Errors
    /// When there are none of this name.
    pub fn reals<T: Real>(&self, name: &str) -> Result<Array2<T>> {
        match self.get(name)? {
            Tensor::F32(x) => Ok(x.mapv(|x| T::of(f64::from(x)))),
            Tensor::F64(x) => Ok(x.mapv(T::of)),
            _ => Err(Error::shape(format!("archive entry {name}"), "real numbers", "integers")),
        }
    }

    /// Stores double-precision numbers as one row.
    pub fn put_f64s(&mut self, name: impl Into<String>, x: &[f64]) {
        self.put(name, Tensor::F64(row(x)));
    }

    /// Double-precision numbers.
    ///
    /// # Errors
    /// When there are none of this name.
    pub fn f64s(&self, name: &str) -> Result<Vec<f64>> {
        Ok(self.reals::<f64>(name)?.into_iter().collect())
    }

    /// Stores counters or seeds as one row.
    pub fn put_u64s(&mut self, name: impl Into<String>, x: &[u64]) {
        self.put(name, Tensor::U64(row(x)));
    }

    /// Counters or seeds.
    ///
    /// # Errors
    /// When there are none of this name.
    pub fn u64s(&self, name: &str) -> Result<Vec<u64>> {
        match self.get(name)? {
            Tensor::U64(x) => Ok(x.iter().copied().collect()),
            _ => Err(Error::shape(format!("archive entry {name}"), "64-bit integers", "others")),
        }
    }

    /// Stores parameters, moments or an optimiser's vector.
    pub fn put_parameters<T: Real>(&mut self, name: &str, p: &Parameters<T>) {
        for (i, a) in p.arrays().enumerate() {
            self.put_reals(format!("{name}/{i}"), a);
        }
    }

    /// Parameters in the shape of `like`.
    ///
    /// # Errors
    /// When they are missing or of another shape.
    pub fn parameters<T: Real>(&self, name: &str, like: &Parameters<T>) -> Result<Parameters<T>> {
        let mut out = like.clone();
        for (i, a) in out.arrays_mut().enumerate() {
            let name = format!("{name}/{i}");
            let x = self.reals::<T>(&name)?;
            if x.dim() != a.dim() {
                return Err(Error::shape(name, format!("{:?}", a.dim()), format!("{:?}", x.dim())));
            }
            a.assign(&x);
        }
        Ok(out)
    }

    /// Stores the layers that `states` holds.
    pub fn put_states<T: Real>(&mut self, name: &str, states: &States<T>) {
        self.put_u64s(format!("{name}/shape"), &[states.len() as u64, states.rows() as u64]);
        for l in 0..states.len() {
            match states.get(l) {
                None => {}
                Some(Batch::Reals(x)) => self.put_reals(format!("{name}/{l}"), x),
                Some(Batch::Codes(x)) => self.put(format!("{name}/{l}"), Tensor::U32(x.clone())),
                Some(Batch::Bits(b)) => {
                    let words = Array2::from_shape_vec((b.rows(), b.stride()), b.words().to_vec());
                    self.put(format!("{name}/{l}"), Tensor::U64(words.expect("rows of words")));
                    self.put_u64s(format!("{name}/{l}/cols"), &[b.cols() as u64]);
                }
            }
        }
    }

    /// The states stored under this name.
    ///
    /// # Errors
    /// When they are missing or damaged.
    pub fn states<T: Real>(&self, name: &str) -> Result<States<T>> {
        let bad = |what: &str| Error::shape(format!("archive entry {name}"), what, "something else");
        let [layers, rows] = self.u64s(&format!("{name}/shape"))?[..] else {
            return Err(bad("layers and rows"));
        };
        let (layers, rows) = (layers as usize, rows as usize);
        if layers > 255 {
            return Err(bad("at most 255 layers"));
        }
        let mut states = States::empty(layers, rows);
        for l in 0..layers {
            let batch = match self.tensors.get(&format!("{name}/{l}")) {
                None => continue,
                Some(Tensor::U32(x)) => Batch::Codes(x.clone()),
                Some(Tensor::U64(x)) => {
                    let cols = self.u64s(&format!("{name}/{l}/cols"))?;
                    let cols = *cols.first().ok_or_else(|| bad("a number of columns"))? as usize;
                    let words = x.iter().copied().collect();
                    Batch::Bits(Bits::from_words(x.nrows(), cols, words)?)
                }
                Some(_) => Batch::Reals(self.reals(&format!("{name}/{l}"))?),
            };
            if batch.rows() != rows {
                return Err(bad("equally many rows in all layers"));
            }
            states.set(l, batch);
        }
        Ok(states)
    }

    /// The entries below `name/`, without that prefix.
    pub fn below(&self, name: &str) -> Self {
        let prefix = format!("{name}/");
        let tensors =
            self.tensors.iter().filter_map(|(k, t)| Some((k.strip_prefix(&prefix)?.into(), t.clone())));
        Self { tensors: tensors.collect() }
    }

    /// Stores all entries of `other` below `name/`.
    pub fn put_below(&mut self, name: &str, other: Self) {
        self.tensors.extend(other.tensors.into_iter().map(|(k, t)| (format!("{name}/{k}"), t)));
    }
}

fn row<A: Clone>(x: &[A]) -> Array2<A> {
    Array2::from_shape_vec((1, x.len()), x.to_vec()).expect("one row")
}
