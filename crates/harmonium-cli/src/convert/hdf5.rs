//! RBMs as HDF5: the checkpoints of `rbms`, and the files of RestrictedBoltzmannMachines.jl.

use super::{Foreign, ModelFormat, layer, parts, rbm};
use crate::error::{Failure, Result};
use harmonium::{Kind, Layer, Machine};
use harmonium_data::Holds;
use ndarray::{Array1, Array2};
use rust_hdf5::{ByteOrder, DatatypeMessage, H5File};
use std::path::Path;

/// Calls the library; its errors, and its panics on damaged files, become failures.
fn guarded<T>(path: &Path, call: impl FnOnce() -> rust_hdf5::Result<T>) -> Result<T> {
    let bad = |why: String| {
        Failure::new(format!("{}: HDF5: {why}; the file is damaged or holds no model", path.display()))
    };
    match harmonium_data::catch_panic(call) {
        Some(Ok(value)) => Ok(value),
        Some(Err(e)) => Err(bad(e.to_string())),
        None => Err(bad("not readable".into())),
    }
}

/// An open file with what is needed of it.
struct Reader<'p> {
    path: &'p Path,
    file: H5File,
    names: Vec<String>,
    length: u64,
}

impl Reader<'_> {
    fn bad(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {what}", self.path.display()))
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n == name)
    }

    /// Shape and numbers of a data set.
    fn array(&self, name: &str) -> Result<(Vec<usize>, Vec<f64>)> {
        if !self.has(name) {
            return Err(self.bad(format!("no data set {name:?}, which a model has")));
        }
        let set = guarded(self.path, || self.file.dataset(name))?;
        let shape = set.shape();
        let kind = guarded(self.path, || set.datatype())?;
        let each = match kind {
            DatatypeMessage::FloatingPoint { size: size @ (4 | 8), .. } => u64::from(size),
            _ => return Err(self.bad(format!("data set {name:?} holds no reals of 4 or 8 bytes"))),
        };
        let claimed = shape.iter().try_fold(each, |n, &k| n.checked_mul(k as u64));
        let holds = |n| guarded(self.path, || harmonium_data::hdf5_holds(&set, n, self.length));
        if claimed.map(holds).transpose()? != Some(Holds::All) {
            return Err(self.bad(format!("data set {name:?} is larger than what the file holds")));
        }
        let bytes = guarded(self.path, || set.read_raw_bytes())?;
        let numbers = match kind {
            DatatypeMessage::FloatingPoint { size: 4, byte_order, .. } => {
                words(&bytes, byte_order).map(|b| f32::from_le_bytes(b).into()).collect()
            }
            DatatypeMessage::FloatingPoint { size: 8, byte_order, .. } => {
                words(&bytes, byte_order).map(f64::from_le_bytes).collect()
            }
            _ => unreachable!("looked at above"),
        };
        Ok((shape, numbers))
    }

    fn text(&self, name: &str) -> Result<String> {
        if !self.has(name) {
            return Err(self.bad(format!("no data set {name:?}, which a model has")));
        }
        let words = guarded(self.path, || self.file.dataset(name)?.read_strings_lossy())?;
        Ok(words.into_iter().next().unwrap_or_default())
    }
}

/// Words of N bytes, the least significant byte first.
fn words<const N: usize>(bytes: &[u8], order: ByteOrder) -> impl Iterator<Item = [u8; N]> {
    let (words, _) = bytes.as_chunks::<N>();
    words.iter().map(move |&word| {
        let mut word = word;
        if order == ByteOrder::BigEndian {
            word.reverse();
        }
        word
    })
}

/// Reads a file of either program.
pub(super) fn read(path: &Path) -> Result<Foreign> {
    let length = std::fs::metadata(path).map_err(|e| Failure::io("read", path, &e))?.len();
    let (file, names) = guarded(path, || {
        let file = H5File::options().no_locking().open(path)?;
        let names = file.dataset_names();
        Ok((file, names))
    })?;
    let r = Reader { path, file, names, length };
    let machine = if r.has("rbm_type") { read_julia(&r)? } else { read_rbms(&r)? };
    Ok(machine.into())
}

