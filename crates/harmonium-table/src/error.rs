//! Errors of making a machine for a table.

/// The result of a choice.
pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// Why there is no machine for a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid setting.
    #[error("{name} {value}: {why}")]
    Setting {
        /// Which one, as a field of [`MachineConfig`](crate::MachineConfig).
        name: &'static str,
        /// Its value.
        value: String,
        /// Why not.
        why: String,
        /// The words that could have been meant, where there is a list of them.
        known: &'static [&'static str],
    },
    /// A class machine for data without a label column.
    #[error("the data have no label column, which a class machine needs")]
    NoLabel,
    /// A column that is not there, or an entry that it cannot have.
    #[error("{0}")]
    Entry(String),
    /// Data or a file that do not fit.
    #[error("{0}")]
    Unfit(String),
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] harmonium::Error),
    /// An error of the data crate.
    #[error(transparent)]
    Data(#[from] harmonium_data::Error),
}

impl Error {
    pub(crate) fn setting(name: &'static str, value: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Setting { name, value: value.into(), why: why.into(), known: &[] }
    }
}
