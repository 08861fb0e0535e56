//! Configurations in their natural form: bits, codes or reals, one row per chain or data point.

use crate::{Error, Real, Result};
pub use harmonium_kernels::Bits;
use harmonium_kernels::{bits, prefetch};
use ndarray::Array2;

/// One layer's configurations, a row each.
#[derive(Debug, PartialEq)]
pub enum Batch<T> {
    /// Binary ({0,1}) and Spin (bit 1 is +1, bit 0 is −1).
    Bits(Bits),
    /// Potts states and counts.
    Codes(Array2<u32>),
    /// Real units.
    Reals(Array2<T>),
}

impl<T: Clone> Clone for Batch<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Bits(b) => Self::Bits(b.clone()),
            Self::Codes(c) => Self::Codes(c.clone()),
            Self::Reals(x) => Self::Reals(x.clone()),
        }
    }
    /// Reuses the memory that `self` has.
    fn clone_from(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Bits(to), Self::Bits(from)) => to.clone_from(from),
            (Self::Codes(to), Self::Codes(from)) => to.clone_from(from),
            (Self::Reals(to), Self::Reals(from)) => to.clone_from(from),
            _ => *self = other.clone(),
        }
    }
}

impl<T: Real> Batch<T> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Bits(b) => b.rows(),
            Self::Codes(c) => c.nrows(),
            Self::Reals(x) => x.nrows(),
        }
    }

    /// Number of units.
    pub fn cols(&self) -> usize {
        match self {
            Self::Bits(b) => b.cols(),
            Self::Codes(c) => c.ncols(),
            Self::Reals(x) => x.ncols(),
        }
    }

    /// The given rows, in the given order (repetition allowed).
    ///
    /// # Panics
    /// If a row does not exist.
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Bits(b) => Self::Bits(b.select(rows)),
            Self::Codes(c) => Self::Codes(c.select(ndarray::Axis(0), rows)),
            Self::Reals(x) => {
                let mut out = Array2::zeros((0, 0));
                select_rows(x, rows, &mut out);
                Self::Reals(out)
            }
        }
    }

    /// [`select`](Self::select) that reuses the memory of `out` where it has the same form.
    fn select_into(&self, rows: &[usize], out: &mut Self) {
        match (self, &mut *out) {
            (Self::Bits(b), Self::Bits(out)) => b.select_into(rows, out),
            (Self::Reals(x), Self::Reals(out)) => select_rows(x, rows, out),
            _ => *out = self.select(rows),
        }
    }

    /// Exchanges row `r` with row `s` of `other`, a batch of the same layer.
    pub(crate) fn swap_row(&mut self, r: usize, other: &mut Self, s: usize) {
        match (self, other) {
            (Self::Bits(a), Self::Bits(b)) => a.row_mut(r).swap_with_slice(b.row_mut(s)),
            (Self::Codes(a), Self::Codes(b)) => swap_rows(a, r, b, s),
            (Self::Reals(a), Self::Reals(b)) => swap_rows(a, r, b, s),
            _ => panic!("a layer's batches have one form"),
        }
    }

    /// All rows of the given batches of one layer, in order.
    fn stack(parts: &[&Self]) -> Self {
        fn rows<A: Clone>(parts: Vec<&Array2<A>>) -> Array2<A> {
            let views: Vec<_> = parts.iter().map(|x| x.view()).collect();
            ndarray::concatenate(ndarray::Axis(0), &views).expect("equally many columns")
        }
        let other = "a layer's batches have one form";
        match parts[0] {
            Self::Bits(first) => {
                let mut all = first.clone();
                parts[1..].iter().for_each(|p| match p {
                    Self::Bits(b) => all.append(b),
                    _ => panic!("{other}"),
                });
                Self::Bits(all)
            }
            Self::Codes(_) => {
                let codes = parts.iter().map(|p| match p {
                    Self::Codes(c) => c,
                    _ => panic!("{other}"),
                });
                Self::Codes(rows(codes.collect()))
            }
            Self::Reals(_) => {
                let reals = parts.iter().map(|p| match p {
                    Self::Reals(x) => x,
                    _ => panic!("{other}"),
                });
                Self::Reals(rows(reals.collect()))
            }
        }
    }

    /// Row i of `from` becomes row `rows[i]`.
    pub(crate) fn scatter(&mut self, rows: &[usize], from: &Self) {
        match (self, from) {
            (Self::Bits(to), Self::Bits(from)) => {
                for (i, &r) in rows.iter().enumerate() {
                    to.row_mut(r).copy_from_slice(from.row(i));
                }
            }
            (Self::Codes(to), Self::Codes(from)) => {
                for (i, &r) in rows.iter().enumerate() {
                    to.row_mut(r).assign(&from.row(i));
                }
            }
            (Self::Reals(to), Self::Reals(from)) => {
                for (i, &r) in rows.iter().enumerate() {
                    to.row_mut(r).assign(&from.row(i));
                }
            }
            _ => panic!("a layer's batches have one form"),
        }
    }

    /// Copies the units of `from` whose bit in `mask` is set; the others stay as they are.
    pub(crate) fn copy_masked(&mut self, from: &Self, mask: &Bits) {
        match (self, from) {
            (Self::Bits(to), Self::Bits(from)) => {
                for ((t, f), m) in to.words_mut().iter_mut().zip(from.words()).zip(mask.words()) {
                    *t = *t & !m | f & m;
                }
            }
            (Self::Codes(to), Self::Codes(from)) => copy_where(to, from, mask),
            (Self::Reals(to), Self::Reals(from)) => copy_where(to, from, mask),
            _ => panic!("a layer's batches have one form"),
        }
    }
}