/// The last saved update of an `rbms` checkpoint.
fn read_rbms(r: &Reader<'_>) -> Result<Machine<f64>> {
    let kind = r.text("model_type")?;
    let saved = r.names.iter().filter_map(|n| {
        let (group, rest) = n.strip_prefix("update_")?.split_once('/')?;
        (rest == "params/weight_matrix" || rest == "weight_matrix")
            .then_some((group.parse::<u64>().ok()?, n))
    });
    let (_, weights) = saved
        .max()
        .ok_or_else(|| r.bad("no saved update (no data set update_…/params/weight_matrix)"))?;
    let folder = weights.trim_end_matches("weight_matrix");
    let (shape, w) = r.array(weights)?;
    let (_, a) = r.array(&format!("{folder}vbias"))?;
    let (_, b) = r.array(&format!("{folder}hbias"))?;
    let (visible, hidden) = match (kind.as_str(), &shape[..]) {
        ("BBRBM", [_, _]) => (Kind::Binary, Kind::Binary),
        ("IIRBM", [_, _]) => (Kind::Spin, Kind::Spin),
        ("PBRBM", [_, q, _]) => (Kind::Potts { q: *q as u32 }, Kind::Binary),
        _ => {
            return Err(r.bad(format!(
                "model_type {kind:?} with weights of {} axes is not understood; expected BBRBM, PBRBM or IIRBM",
                shape.len()
            )));
        }
    };
    let nh = b.len();
    if a.len() * nh != w.len() {
        return Err(r.bad("weights and biases do not fit each other"));
    }
    let w = Array2::from_shape_vec((a.len(), nh), w).map_err(|e| r.bad(e))?;
    rbm(layer(visible, Array1::from(a))?, layer(hidden, Array1::from(b))?, w)
}

/// A layer of RestrictedBoltzmannMachines.jl: its axes are reversed, so that parameters are the last one.
fn julia_layer(r: &Reader<'_>, side: &str) -> Result<Layer<f64>> {
    let word = r.text(&format!("{side}_type"))?;
    let (shape, x) = r.array(&format!("{side}_par"))?;
    let kind = match (word.as_str(), &shape[..]) {
        ("Binary", _) => Kind::Binary,
        ("Spin", _) => Kind::Spin,
        ("Potts", [.., q, _]) => Kind::Potts { q: *q as u32 },
        ("Gaussian", _) => Kind::Gaussian,
        ("ReLU", _) => Kind::Relu,
        ("dReLU", _) => Kind::Drelu,
        _ => return Err(r.bad(format!("layers of type {word:?} are not supported"))),
    };
    let k = kind.params().len();
    if shape.last() != Some(&k) {
        return Err(
            r.bad(format!("{side}_par: {shape:?} does not end in {k} parameters of a {word} unit"))
        );
    }
    let params =
        Array2::from_shape_fn((k, x.len() / k), |(p, i)| match kind.params()[p].starts_with("gamma") {
            // Only the absolute value of γ counts there.
            true => x[i * k + p].abs(),
            false => x[i * k + p],
        });
    Ok(Layer::with_params(kind, params)?)
}

fn read_julia(r: &Reader<'_>) -> Result<Machine<f64>> {
    let (mut v, mut h) = (julia_layer(r, "visible")?, julia_layer(r, "hidden")?);
    let (_, w) = r.array("weights")?;
    if w.len() != v.width() * h.width() {
        return Err(r.bad("weights and layers do not fit each other"));
    }
    // Julia's (visible …, hidden …) arrives as (hidden, visible).
    let mut w = Array2::from_shape_vec((h.width(), v.width()), w).map_err(|e| r.bad(e))?.reversed_axes();
    let vector = |name: &str, n: usize, rest: f64| -> Result<Array1<f64>> {
        match r.has(name) {
            false => Ok(Array1::from_elem(n, rest)),
            true => Ok(Array1::from(r.array(name)?.1)),
        }
    };
    let (mu, lambda) = (vector("offset_v", v.width(), 0.0)?, vector("offset_h", h.width(), 0.0)?);
    let (s, t) = (vector("scale_v", v.width(), 1.0)?, vector("scale_h", h.width(), 1.0)?);
    if (mu.len(), lambda.len(), s.len(), t.len()) != (v.width(), h.width(), v.width(), h.width()) {
        return Err(r.bad("offsets or scales do not fit the layers"));
    }
    w.indexed_iter_mut().for_each(|((i, j), w)| *w /= s[i] * t[j]);
    // −(v−μ)ᵀW(h−λ) = −vᵀWh + (Wλ)ᵀv + (Wᵀμ)ᵀh + const: what is linear moves into every θ.
    shift(&mut v, &w.dot(&lambda));
    shift(&mut h, &w.t().dot(&mu));
    rbm(v, h, w.as_standard_layout().into_owned())
}

fn shift(layer: &mut Layer<f64>, by: &Array1<f64>) {
    let names = layer.kind().params();
    for (name, mut row) in names.iter().zip(layer.params_mut().rows_mut()) {
        if name.starts_with("theta") {
            row -= by;
        }
    }
}

/// The bytes of a file of either program.
pub(super) fn bytes(machine: &Machine<f64>, format: ModelFormat, path: &Path) -> Result<Vec<u8>> {
    let (v, h, w) = parts(machine).map_err(Failure::new)?;
    let dir = tempdir(path)?;
    let file = dir.join("model.h5");
    let written = guarded(path, || match format {
        ModelFormat::Rbms => write_rbms(&file, v, h, w),
        _ => write_julia(&file, v, h, w),
    });
    let bytes = written.and_then(|known| match known {
        true => std::fs::read(&file).map_err(|e| Failure::io("read", &file, &e)),
        false => Err(Failure::new(format!(
            "this format has no RBM of {} and {} units; rbms has binary, spin and Potts ones, \
             RestrictedBoltzmannMachines.jl no counts",
            v.kind(),
            h.kind()
        ))),
    });
    let _ = std::fs::remove_dir_all(&dir);
    bytes
}

