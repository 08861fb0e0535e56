//! An archive as bytes and as a file: every number bit for bit, any corruption detected.

use super::{Archive, Tensor};
use crate::container::{self, Array, Checked, Dtype, Reader, Writer};
use crate::{Error, Result};
use ndarray::Array2;
use std::path::Path;

const FORMAT: &str = "harmonium archive";
const VERSION: u32 = 1;

impl Archive {
    /// The archive as a safetensors file that ends with a checksum. Equal archives have equal bytes.
    ///
    /// # Errors
    /// [`Error::Format`] when an entry has a reserved name (`__metadata__`, `__checksum__`).
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.bytes().map_err(|why| Error::format("archive", why))
    }

    fn bytes(&self) -> Checked<Vec<u8>> {
        let text = [("format", FORMAT.into()), ("version", VERSION.to_string())];
        let mut out = Writer::new(text.map(|(key, text)| (key.into(), text)).into());
        for (name, tensor) in &self.tensors {
            match tensor {
                Tensor::F32(x) => put(&mut out, name, Dtype::F32, x, f32::to_le_bytes),
                Tensor::F64(x) => put(&mut out, name, Dtype::F64, x, f64::to_le_bytes),
                Tensor::U32(x) => put(&mut out, name, Dtype::U32, x, u32::to_le_bytes),
                Tensor::U64(x) => put(&mut out, name, Dtype::U64, x, u64::to_le_bytes),
            }
        }
        out.finish()
    }

    /// The archive that [`to_bytes`](Self::to_bytes) made these bytes of.
    ///
    /// # Errors
    /// [`Error::Format`] for any corruption, or for a format that this version does not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::parse(bytes).map_err(|why| Error::format("archive", why))
    }

    fn parse(bytes: &[u8]) -> Checked<Self> {
        let file = Reader::new(bytes)?;
        container::check_version(&file.text, FORMAT, VERSION)?;
        if !file.has_checksum {
            return Err("it has no checksum".into());
        }
        let tensors = file.arrays.into_iter().map(|(name, array)| {
            let tensor = tensor(&array).ok_or_else(|| format!("`{name}` is no matrix of numbers"));
            Ok((name, tensor?))
        });
        Ok(Self { tensors: tensors.collect::<Checked<_>>()? })
    }

    /// Writes the archive in place of what `path` held, in one step: a crash leaves the old file or the new.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be written; otherwise as [`to_bytes`](Self::to_bytes).
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.bytes().map_err(|why| Error::format(path, why))?;
        container::replace(path, &bytes)
    }

    /// Reads an archive that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is damaged or no archive.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::parse(&container::read(path)?).map_err(|why| Error::format(path, why))
    }
}

fn put<A: Copy, const N: usize>(
    out: &mut Writer,
    name: &str,
    dtype: Dtype,
    x: &Array2<A>,
    bytes: impl Fn(A) -> [u8; N],
) {
    let (rows, cols) = x.dim();
    out.put(name, dtype, &[rows, cols], x.iter().map(|&x| bytes(x)));
}

fn tensor(x: &Array<'_>) -> Option<Tensor> {
    let &[rows, cols] = &x.shape[..] else {
        return None;
    };
    let dim = (rows, cols);
    match x.dtype {
        Dtype::F32 => Some(Tensor::F32(matrix(dim, x.numbers(f32::from_le_bytes))?)),
        Dtype::F64 => Some(Tensor::F64(matrix(dim, x.numbers(f64::from_le_bytes))?)),
        Dtype::U32 => Some(Tensor::U32(matrix(dim, x.numbers(u32::from_le_bytes))?)),
        Dtype::U64 => Some(Tensor::U64(matrix(dim, x.numbers(u64::from_le_bytes))?)),
        Dtype::U8 | Dtype::Bool => None,
    }
}

/// `None` for dimensions that no array can have, such as 0 × 2⁶³.
fn matrix<A>(dim: (usize, usize), numbers: Vec<A>) -> Option<Array2<A>> {
    Array2::from_shape_vec(dim, numbers).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Layer, Machine};
    use ndarray::array;
    use proptest::prelude::*;

    fn archive() -> Archive {
        let mut a = Archive::default();
        let odd = f32::from_bits(0x7fc0_1234);
        a.put("chains/x", Tensor::F32(array![[1.5, -0.0], [odd, 1e-45]]));
        a.put("m", Tensor::F64(array![[f64::MIN_POSITIVE, -1e300, f64::INFINITY]]));
        a.put("codes", Tensor::U32(array![[1], [2], [u32::MAX]]));
        a.put_u64s("seed", &[u64::MAX, 0]);
        a.put("empty", Tensor::F64(Array2::zeros((0, 5))));
        a
    }

    #[test]
    fn round_trip_is_bit_exact_and_deterministic() {
        let bytes = archive().to_bytes().unwrap();
        let back = Archive::from_bytes(&bytes).unwrap();
        assert_eq!(back.to_bytes().unwrap(), bytes);
        let Tensor::F32(x) = back.get("chains/x").unwrap() else {
            panic!("single precision stays single precision");
        };
        assert_eq!(x[[1, 0]].to_bits(), 0x7fc0_1234);
        assert_eq!(back.u64s("seed").unwrap(), [u64::MAX, 0]);
        let Tensor::F64(x) = back.get("empty").unwrap() else {
            panic!("double precision stays double precision");
        };
        assert_eq!(x.dim(), (0, 5));
    }

    #[test]
    fn states_and_parameters_survive() {
        let (v, h) = (Layer::new(Kind::Spin, 70), Layer::new(Kind::Potts { q: 3 }, 2));
        let machine = Machine::<f32>::rbm(v, h);
        let mut a = Archive::default();
        a.put_states("chains", &machine.zeros(3));
        a.put_parameters("p", &machine.parameters());
        let b = Archive::from_bytes(&a.to_bytes().unwrap()).unwrap();
        assert_eq!(a, b);
        assert_eq!(b.states::<f32>("chains").unwrap(), machine.zeros(3));
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let bytes = archive().to_bytes().unwrap();
        for i in 0..bytes.len() {
            assert!(Archive::from_bytes(&bytes[..i]).is_err(), "cut at {i}");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[i] ^= 1 << bit;
                let found = Archive::from_bytes(&damaged);
                assert!(matches!(found, Err(Error::Format { .. })), "bit {bit} of {i}");
            }
        }
        let longer = [&bytes[..], &[0]].concat();
        assert!(Archive::from_bytes(&longer).is_err());
    }

    #[test]
    fn reserved_names_are_refused() {
        for name in ["__metadata__", "__checksum__"] {
            let mut a = Archive::default();
            a.put_u64s(name, &[1]);
            assert!(matches!(a.to_bytes(), Err(Error::Format { .. })), "{name}");
        }
    }

    #[test]
    fn save_replaces_and_load_names_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.archive");
        Archive::default().save(&path).unwrap();
        archive().save(&path).unwrap();
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes, archive().to_bytes().unwrap());
        std::fs::write(&path, &bytes[1..]).unwrap();
        let found = Archive::load(&path);
        assert!(matches!(found, Err(Error::Format { path: p, .. }) if p == path));
        let nowhere = directory.path().join("no/such/place");
        assert!(matches!(archive().save(&nowhere), Err(Error::Io { .. })));
        assert!(matches!(Archive::load(&nowhere), Err(Error::Io { .. })));
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Archive::from_bytes(&bytes).is_err());
        }
    }
}