/// The same as ndarray's `select`, which copies element by element.
fn select_rows<T: Real>(x: &Array2<T>, rows: &[usize], selected: &mut Array2<T>) {
    // Rows in random order miss the cache unless they are prefetched.
    const AHEAD: usize = 2;
    let (data, n) = (x.as_slice().expect("reals are in standard layout"), x.ncols());
    let mut out = std::mem::take(selected).into_raw_vec_and_offset().0;
    out.clear();
    out.reserve(rows.len() * n);
    for (i, &r) in rows.iter().enumerate() {
        if let Some(&soon) = rows.get(i + AHEAD) {
            let line = 64 / size_of::<T>();
            (0..n + line - 1).step_by(line).for_each(|j| prefetch(data, soon * n + j));
        }
        out.extend_from_slice(&data[r * n..(r + 1) * n]);
    }
    *selected = Array2::from_shape_vec((rows.len(), n), out).expect("rows × n numbers");
}

fn swap_rows<A>(a: &mut Array2<A>, r: usize, b: &mut Array2<A>, s: usize) {
    let mut b = b.row_mut(s);
    for (a, b) in a.row_mut(r).iter_mut().zip(b.iter_mut()) {
        std::mem::swap(a, b);
    }
}

fn copy_where<A: Copy>(to: &mut Array2<A>, from: &Array2<A>, mask: &Bits) {
    for r in 0..mask.rows() {
        for j in bits::ones(mask.row(r)) {
            to[[r, j]] = from[[r, j]];
        }
    }
}

/// The configurations of a machine: a [`Batch`] for each layer that is held, all with equally many rows.
///
/// Data hold the visible layers only; a chain holds the layers that its next sweep reads.
#[derive(Debug, PartialEq)]
pub struct States<T = f32> {
    layers: Vec<Option<Batch<T>>>,
    rows: usize,
}

impl<T: Clone> Clone for States<T> {
    fn clone(&self) -> Self {
        Self { layers: self.layers.clone(), rows: self.rows }
    }
    /// Reuses the memory that `self` has.
    fn clone_from(&mut self, other: &Self) {
        self.rows = other.rows;
        self.layers.clone_from(&other.layers);
    }
}

