//! Safetensors: named tensors behind a JSON header.

use ::safetensors::{Dtype as Stored, SafeTensors};

use super::array::{Array, Dtype, Layout};
use super::container::Container;
use crate::{Error, Place, Result};

pub(crate) struct Tensors {
    place: Place,
    bytes: Vec<u8>,
    arrays: Vec<(String, Vec<usize>)>,
}

impl Tensors {
    pub(crate) fn open(bytes: Vec<u8>, place: &Place) -> Result<Self> {
        let tensors = parse(&bytes, place)?;
        let mut arrays: Vec<(String, Vec<usize>)> =
            tensors.iter().map(|(name, view)| (name.to_owned(), view.shape().to_vec())).collect();
        arrays.sort();
        Ok(Self { place: place.clone(), bytes, arrays })
    }
}

fn parse<'a>(bytes: &'a [u8], place: &Place) -> Result<SafeTensors<'a>> {
    SafeTensors::deserialize(bytes)
        .map_err(|e| Error::corrupt(place, format!("not a safetensors file: {e}")))
}

impl Container for Tensors {
    fn arrays(&self) -> &[(String, Vec<usize>)] {
        &self.arrays
    }

    fn read(&mut self, name: &str) -> Result<Array> {
        let place = self.place.clone().part(name);
        let tensors = parse(&self.bytes, &place)?;
        let view = tensors.tensor(name).map_err(|e| Error::corrupt(&place, e.to_string()))?;
        let dtype = match view.dtype() {
            Stored::BOOL => Dtype::Bool,
            Stored::U8 => Dtype::U8,
            Stored::U16 => Dtype::U16,
            Stored::U32 => Dtype::U32,
            Stored::U64 => Dtype::U64,
            Stored::I8 => Dtype::I8,
            Stored::I16 => Dtype::I16,
            Stored::I32 => Dtype::I32,
            Stored::I64 => Dtype::I64,
            Stored::F16 => Dtype::F16,
            Stored::BF16 => Dtype::BF16,
            Stored::F32 => Dtype::F32,
            Stored::F64 => Dtype::F64,
            other => {
                let what = format!("entries of type {other:?}");
                let hint = "save it as bool, an integer or a real type";
                return Err(Error::format(&place, what, hint));
            }
        };
        let layout = Layout::plain(dtype, view.shape().to_vec());
        Array::new(layout, view.data().to_vec(), 0, &place)
    }
}
