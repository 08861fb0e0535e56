//! Assembles batches: arrays that follow each other are checked and turned into states of a layer; bits may be drawn.

use crate::error::{raise, value};
use harmonium::sample::purpose;
use harmonium::units::Form;
use harmonium::{Batch, Bits, Key, Layer, Real, binary};
use ndarray::{Array2, ArrayView1, ArrayView2, Axis};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::PyAny;

/// Rows that are converted at a time, so that a large array of small numbers never becomes a large array of large ones.
const CHUNK: usize = 1024;

/// A batch that is being assembled.
pub(crate) struct Pieces<'a, T: Real> {
    layer: &'a Layer<T>,
    name: &'a str,
    known: Option<&'a Bits>,
    /// Whether values between 0 and 1 may stand for bits.
    soft: bool,
    rows: usize,
    words: Vec<u64>,
    codes: Vec<u32>,
    reals: Vec<T>,
}

impl<'a, T: Real> Pieces<'a, T> {
    pub(crate) fn new(layer: &'a Layer<T>, name: &'a str, known: Option<&'a Bits>, soft: bool) -> Self {
        let soft = soft && layer.kind().takes_soft_data();
        Self { layer, name, known, soft, rows: 0, words: vec![], codes: vec![], reals: vec![] }
    }

    pub(crate) fn push(&mut self, part: &Bound<'_, PyAny>) -> PyResult<()> {
        if let Ok(x) = part.extract::<PyReadonlyArray2<'_, u8>>() {
            self.add(x.as_array(), f64::from)
        } else if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f32>>() {
            self.add(x.as_array(), f64::from)
        } else if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f64>>() {
            self.add(x.as_array(), |x| x)
        } else {
            Err(value(self.name, "expected a 2-d array of uint8, float32 or float64"))
        }
    }

    /// As [`push`](Self::push) for a layer of bits, where an array with another value is left out and makes this false.
    pub(crate) fn push_bits(&mut self, part: &Bound<'_, PyAny>) -> PyResult<bool> {
        if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f64>>() {
            self.fits(x.as_array().ncols())?;
            Ok(self.pack(x.as_array(), |x| x))
        } else if let Ok(x) = part.extract::<PyReadonlyArray2<'_, f32>>() {
            self.fits(x.as_array().ncols())?;
            Ok(self.pack(x.as_array(), f64::from))
        } else {
            Err(value(self.name, "expected a 2-d array of float32 or float64"))
        }
    }

    /// As [`push`](Self::push) for a layer of soft bits, where an array with a value outside 0 … 1 makes this false.
    pub(crate) fn push_soft(&mut self, part: &Bound<'_, PyAny>) -> PyResult<bool> {
        let x = part.extract::<PyReadonlyArray2<'_, f32>>()?;
        self.fits(x.as_array().ncols())?;
        Ok(self.soften(x.as_array(), f64::from).is_none())
    }

    fn fits(&self, columns: usize) -> PyResult<()> {
        let n = self.layer.len();
        match columns == n {
            true => Ok(()),
            false => Err(value(self.name, format!("expected {n} columns, got {columns}"))),
        }
    }

    fn is_known(&self, row: usize, j: usize) -> bool {
        self.known.is_none_or(|k| row >= k.rows() || k.get(row, j))
    }

    /// Keeps rows of values from 0 to 1, and those before as such, too; stops at another value, which is returned with its
    /// place.
    fn soften<S: Copy>(
        &mut self,
        x: ArrayView2<'_, S>,
        number: impl Fn(S) -> f64,
    ) -> Option<(usize, usize, f64)> {
        let n = self.layer.len();
        for words in std::mem::take(&mut self.words).chunks_exact(n.div_ceil(64).max(1)) {
            self.reals.extend((0..n).map(|j| T::of((words[j / 64] >> (j % 64) & 1) as f64)));
        }
        self.reals.reserve(x.len());
        for row in x.rows() {
            let from = self.reals.len();
            self.reals.extend(row.iter().map(|&x| T::of(number(x))));
            // In the array's own precision: what is rounded to 1 may have been more.
            let inside = row.iter().fold(true, |all, &x| all & (0.0..=1.0).contains(&number(x)));
            if !inside || self.known.is_some() {
                for (j, &x) in row.iter().enumerate() {
                    if !self.is_known(self.rows, j) {
                        self.reals[from + j] = T::zero();
                    } else if !(0.0..=1.0).contains(&number(x)) {
                        return Some((self.rows, j, number(x)));
                    }
                }
            }
            self.rows += 1;
        }
        None
    }

    /// Packs all rows of a layer of bits; false, and nothing kept, for other layers and when there is another value.
    fn pack<S: Copy>(&mut self, x: ArrayView2<'_, S>, number: impl Fn(S) -> f64) -> bool {
        if self.layer.kind().form() != Form::Bits {
            return false;
        }
        let off = self.layer.kind().lowest();
        let before = self.words.len();
        self.words.reserve(x.nrows() * x.ncols().div_ceil(64));
        for row in x.rows() {
            if !pack_row(row, off, &number, &mut self.words) {
                self.words.truncate(before);
                return false;
            }
        }
        self.rows += x.nrows();
        true
    }

    fn add<S: Copy>(&mut self, x: ArrayView2<'_, S>, number: impl Fn(S) -> f64) -> PyResult<()> {
        let (kind, domain) = (self.layer.kind(), self.layer.kind().domain());
        self.fits(x.ncols())?;
        let refused = |row: usize, j: usize, x: f64, expected: &str| {
            let got = if x.is_nan() { "NaN".into() } else { x.to_string() };
            let why = format!("row {row}, column {j}: {got} is not allowed, expected {expected}");
            Err(value(self.name, why))
        };
        let was_soft = self.soft && !self.reals.is_empty();
        if !was_soft && self.known.is_none() && self.pack(x, &number) {
            return Ok(());
        }
        let state = |((r, j), &x): ((usize, usize), &S)| {
            !self.is_known(self.rows + r, j) || domain.contains(number(x))
        };
        if self.soft && (was_soft || !x.indexed_iter().all(state)) {
            return match self.soften(x, number) {
                Some((row, j, x)) => refused(row, j, x, "0 or 1, or a number between them"),
                None => Ok(()),
            };
        }
        for from in (0..x.nrows()).step_by(CHUNK) {
            let part = x.slice_axis(Axis(0), (from..(from + CHUNK).min(x.nrows())).into());
            let mut values = part.mapv(&number);
            for ((r, j), x) in values.indexed_iter_mut() {
                let row = self.rows + r;
                if !self.is_known(row, j) {
                    // The value of a missing entry is not used, but must be a state.
                    *x = kind.placeholder();
                } else if !domain.contains(*x) {
                    return refused(row, j, *x, &kind.allowed());
                }
            }
            self.rows += part.nrows();
            match self.layer.batch(values.view()).map_err(raise)? {
                Batch::Bits(b) => self.words.extend_from_slice(b.words()),
                Batch::Codes(c) => self.codes.extend(c.iter()),
                Batch::Reals(x) => self.reals.extend(x.iter()),
            }
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> PyResult<Batch<T>> {
        let shape = (self.rows, self.layer.len());
        let wrong = |e: ndarray::ShapeError| value(self.name, e);
        Ok(match self.layer.zeros(0) {
            Batch::Bits(_) if self.reals.is_empty() => {
                Batch::Bits(Bits::from_words(shape.0, shape.1, self.words).map_err(|e| raise(e.into()))?)
            }
            Batch::Codes(_) => Batch::Codes(Array2::from_shape_vec(shape, self.codes).map_err(wrong)?),
            _ => Batch::Reals(Array2::from_shape_vec(shape, self.reals).map_err(wrong)?),
        })
    }
}

/// Appends the bits of a row: 1 is set, `off` is not; false at another value.
fn pack_row<S: Copy>(
    row: ArrayView1<'_, S>,
    off: f64,
    number: impl Fn(S) -> f64,
    words: &mut Vec<u64>,
) -> bool {
    let word = |x: &[S]| {
        let (mut word, mut fine) = (0u64, true);
        for (j, &x) in x.iter().enumerate() {
            let (on, x) = (number(x) == 1.0, number(x));
            word |= u64::from(on) << j;
            fine &= on | (x == off);
        }
        (word, fine)
    };
    let mut all = true;
    let mut push = |x: &[S]| {
        let (bits, fine) = word(x);
        words.push(bits);
        all &= fine;
    };
    match row.as_slice() {
        Some(row) => row.chunks(64).for_each(&mut push),
        None => row.axis_chunks_iter(Axis(0), 64).for_each(|x| push(&x.to_vec())),
    }
    all
}

/// Words of bits that are 1 with the given probabilities: `times` draws of all rows, one draw after the other. `part` tells
/// apart the parts of one array.
pub(crate) fn draw(p: ArrayView2<'_, f32>, part: u64, times: u64, seed: u64) -> Vec<u64> {
    let layer: Layer<f32> = binary(p.ncols());
    let logits = p.as_standard_layout().mapv(|p| {
        let p = f64::from(p.clamp(0.0, 1.0));
        (p / (1.0 - p)).ln() as f32
    });
    let mut batch = layer.zeros(p.nrows());
    let mut words = Vec::new();
    for t in 0..times {
        let key = Key { seed, purpose: purpose::USER, block: 0, sweep: part * times + t };
        layer.sample_into(&logits, key, &mut batch);
        if let Batch::Bits(bits) = &batch {
            words.extend_from_slice(bits.words());
        }
    }
    words
}
