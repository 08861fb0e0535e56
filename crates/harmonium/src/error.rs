//! The one error type of the library.

use harmonium_kernels::PackingError;
use std::path::PathBuf;

/// What went wrong, with what was expected and what was found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two things that must have the same size do not.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// The array, layer or argument.
        what: String,
        /// The size it must have.
        expected: String,
        /// The size it has.
        got: String,
    },
    /// A value outside what its unit kind or parameter allows.
    #[error("{what}: {got} is not allowed, expected {expected}")]
    Value {
        /// Which parameter, or which row and column.
        what: String,
        /// The allowed values.
        expected: String,
        /// The value found.
        got: String,
    },
    /// An operation that this machine does not have.
    #[error("{what} is not defined for this machine: {why}")]
    Undefined {
        /// The operation.
        what: &'static str,
        /// The property of the machine that forbids it.
        why: String,
    },
    /// A method that cannot be used here, and those that can.
    #[error("{what} does not apply: {why}; these do: {}", .instead.join(", "))]
    Inapplicable {
        /// The method.
        what: String,
        /// Why it does not apply.
        why: String,
        /// The methods that apply.
        instead: Vec<String>,
    },
    /// `∫ e^{−βE}` is infinite, or cannot be shown to be finite.
    #[error("this machine cannot be normalised: {why}")]
    NotNormalisable {
        /// Which layers or couplings, and the bound they break.
        why: String,
    },
    /// An exact computation that would take too long.
    #[error(
        "exact enumeration would visit {states:.3e} states (about {}); force it to go on all the same",
        crate::error::duration(*.seconds)
    )]
    TooManyStates {
        /// Number of states of the walked layers.
        states: f64,
        /// Estimated time in seconds on one thread.
        seconds: f64,
    },
    /// Something that memory has no room for.
    #[error(
        "{what}: expected at most {}, got {}",
        .limit.map_or("what this process may have".into(), |l| format!("{} of memory", crate::error::gigabytes(l))),
        crate::error::gigabytes(*.bytes)
    )]
    Memory {
        /// What would be made.
        what: String,
        /// Bytes that it would take, at least.
        bytes: f64,
        /// Bytes that there are, where the system tells.
        limit: Option<f64>,
    },
    /// An observer stopped the computation.
    #[error("stopped during {what}")]
    Stopped {
        /// What was being done.
        what: &'static str,
    },
    /// A model file or archive that violates its format.
    #[error("{}: {why}", .path.display())]
    Format {
        /// The file, or what the bytes were meant to be.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
}

/// The library's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn shape(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Shape { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    pub(crate) fn value(what: impl Into<String>, expected: impl ToString, got: impl ToString) -> Self {
        Self::Value { what: what.into(), expected: expected.to_string(), got: got.to_string() }
    }

    pub(crate) fn format(path: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::Format { path: path.into(), why: why.into() }
    }
}

impl From<PackingError> for Error {
    fn from(error: PackingError) -> Self {
        match error {
            PackingError::Words { rows, stride, got } => {
                Self::shape("words of a bit matrix", format!("{rows}×{stride}"), got)
            }
            PackingError::UnusedBit => Self::value("unused bits of a bit matrix", "zero", "one"),
        }
    }
}

/// Bytes in billions.
pub(crate) fn gigabytes(bytes: f64) -> String {
    let digits = if bytes < 1e11 { 1 } else { 0 };
    format!("{:.digits$} GB", bytes / 1e9)
}

/// A rough duration in words, more readable than 3.4e7 s.
pub(crate) fn duration(seconds: f64) -> String {
    let units = [(31_557_600.0, "years"), (86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")];
    match units.into_iter().find(|&(size, _)| seconds >= 2.0 * size) {
        Some((size, name)) if seconds / size < 1e4 => format!("{:.0} {name}", seconds / size),
        Some((size, name)) => format!("{:.1e} {name}", seconds / size),
        None => format!("{seconds:.1} seconds"),
    }
}