/// A folder of our own beside the file to be written.
fn tempdir(path: &Path) -> Result<std::path::PathBuf> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let dir = parent.join(format!(".harmonium-{}", std::process::id()));
    std::fs::create_dir(&dir).map_err(|e| Failure::io("create", &dir, &e))?;
    Ok(dir)
}

fn write_rbms(path: &Path, v: &Layer<f64>, h: &Layer<f64>, w: &Array2<f64>) -> rust_hdf5::Result<bool> {
    let kind = match (v.kind(), h.kind()) {
        (Kind::Binary, Kind::Binary) => "BBRBM",
        (Kind::Spin, Kind::Spin) => "IIRBM",
        (Kind::Potts { .. }, Kind::Binary) => "PBRBM",
        _ => return Ok(false),
    };
    let file = H5File::create(path)?;
    scalar_text(&file, "model_type", kind)?;
    let q = v.kind().columns();
    let params = file.create_group("update_1")?.create_group("params")?;
    let (n, m) = (v.len(), h.len());
    let with_states = |mut shape: Vec<usize>| {
        if q > 1 {
            shape.insert(1, q);
        }
        shape
    };
    let single = |x: &mut dyn Iterator<Item = &f64>| x.map(|&x| x as f32).collect::<Vec<f32>>();
    let put = |name: &str, shape: Vec<usize>, x: Vec<f32>| {
        params.new_dataset::<f32>().shape(shape).create(name)?.write_raw(&x)
    };
    put("weight_matrix", with_states(vec![n, m]), single(&mut w.iter()))?;
    put("vbias", with_states(vec![n]), single(&mut v.params().iter()))?;
    put("hbias", vec![m], single(&mut h.params().iter()))?;
    Ok(true)
}

fn write_julia(path: &Path, v: &Layer<f64>, h: &Layer<f64>, w: &Array2<f64>) -> rust_hdf5::Result<bool> {
    let word = |kind: Kind| match kind {
        Kind::Binary => Some("Binary"),
        Kind::Spin => Some("Spin"),
        Kind::Potts { .. } => Some("Potts"),
        Kind::Gaussian => Some("Gaussian"),
        Kind::Relu => Some("ReLU"),
        Kind::Drelu => Some("dReLU"),
        _ => None,
    };
    let (Some(a), Some(b)) = (word(v.kind()), word(h.kind())) else { return Ok(false) };
    let file = H5File::create(path)?;
    scalar_text(&file, "rbm_hdf5_file_format_version", "1.0.0")?;
    scalar_text(&file, "rbm_type", "RBM")?;
    scalar_text(&file, "visible_type", a)?;
    scalar_text(&file, "hidden_type", b)?;
    let shape = |l: &Layer<f64>| match l.kind().columns() {
        1 => vec![l.len()],
        q => vec![l.len(), q],
    };
    for (name, l) in [("visible_par", v), ("hidden_par", h)] {
        let k = l.params().nrows();
        let mut dims = shape(l);
        dims.push(k);
        let x: Vec<f64> = (0..l.width()).flat_map(|i| (0..k).map(move |p| l.params()[[p, i]])).collect();
        file.new_dataset::<f64>().shape(dims).create(name)?.write_raw(&x)?;
    }
    let dims: Vec<usize> = shape(h).into_iter().chain(shape(v)).collect();
    let x: Vec<f64> = w.t().iter().copied().collect();
    file.new_dataset::<f64>().shape(dims).create("weights")?.write_raw(&x)?;
    Ok(true)
}

/// A text of its own, as a scalar.
fn scalar_text(file: &H5File, name: &str, text: &str) -> rust_hdf5::Result<()> {
    let text = format!("{text}\0");
    let size = text.len() as u32;
    let set =
        file.new_dataset::<u8>().datatype(DatatypeMessage::fixed_string(size)).scalar().create(name)?;
    set.write_raw_bytes(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_that_are_not_there_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.h5");
        let file = H5File::create(&path).unwrap();
        scalar_text(&file, "model_type", "BBRBM").unwrap();
        let params = file.create_group("update_1").unwrap().create_group("params").unwrap();
        let set = params.new_dataset::<f32>().shape([1 << 14, 1 << 14]).chunk(&[256, 256]).deflate(9);
        set.create("weight_matrix").unwrap().write_chunk(0, &vec![0; 1 << 18]).unwrap();
        drop((params, file));
        let Some(Failure::Failed(message)) = read(&path).err() else { panic!("an error is expected") };
        assert!(message.contains("larger than what the file holds"), "{message}");
    }
}
