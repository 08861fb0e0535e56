//! Reading a machine from a model file: arrays that do not match its description are refused.

use super::describe::{CouplingInfo, Description, LayerInfo};
use crate::container::{self, Array, Checked, Dtype, Reader};
use crate::{Bits, Coupling, Error, Layer, Machine, Member, Real, Result};
use ndarray::Array2;
use std::path::Path;

impl<T: Real> Machine<T> {
    /// Reads a model file, of either precision: bit for bit when it is `T`'s, else rounded.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read; [`Error::Format`] when it is damaged, of a newer version, or not a
    /// machine.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        parse(&container::read(path)?).map_err(|why| Error::format(path, why))
    }

    /// The machine of a model file's bytes. Allocates a small multiple of their number at most.
    ///
    /// # Errors
    /// [`Error::Format`] as for [`load`](Self::load).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        parse(bytes).map_err(|why| Error::format("model", why))
    }
}

fn parse<T: Real>(bytes: &[u8]) -> Checked<Machine<T>> {
    let file = Reader::new(bytes)?;
    let arrays = file.arrays.iter().map(|(name, x)| (name.as_str(), (x.dtype, &x.shape[..])));
    let description = Description::parse(&file.text, &arrays.collect())?;
    let members = description.layers.iter().map(|info| layer(&file, info));
    let couplings = description.couplings.iter().map(|info| coupling(&file, info));
    let (members, couplings) = (members.collect::<Checked<_>>()?, couplings.collect::<Checked<_>>()?);
    Machine::new(members, couplings).map_err(|e| e.to_string())
}

fn layer<T: Real>(file: &Reader<'_>, info: &LayerInfo) -> Checked<Member<T>> {
    let names = info.kind.params();
    let params = names.iter().flat_map(|name| reals::<T>(&file.arrays[&info.array(name)]));
    let params = matrix(names.len(), info.units * info.kind.columns(), params.collect())?;
    let layer = Layer::with_params(info.kind, params);
    let layer = layer.map_err(|e| format!("layer `{}`: {e}", info.name))?;
    Ok(Member { name: info.name.clone(), role: info.role, layer })
}

fn coupling<T: Real>(file: &Reader<'_>, info: &CouplingInfo) -> Checked<Coupling<T>> {
    let because = |e: Error| format!("coupling `{}`: {e}", info.name);
    let array = &file.arrays[&info.array("w")];
    let (rows, cols) = (array.shape[0], array.shape[1]);
    let w = matrix(rows, cols, reals::<T>(array))?;
    if !info.mask {
        return Coupling::new(info.ends.0, info.ends.1, w).map_err(because);
    }
    // From here on there is an array of rows × cols bytes, so that a bit matrix is no larger.
    let mut mask = Bits::zeros(rows, cols);
    let bytes = file.arrays[&info.array("mask")].numbers(|[byte]| byte);
    for ((i, j), byte) in w.indexed_iter().map(|(at, _)| at).zip(bytes) {
        match byte {
            0 if w[[i, j]] != T::zero() => {
                let what = format!("coupling `{}`: the weight at ({i},{j})", info.name);
                return Err(format!("{what} is {}, but its mask has no such weight", w[[i, j]]));
            }
            0 => {}
            1 => mask.set(i, j, true),
            _ => return Err(format!("coupling `{}`: {byte} in its mask", info.name)),
        }
    }
    let coupling = Coupling::new(info.ends.0, info.ends.1, w).map_err(because)?;
    coupling.with_mask(mask).map_err(because)
}

fn reals<T: Real>(array: &Array<'_>) -> Vec<T> {
    match array.dtype {
        Dtype::F32 => array.numbers(|x| T::of(f64::from(f32::from_le_bytes(x)))),
        _ => array.numbers(|x| T::of(f64::from_le_bytes(x))),
    }
}

fn matrix<T>(rows: usize, cols: usize, x: Vec<T>) -> Checked<Array2<T>> {
    Array2::from_shape_vec((rows, cols), x).map_err(|e| format!("{rows}×{cols}: {e}"))
}
