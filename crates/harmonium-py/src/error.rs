//! Errors of the library as Python exceptions.

use harmonium::Error;
use pyo3::PyErr;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError, PyOSError, PyValueError};

/// What Python raises for an error of the library: `OSError` for the system's, `MemoryError` for what is too large, else `ValueError`.
pub(crate) fn raise(error: Error) -> PyErr {
    match error {
        Error::Io { path, source } => {
            // With number and file name, so that it becomes a FileNotFoundError where it is one.
            match source.raw_os_error() {
                Some(number) => {
                    PyOSError::new_err((number, source.to_string(), path.display().to_string()))
                }
                None => PyOSError::new_err(format!("{}: {source}", path.display())),
            }
        }
        Error::Memory { .. } => PyMemoryError::new_err(error.to_string()),
        Error::Stopped { what } => PyKeyboardInterrupt::new_err(format!("stopped during {what}")),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// The same for errors of tables; settings have the names of arguments.
pub(crate) fn refuse(error: harmonium_table::Error) -> PyErr {
    use harmonium_table::Error;
    match error {
        Error::Setting { name, value: got, why, known: [] } => value(name, format!("{why}, got {got}")),
        Error::Setting { name, value: got, why, known } => {
            // In the form in which Python finds the name that was meant.
            let known: Vec<_> = known.iter().map(|word| format!("`{word}`")).collect();
            value(name, format!("{why} `{got}`, expected one of {}", known.join(", ")))
        }
        Error::NoLabel => value("label", format!("{error}; name one with label=")),
        Error::Library(error) => raise(error),
        other => PyValueError::new_err(other.to_string()),
    }
}

/// A `ValueError` that names an argument.
pub(crate) fn value(what: &str, why: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{what}: {why}"))
}