impl<T: Real> States<T> {
    /// States of a machine with this many layers, none of them held yet.
    pub fn empty(layers: usize, rows: usize) -> Self {
        Self { layers: vec![None; layers], rows }
    }

    /// Number of rows (chains or data points).
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of layers, held or not.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether there are no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The batch of layer `l`, if it is held.
    pub fn get(&self, l: usize) -> Option<&Batch<T>> {
        self.layers.get(l)?.as_ref()
    }

    /// The batch of layer `l`.
    ///
    /// # Errors
    /// When the layer is not held.
    pub fn layer(&self, l: usize) -> Result<&Batch<T>> {
        self.get(l).ok_or_else(|| Error::shape(format!("states of layer {l}"), "a batch", "none"))
    }

    /// Holds `batch` as the states of layer `l`.
    ///
    /// # Panics
    /// If its number of rows differs.
    pub fn set(&mut self, l: usize, batch: Batch<T>) {
        assert_eq!(batch.rows(), self.rows, "all layers have equally many rows");
        self.layers[l] = Some(batch);
    }

    /// Takes the batch of layer `l` out.
    pub fn take(&mut self, l: usize) -> Option<Batch<T>> {
        self.layers[l].take()
    }

    /// The given rows of every held layer.
    pub fn select(&self, rows: &[usize]) -> Self {
        let layers = self.layers.iter().map(|b| b.as_ref().map(|b| b.select(rows))).collect();
        Self { layers, rows: rows.len() }
    }

    /// [`select`](Self::select) that reuses the memory of `out`.
    pub(crate) fn select_into(&self, rows: &[usize], out: &mut Self) {
        out.rows = rows.len();
        out.layers.resize_with(self.layers.len(), || None);
        for (from, to) in self.layers.iter().zip(&mut out.layers) {
            match (from, &mut *to) {
                (Some(from), Some(to)) => from.select_into(rows, to),
                (from, _) => *to = from.as_ref().map(|b| b.select(rows)),
            }
        }
    }

    /// Row i of `from` becomes row `rows[i]`, in every layer that both hold.
    pub(crate) fn scatter(&mut self, rows: &[usize], from: &Self) {
        for (to, from) in self.layers.iter_mut().zip(&from.layers) {
            if let (Some(to), Some(from)) = (to, from) {
                to.scatter(rows, from);
            }
        }
    }

    /// Exchanges row `r` with row `s` of `other` in every layer that both hold.
    pub(crate) fn swap_row(&mut self, r: usize, other: &mut Self, s: usize) {
        for (a, b) in self.layers.iter_mut().zip(&mut other.layers) {
            if let (Some(a), Some(b)) = (a, b) {
                a.swap_row(r, b, s);
            }
        }
    }

    /// All rows of the given states, in order; a layer is held when all hold it.
    pub(crate) fn stack(parts: &[Self]) -> Self {
        let layers = (0..parts[0].len()).map(|l| {
            let batches: Option<Vec<_>> = parts.iter().map(|p| p.get(l)).collect();
            batches.map(|b| Batch::stack(&b))
        });
        Self { layers: layers.collect(), rows: parts.iter().map(Self::rows).sum() }
    }

    /// Whether row `r` is the same in the given layers, which both hold.
    pub(crate) fn row_equals(&self, other: &Self, layers: &[usize], r: usize) -> bool {
        layers.iter().all(|&l| match (self.get(l), other.get(l)) {
            (Some(Batch::Bits(a)), Some(Batch::Bits(b))) => a.row(r) == b.row(r),
            (Some(Batch::Codes(a)), Some(Batch::Codes(b))) => a.row(r) == b.row(r),
            (Some(Batch::Reals(a)), Some(Batch::Reals(b))) => a.row(r) == b.row(r),
            _ => false,
        })
    }
}
