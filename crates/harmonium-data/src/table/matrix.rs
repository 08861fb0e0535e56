//! Dense matrices and arrays, row by row.

/// A dense matrix in row-major order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    cols: usize,
    values: Vec<T>,
}

impl<T: Copy + Default> Matrix<T> {
    /// A matrix of default values.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, values: vec![T::default(); rows * cols] }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The value at (`row`, `col`).
    pub fn get(&self, row: usize, col: usize) -> T {
        self.row(row)[col]
    }

    /// Sets the value at (`row`, `col`).
    pub fn set(&mut self, row: usize, col: usize, value: T) {
        assert!(col < self.cols, "column {col} of {}", self.cols);
        self.values[row * self.cols + col] = value;
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[T] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// All values, row after row.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// All values, row after row.
    pub fn into_values(self) -> Vec<T> {
        self.values
    }

    /// The given rows, in the given order.
    pub(crate) fn select(&self, rows: &[usize]) -> Self {
        Self {
            rows: rows.len(),
            cols: self.cols,
            values: rows.iter().flat_map(|&row| self.row(row)).copied().collect(),
        }
    }

    /// Keeps these rows, which are in order, in the memory that is there.
    pub(crate) fn keep(&mut self, rows: &[usize]) {
        for (to, &from) in rows.iter().enumerate() {
            self.values.copy_within(from * self.cols..(from + 1) * self.cols, to * self.cols);
        }
        self.rows = rows.len();
        self.values.truncate(rows.len() * self.cols);
        self.values.shrink_to_fit();
    }

    /// Appends the rows of `other`, which has as many columns.
    pub(crate) fn append(&mut self, other: &Self) {
        debug_assert_eq!(self.cols, other.cols);
        self.rows += other.rows;
        self.values.extend_from_slice(&other.values);
    }
}

/// Numbers in an array with any number of axes, the last index fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberArray {
    /// The extent of every axis.
    pub shape: Vec<usize>,
    /// The entries.
    pub values: Vec<f64>,
}
